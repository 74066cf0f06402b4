"""Sequence-to-sequence models on the command line: lines, n-best, JSON, ensembles, unknown words, evaluation."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

import small_models
from command_line import HEEDFUL, complaint, heedful, here
from heedful.tasks.model_folder import save_model
from heedful.tasks.seq2seq.assets import Seq2SeqAssets
from heedful.tasks.seq2seq.evaluate import evaluate_pairs
from heedful.tasks.seq2seq.predict import generate_texts, load_predictor

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
learning_rate = 0.01
threads = 1
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Train two small models with one vocabulary."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "r.toml").write_text(RECIPE)
    for seed in (1, 2):
        done = heedful("train", folder / "r.toml", f"training.seed={seed}", "--out", folder / f"m{seed}")
        assert done.returncode == 0, done.stderr
    return folder / "m1", folder / "m2"


def test_a_finished_training_has_metrics_and_is_not_repeated(models: tuple[Path, Path]) -> None:
    recipe = models[0].parent / "r.toml"
    assert "already trained" in here("train", recipe, "training.seed=1", "--out", models[0]).stdout
    assert "training.seed: 1 -> 2" in complaint("train", recipe, "training.seed=2", "--out", models[0])
    lines = [json.loads(line) for line in (models[0] / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == list(range(1, 7))
    assert set(lines[-1]["metrics"]) == {"loss", "bleu", "exact"}
    assert not (models[0] / "resume").exists()


def test_one_line_in_is_one_line_out_and_n_best_gives_n(models: tuple[Path, Path], tmp_path: Path) -> None:
    text = "i see her\n\nhe falls now\n"
    outputs = heedful("translate", "-m", models[0], stdin=text).stdout.split("\n")
    assert (len(outputs), outputs[1], outputs[3]) == (4, "", "")
    (tmp_path / "in.txt").write_text(text)
    assert here("translate", "-m", models[0], tmp_path / "in.txt").stdout.split("\n") == outputs
    best = here("translate", "-m", models[0], "--beam", "4", "--n-best", "3", stdin="he falls now\n")
    assert len(best.stdout.splitlines()) == 3
    sample = ("translate", "-m", models[0], "--sample", "--seed")
    samples = [here(*sample, str(seed), stdin=text).stdout for seed in (1, 1, 2)]
    assert samples[0] == samples[1] != samples[2]


def test_json_has_tokens_scores_and_alignments(models: tuple[Path, Path]) -> None:
    done = here("translate", "-m", models[0], "--json", "--beam", "3", stdin="he falls now\n\n")
    first, blank = map(json.loads, done.stdout.splitlines())
    assert blank["outputs"] == []
    (output,) = first["outputs"]
    assert len(output["alignment"]) == len(output["tokens"]) == len(output["token_logp"])
    assert len(output["alignment"][0]) == len(first["tokens"]) == 4
    assert sum(output["alignment"][0]) == pytest.approx(1, abs=1e-5)
    assert output["logp"] == pytest.approx(sum(output["token_logp"]), abs=1e-4)


def test_an_ensemble_generates_one_output_and_needs_one_vocabulary(models: tuple[Path, Path], tmp_path: Path) -> None:
    both = here("translate", "-m", models[0], "-m", models[1], "--beam", "3", stdin="he falls now\n")
    assert both.returncode == 0, both.stderr
    assert len(both.stdout.splitlines()) == 1
    small_models.random_model_folder(tmp_path / "other", small_models.small_preset("cgru"))
    error = complaint("translate", "-m", models[0], "-m", tmp_path / "other", stdin="he falls now\n")
    assert "have different vocabularies and cannot form an ensemble" in error


def test_unknown_words_can_be_copied(models: tuple[Path, Path]) -> None:
    done = here("translate", "-m", models[0], "--replace-unknown", stdin="zebulon falls now\n")
    assert done.returncode == 0, done.stderr
    assert "<unk>" not in done.stdout


def test_a_line_of_capitals_is_read_in_lower_case_and_answered_in_capitals(models: tuple[Path, Path]) -> None:
    lines = "HE FALLS NOW\nhe falls now\nHe falls now\n"
    kept = here("translate", "-m", models[0], "--json", stdin=lines)
    done = here("translate", "-m", models[0], "--json", "--capitals", "recase", stdin=lines)
    assert done.returncode == kept.returncode == 0, done.stderr
    (capitals, *others), (_, *kept_others) = (
        [json.loads(line) for line in out.stdout.splitlines()] for out in (done, kept)
    )
    assert others == kept_others
    read = others[1]
    assert capitals["tokens"] == read["tokens"]
    assert capitals["outputs"][0]["text"] == read["outputs"][0]["text"].upper() != read["outputs"][0]["text"]
    assert "known: keep, recase" in complaint("translate", "-m", models[0], "--capitals", "up", stdin="A\n")


def test_outputs_with_the_same_text_come_after_the_others() -> None:
    """The bundled translator was trained with BPE-dropout, so a text has several likely segmentations."""
    (best,) = here("translate", stdin="The cat sleeps.\n").stdout.splitlines()
    outputs = here("translate", "--n-best", "3", stdin="The cat sleeps.\n").stdout.splitlines()
    assert outputs[0] == best
    assert len(set(outputs)) == 3
    record = json.loads(here("translate", "--json", "--n-best", "3", stdin="The cat sleeps.\n").stdout)
    assert [output["text"] for output in record["outputs"]] == outputs


def test_a_line_that_is_not_utf_8_is_named(models: tuple[Path, Path]) -> None:
    done = here("translate", "-m", models[0], stdin=b"ok\na\xff\n")
    assert "stdin, line 2: not UTF-8 (byte 1" in done.stderr


def test_a_model_of_another_task_is_refused(models: tuple[Path, Path]) -> None:
    assert "was trained for translate; use heedful translate" in complaint("reply", "-m", models[0], stdin="a\n")


def test_a_line_too_long_is_cut_with_a_warning_and_all_others_are_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded = small_models.random_model_folder(tmp_path / "m", small_models.small_preset("cgru"))
    predictor = load_predictor([tmp_path / "m"])
    predictor = predictor._replace(limits=predictor.limits.model_copy(update={"max_source": 3}))
    lines = ["the black cat", "the black cat sees a dog", "she eats"]
    options = loaded.recipe.decoding.model_copy(update={"max_length": 5})
    outputs = generate_texts(predictor, lines, options)
    assert outputs[1] == outputs[0], "its first three words"
    assert all(best[0] for best in outputs)
    assert "line 2 (" in capsys.readouterr().err
    assert generate_texts(predictor, lines, options, on_too_long="skip")[1] == [""]


def test_evaluate_computes_metrics_and_compares_models(models: tuple[Path, Path], tmp_path: Path) -> None:
    done = here("evaluate", "-m", models[0], "--against", models[1], "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["pairs"] == 30
    assert [m["name"] for m in report["metrics"]] == ["BLEU", "chrF2", "TER", "exact match", "perplexity"]
    assert report["metrics"][0]["signature"].startswith("nrefs:1")
    assert sum(b["items"] for b in report["by_source_length"]) == 30
    assert report["by_position"]
    assert 0 <= report["against"]["comparison"]["p"] <= 1
    (tmp_path / "a.tsv").write_text("he falls now\til tombe maintenant\n" * 3)
    table = here("evaluate", "-m", models[0], "--data", tmp_path / "a.tsv", "--metric", "exact")
    assert "exact match" in table.stdout, table.stderr
    assert "no such metric" in complaint("evaluate", "-m", models[0], "--metric", "blue")
    assert "length_penalty = -1.0" in complaint("evaluate", "-m", models[0], "--length-penalty", "-1")


def test_a_length_penalty_makes_outputs_longer(models: tuple[Path, Path]) -> None:
    words = ("evaluate", "-m", models[0], "--beam", "6", "--metric", "length-ratio", "--json", "--length-penalty")
    reports = [here(*words, penalty) for penalty in ("0", "5")]
    short, long = (json.loads(report.stdout)["metrics"][0]["value"] for report in reports)
    assert short < long


def test_a_long_file_has_a_progress_bar_on_a_terminal_only(models: tuple[Path, Path], tmp_path: Path) -> None:
    long, short = tmp_path / "long.txt", tmp_path / "short.txt"
    long.write_text("a cat sleeps\n\n" * 60)
    short.write_text("a cat sleeps\n" * 9)
    plain = here("translate", long, "-m", models[0])
    assert plain.stderr == ""
    output, terminal = run_on_terminal("translate", long, "-m", models[0])
    assert output == plain.stdout
    assert "120/120" in terminal
    assert "/" not in run_on_terminal("translate", short, "-m", models[0])[1]


def run_on_terminal(*words: str | Path) -> tuple[str, str]:
    """Return what the program writes to stdout, a pipe, and to stderr, a terminal."""
    terminal, program_end = pty.openpty()
    process = subprocess.Popen([HEEDFUL, *words], stdout=subprocess.PIPE, stderr=program_end)
    os.close(program_end)
    stderr = b""
    with contextlib.suppress(OSError):  # Linux reports a closed terminal as an error
        while chunk := os.read(terminal, 65_536):
            stderr += chunk
    stdout, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    os.close(terminal)
    return stdout.decode(), stderr.decode()


def test_a_pipe_can_be_given_as_a_file(models: tuple[Path, Path]) -> None:
    command = f"'{HEEDFUL}' translate <(echo a cat sleeps) -m '{models[0]}'"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout == here("translate", "-m", models[0], stdin="a cat sleeps\n").stdout


def test_a_lowercasing_model_is_evaluated_with_and_without_case(tmp_path: Path) -> None:
    """`bleu-lc` and `bleu` have names of their own: who collects metrics by name must not mix them."""
    loaded = small_models.random_model_folder(tmp_path / "m", small_models.small_preset("cgru"))
    tokenizer = loaded.recipe.tokenizer.model_copy(update={"lowercase": True})
    recipe = loaded.recipe.model_copy(update={"tokenizer": tokenizer})
    save_model(tmp_path / "s", recipe, Seq2SeqAssets.train(small_models.PAIRS, recipe), loaded.model, {})
    lowercasing, cased = (
        evaluate_pairs(load_predictor([tmp_path / name]), small_models.PAIRS, recipe.decoding) for name in ("s", "m")
    )
    names = [metric.name for metric in lowercasing.metrics]
    assert names[:2] == ["BLEU, lowercased", "BLEU"]
    assert len(set(names)) == len(names)
    assert [m.signature.split("|")[1] for m in lowercasing.metrics[:2]] == ["case:lc", "case:mixed"]
    assert lowercasing.main == "bleu-lc"
    assert lowercasing.lengths[0].metric.name == "BLEU, lowercased"
    assert cased.metrics[0].name == "BLEU"
