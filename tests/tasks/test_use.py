"""Using models through the command line: lines, n-best, JSON, ensembles, unknown words, evaluation."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

import small
from heedful.tasks.evaluate import measure
from heedful.tasks.folder import save_model
from heedful.tasks.text import learn
from heedful.tasks.use import open_models
from test_cli import HEEDFUL, heedful, refused

RECIPE = """
[data.world]
train = 400
valid = 20
test = 30
max_words = 4
[tokenizer]
min_count = 3
[model]
embedding = 24
dropout = 0.0
[model.encoder]
hidden = 16
[model.decoder]
hidden = 32
[model.attention]
hidden = 16
[training]
epochs = 6
batch_tokens = 400
rate = 0.01
threads = 1
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two small models of one vocabulary."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "r.toml").write_text(RECIPE)
    made = []
    for seed in (1, 2):
        out = folder / f"m{seed}"
        done = heedful("train", folder / "r.toml", f"training.seed={seed}", "--out", out)
        assert done.returncode == 0, done.stderr
        made.append(out)
    return made[0], made[1]


def test_training_says_what_it_does_and_has_nothing_left_to_do(models: tuple[Path, Path]) -> None:
    recipe = models[0].parent / "r.toml"
    assert "already trained" in heedful("train", recipe, "training.seed=1", "--out", models[0]).stdout
    assert "training.seed: 1 -> 2" in refused("train", recipe, "training.seed=2", "--out", models[0])
    lines = [json.loads(line) for line in (models[0] / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == list(range(1, 7))
    assert set(lines[-1]["figures"]) == {"loss", "bleu", "exact"}
    assert not (models[0] / "resume").exists()


def test_one_line_in_is_one_line_out_and_n_best_gives_n(models: tuple[Path, Path], tmp_path: Path) -> None:
    text = "i see her\n\nhe falls now\n"
    plain = heedful("translate", "-m", models[0], stdin=text).stdout.split("\n")
    assert (len(plain), plain[1], plain[3]) == (4, "", "")
    (tmp_path / "in.txt").write_text(text)
    assert heedful("translate", "-m", models[0], tmp_path / "in.txt").stdout.split("\n") == plain
    best = heedful("translate", "-m", models[0], "--beam", "4", "--n-best", "3", stdin="he falls now\n")
    assert len(best.stdout.splitlines()) == 3
    drawn = [
        heedful("translate", "-m", models[0], "--sample", "--seed", str(seed), stdin=text).stdout
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_json_has_tokens_scores_and_alignments(models: tuple[Path, Path]) -> None:
    done = heedful("translate", "-m", models[0], "--json", "--beam", "3", stdin="he falls now\n\n")
    first, blank = map(json.loads, done.stdout.splitlines())
    assert blank["outputs"] == []
    (output,) = first["outputs"]
    assert len(output["alignment"]) == len(output["tokens"]) == len(output["token_logp"])
    assert len(output["alignment"][0]) == len(first["tokens"]) == 4
    assert sum(output["alignment"][0]) == pytest.approx(1, abs=1e-5)
    assert output["logp"] == pytest.approx(sum(output["token_logp"]), abs=1e-4)


def test_an_ensemble_writes_as_one_and_needs_one_vocabulary(
    models: tuple[Path, Path], tmp_path: Path
) -> None:
    both = heedful("translate", "-m", models[0], "-m", models[1], "--beam", "3", stdin="he falls now\n")
    assert both.returncode == 0, both.stderr
    assert len(both.stdout.splitlines()) == 1
    recipe = models[0].parent / "r.toml"
    other = tmp_path / "other"
    heedful("train", recipe, "data.world.seed=9", "training.epochs=1", "--out", other)
    said = refused("translate", "-m", models[0], "-m", other, stdin="he falls now\n")
    assert "have different vocabularies" in said


def test_unknown_words_can_be_copied(models: tuple[Path, Path]) -> None:
    text = "zebulon falls now\n"
    done = heedful("translate", "-m", models[0], "--replace-unknown", stdin=text)
    assert done.returncode == 0
    assert "<unk>" not in done.stdout


def test_a_line_that_is_not_utf_8_is_named(models: tuple[Path, Path]) -> None:
    assert "stdin, line 2: not UTF-8 (byte 1" in refused("translate", "-m", models[0], stdin=b"ok\na\xff\n")


def test_another_task_is_refused_by_name(models: tuple[Path, Path]) -> None:
    assert "was trained to translate; use heedful translate" in refused("reply", "-m", models[0], stdin="a\n")


def test_evaluate_measures_and_compares(models: tuple[Path, Path], tmp_path: Path) -> None:
    done = heedful("evaluate", "-m", models[0], "--against", models[1], "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["pairs"] == 30
    names = [m["name"] for m in report["metrics"]]
    assert names == ["BLEU", "chrF2", "TER", "exact match", "perplexity"]
    assert report["metrics"][0]["signature"].startswith("nrefs:1")
    assert sum(b["items"] for b in report["by_source_length"]) == 30
    assert 0 <= report["against"]["comparison"]["p"] <= 1
    (tmp_path / "a.tsv").write_text("he falls now\til tombe maintenant\n" * 3)
    shown = heedful("evaluate", "-m", models[0], "--data", tmp_path / "a.tsv", "--metric", "exact")
    assert shown.returncode == 0, shown.stderr
    assert "exact match" in shown.stdout
    assert "no such metric" in refused("evaluate", "-m", models[0], "--metric", "blue")
    wrong = refused("evaluate", "-m", models[0], "--length-penalty", "-1")
    assert "alpha = -1.0" in wrong


def test_a_length_penalty_makes_outputs_longer(models: tuple[Path, Path]) -> None:
    words: list[str | Path] = [
        "evaluate",
        "-m",
        models[0],
        "--beam",
        "6",
        "--metric",
        "length-ratio",
        "--json",
    ]
    found = []
    for alpha in ("0", "5"):
        done = heedful(*words, "--length-penalty", alpha)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout)["metrics"][0]["value"])
    assert found[0] < found[1]


def test_a_long_file_has_a_bar_on_a_terminal_and_only_there(
    models: tuple[Path, Path], tmp_path: Path
) -> None:
    long, short = tmp_path / "long.txt", tmp_path / "short.txt"
    long.write_text("a cat sleeps\n\n" * 60)
    short.write_text("a cat sleeps\n" * 9)
    plain = heedful("translate", long, "-m", models[0])
    assert plain.stderr == ""
    output, shown = on_a_terminal("translate", long, "-m", models[0])
    assert output == plain.stdout
    assert "120/120" in shown
    assert "/" not in on_a_terminal("translate", short, "-m", models[0])[1]


def on_a_terminal(*words: str | Path) -> tuple[str, str]:
    """What goes to stdout, a pipe, and what a terminal at stderr is shown."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([HEEDFUL, *words], stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # how Linux says that the other end is closed
        while more := os.read(ours, 65_536):
            shown += more
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    os.close(ours)
    return output.decode(), shown.decode()


def test_a_pipe_may_stand_for_a_file(models: tuple[Path, Path]) -> None:
    command = f"'{HEEDFUL}' translate <(echo a cat sleeps) -m '{models[0]}'"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout == heedful("translate", "-m", models[0], stdin="a cat sleeps\n").stdout


def test_bench_measures_every_way_in_floats_and_in_bytes(models: tuple[Path, Path], tmp_path: Path) -> None:
    done = heedful("bench", "-m", models[0], "--rounds", "2", "--lines", "12", "--threads", "1", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [(way["way"], way["int8"]) for way in found["ways"]][:2] == [("greedy", False), ("greedy", True)]
    assert len(found["ways"]) == 10
    for way in found["ways"]:
        assert way["lines"] == 12
        assert len(way["rates"]) == 2
        assert min(way["rates"]) > 0
        assert (way["same"] is None) != way["int8"]
    assert all(way["same"] >= 6 for way in found["ways"] if way["int8"])  # nearly the same model
    lines = tmp_path / "lines.txt"
    lines.write_text("the cat sleeps\n\nthe dog eats\n", encoding="utf-8")
    said = heedful("bench", lines, "-m", models[0], "--rounds", "1")
    assert "2 lines" in said.stdout
    assert "one by one, beam" in said.stdout
    assert "no such file" in refused("bench", tmp_path / "none.txt", "-m", models[0])
    lines.write_text("\n", encoding="utf-8")
    assert "no lines to write" in refused("bench", lines, "-m", models[0])


def test_capitals_are_not_held_against_a_model_of_small_letters(
    models: tuple[Path, Path], tmp_path: Path
) -> None:
    """It is measured with and without them, and both say which."""
    recipe = tmp_path / "r.toml"
    recipe.write_text(RECIPE.replace("[tokenizer]", "[tokenizer]\nlowercase = true"))
    assert heedful("train", recipe, "training.epochs=1", "--out", tmp_path / "m").returncode == 0
    (tmp_path / "a.tsv").write_text("the cat sleeps here\tLE CHAT DORT ICI\n")
    words = ("evaluate", "--data", tmp_path / "a.tsv", "--json", "-m")
    small, usual = (
        json.loads(heedful(*words, model).stdout)["metrics"] for model in (tmp_path / "m", models[0])
    )
    assert [m["signature"].split("|")[1] for m in small[:2]] == ["case:lc", "case:mixed"]
    assert [m["signature"].split("|")[1] for m in usual[:1]] == ["case:mixed"]


def test_a_model_of_small_letters_has_two_bleus(tmp_path: Path) -> None:
    """`bleu-lc` and `bleu` have names of their own: who gathers figures by name must not mix them."""
    opened = small.folder(tmp_path / "m", small.preset("cgru"))
    recipe = opened.recipe.model_copy(
        update={"tokenizer": opened.recipe.tokenizer.model_copy(update={"lowercase": True})}
    )
    words = learn(small.PAIRS, recipe)
    save_model(tmp_path / "s", recipe, words, opened.model, {})
    found = measure(open_models([tmp_path / "s"]), small.PAIRS, recipe.decoding)
    names = [metric.name for metric in found.metrics]
    assert names[:2] == ["BLEU, small letters", "BLEU"]
    assert len(set(names)) == len(names)
    assert found.main == "bleu-lc"
    assert found.lengths[0].metric.name == "BLEU, small letters"
