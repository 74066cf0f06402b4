"""Traces, worlds and comparisons that cannot be made."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from unittest.mock import patch

import pytest

import small_models
from cli.corpus import contents, recipe
from command_line import complaint, here, refused

pytestmark = pytest.mark.usefixtures("as_users_run")


def test_a_file_that_is_not_a_trace_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    small_models.small_trace().save(path)
    good = path.read_text()
    tree = json.loads(good)
    (site,) = tree["sites"]
    cases: list[tuple[str | bytes, str]] = [
        (good[: len(good) // 2], "not a trace of schema attn-trace/2: the file: Invalid JSON: EOF"),
        ("", "Invalid JSON: EOF"),
        (b"\x00\xff", "not UTF-8 text, so not a trace"),
        (good.replace("attn-trace/2", "attn-trace/9"), "schema: Input should be 'attn-trace/2'"),
        (
            json.dumps({**tree, "target": {**tree["target"], "tokens": tree["target"]["tokens"][1:]}}),
            "3 output tokens but 4 steps",
        ),
        (json.dumps({**tree, "source": {**tree["source"], "tokens": []}}), "source.tokens: "),
        (json.dumps({**tree, "sites": [{**site, "heads": 0}]}), "sites.0.heads: "),
        (
            json.dumps({**tree, "sites": [{**site, "weights": "other"}]}),
            "the tensor other is not in the trace",
        ),
        (
            json.dumps({**tree, "tensors": {"weights": {**tree["tensors"]["weights"], "data": "AAAA"}}}),
            "bytes of data",
        ),
    ]
    for content, words in cases:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        assert words in complaint("show", path)
        assert words in complaint("show", path, "-o", tmp_path / "t.png")
    assert words in refused("show", path)
    path.write_text(good)
    assert "No such file" in complaint("show", tmp_path / "none.json")
    assert "Is a directory" in complaint("show", tmp_path)
    assert "cannot draw as '.gif'; known: .png" in complaint("show", path, "-o", tmp_path / "t.gif")
    assert "No such file" in complaint("show", path, "-o", tmp_path / "none" / "t.png")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["w.csv", "w.npz"])
def test_a_table_that_cannot_be_written_leaves_the_old_one(name: str, tmp_path: Path) -> None:
    small_models.small_trace().save(tmp_path / "t.json")
    (tmp_path / name).write_text("old")

    def full_disk(path: Path, *_args: object, **_options: object) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    patched = (
        patch.object(Path, "write_text", full_disk)
        if name != "w.npz"
        else patch("heedful.trace.schema.to_npz", lambda _trace, path: full_disk(path))
    )
    with patched:
        error = complaint("show", tmp_path / "t.json", "-o", tmp_path / name)
    assert f"{name}: cannot be written: No space left on device" in error
    assert (tmp_path / name).read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["t.json", name])


def test_gold_links_of_words_that_do_not_exist_are_refused(trained: Path, tmp_path: Path) -> None:
    trace = ("trace", "the a falls", "-m", trained, "-o", tmp_path / "t.json")
    error = complaint(*trace, "--gold", "0-0 9-0")
    assert '--gold "9-0": the source has 3 words, numbered 0 to 2' in error
    error = complaint(*trace, "--gold", "0-9", "--target", "le a tombe")
    assert '--gold "0-9": the output has 3 words, numbered 0 to 2' in error
    assert "the output has no words" in complaint(*trace, "--gold", "0-0", "--target", "")
    assert not list(tmp_path.iterdir())
    done = here(*trace, "--gold", "0-99")  # the length of the model's own output is not known before
    assert done.returncode == 0
    assert "such links are not drawn" in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["phrases", "--n", "2"], "n is 2: it must be an integer of at least 3"),
        (["phrases", "--n", "x"], "Invalid value for '--n'"),
        (["phrases", "--n", "9", "--valid", "9"], "leave nothing to train on"),
        (["phrases", "--n", "9", "--min-words", "9", "--max-words", "3"], "max_words is 3"),
        (["scenes", "--n", "9", "--size", "5"], "size is 5: it must be an integer from 48 to 1024"),
        (["tastes", "--n", "9", "--seed", "-1"], "seed is -1"),
        (["moods", "--n", "9", "--classes", "5"], "classes is 5: it must be 2"),
        (["phrasse", "--n", "9"], "No such command 'phrasse'"),
    ],
)
def test_impossible_worlds_are_refused(tmp_path: Path, options: list[str], words: str) -> None:
    assert words in refused("world", *options, "--out", tmp_path / "w")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("notes of the user")
    assert "choose another folder" in refused("world", "moods", "--n", "9", "--out", tmp_path)
    (tmp_path / "README.md").unlink()
    (tmp_path / "README.md").mkdir()
    assert "README.md: Is a directory" in refused("world", "moods", "--n", "9", "--out", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


def test_impossible_comparisons_are_refused(corpus: Path) -> None:
    before = contents(corpus)
    compare = ("compare", corpus / "r.toml", "--out", corpus / "out", "--seeds", "1")
    vary = ("--vary", "model.dropout=0.1,0.2")
    for budget in ("soon", "0s", "-5m", "nanm", "infm", ""):
        assert "expected a duration such as 90s" in complaint(*compare, *vary, "--budget", budget)
    assert "expected section.key=value" in complaint(*compare, "--vary", "model.dropout")
    assert "no such setting" in complaint(*compare, "--vary", "model.dropuot=0.1,0.2")
    assert "model.dropout: given twice" in complaint(*compare, *vary, *vary)
    recipe(corpus, 'train = ["good.tsv"]\nvalid = ["good.tsv"]\ntest = ["none.tsv"]')
    assert "none.tsv does not exist" in complaint(*compare, *vary)
    (corpus / "r.toml").unlink()
    before.pop(corpus / "r.toml")
    assert contents(corpus) == before


def test_a_comparison_names_the_training_that_failed(corpus: Path, trained: Path) -> None:
    compare = ("compare", corpus / "r.toml", "--seeds", "1", "--vary", "model.dropout=0.1,0.2", "--out")
    for number in range(4):  # two variants and two baselines, trained before
        shutil.copytree(trained, corpus / "old" / f"{number:02d}-seed1")
    with patch("heedful.analysis.training_pool.TrainingPool.train"):
        log = here(*compare, corpus / "old").stderr
    assert "00-seed1: metrics.jsonl or cost.json is missing or damaged; remove that folder" in log
    (corpus / "a.tsv").write_text("a\tb\nonly\n")
    recipe(corpus, 'train = ["a.tsv"]\nvalid = ["good.tsv"]\ntest = ["good.tsv"]')
    done = here(*compare, corpus / "new", "--budget", "1s")
    assert (done.returncode, done.stdout) == (2, "")
    assert "training of dropout=0.1, seed 1, failed" in done.stderr
    assert "a.tsv, line 2: expected at least 2 columns separated by a tab" in done.stderr
    assert not (corpus / "new").exists()
