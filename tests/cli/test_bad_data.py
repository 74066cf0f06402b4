"""Recipes and data that cannot be used: one clear message, exit status 2, and every file as it was."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from unittest.mock import patch

import pytest

from cli.corpus import GOOD, LONG, contents, recipe
from command_line import complaint, here, refused

pytestmark = pytest.mark.usefixtures("as_users_run")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("none.toml", None, "there is no such file"),
        (
            "a.toml",
            b"[data\nx = 1",
            "not valid TOML: Expected ']' at the end of a table declaration (at line 1",
        ),
        ("a.toml", b"\xff\xfe\x00", "not UTF-8 text (byte 0)"),
        ("a.toml", b"", "data: is required"),
        ("a.toml", b"x = " + b"[" * 5_000, "not valid TOML: nested too deeply"),
        (".", None, "this is a folder; a recipe is a TOML file"),
    ],
)
def test_an_unreadable_recipe_is_refused(tmp_path: Path, name: str, content: bytes | None, words: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    before = contents(tmp_path)
    out = ("--out", tmp_path / "out")
    assert words in refused("check", tmp_path / name)
    assert words in complaint("train", tmp_path / name, *out)
    assert words in complaint("compare", tmp_path / name, "--vary", "model.dropout=0.1,0.2", *out)
    assert contents(tmp_path) == before


BAD_DATA: dict[str, tuple[dict[str, bytes], str]] = {
    "missing": ({"none.tsv": b""}, r'none.tsv does not exist; did you mean "good.tsv"?'),
    "folder": ({".": b""}, "is a folder; expected a data file"),
    "columns": (
        {"a.tsv": b"a\tb\nonly\n"},
        "a.tsv, line 2: expected at least 2 columns separated by a tab; found 1 column(s)",
    ),
    "field": (
        {"a.jsonl": b'{"source": "a", "trg": "b", "id": 1}\n'},
        "set data.columns to the names or numbers of the columns of source and target; its columns are: source, trg",
    ),
    "empty": ({"a.tsv": b""}, "a.tsv: contains no pairs"),
    "blank": ({"a.tsv": b"\n \n\n"}, "a.tsv, line 1: blank"),
    "gz": ({"a.tsv.gz": gzip.compress(GOOD.encode())[:-20]}, "cannot be read: Compressed file ended before"),
    "UTF-8": ({"a.tsv": GOOD.encode() + b"a\xff\tb\n"}, "a.tsv, line 31: not UTF-8 (byte 1 of the line)"),
    "lengths": ({"a.en": b"a\nb\nc\n", "a.fr": b"a\nb\n"}, "a.fr has 2: parallel files need the same number of lines"),
}


@pytest.mark.parametrize("what", BAD_DATA)
@pytest.mark.parametrize("split", ["train", "valid"])
def test_bad_data_is_refused_before_anything_is_written(corpus: Path, split: str, what: str) -> None:
    files, words = BAD_DATA[what]
    for name, content in files.items():
        if what not in ("missing", "folder"):
            (corpus / name).write_bytes(content)
    splits = {"train": ["good.tsv"], "valid": ["good.tsv"], split: list(files)}
    path = recipe(corpus, "\n".join(f"{name} = {value}" for name, value in splits.items()))
    before = contents(corpus)
    run = refused if (what, split) == ("lengths", "train") else complaint
    assert words in run("train", path, "--out", corpus / "out")
    assert contents(corpus) == before


@pytest.mark.parametrize("what", BAD_DATA)
def test_bad_evaluation_data_is_refused(corpus: Path, trained: Path, what: str) -> None:
    files, words = BAD_DATA[what]
    for name, content in files.items():
        if what not in ("missing", "folder"):
            (corpus / name).write_bytes(content)
    options = [word for name in files for word in ("--data", corpus / name)]
    run = refused if what == "columns" else complaint
    assert words in run("evaluate", "-m", trained, *options)


def test_bad_options_of_evaluate_are_refused_before_any_work(corpus: Path, trained: Path) -> None:
    three: list[str | Path] = ["--data", corpus / "good.tsv"] * 3
    assert "--data: expected one table (CSV, TSV, JSON, Parquet), or a source and a target file, got 3" in complaint(
        "evaluate", "-m", trained, *three
    )
    assert 'names no "tset" data; did you mean "test"?' in complaint("evaluate", "-m", trained, "--split", "tset")
    assert "--gallery: only captioning models have one" in complaint(
        "evaluate", "-m", trained, "--gallery", corpus / "g.html"
    )
    with patch("heedful.tasks.seq2seq.evaluate.evaluate_pairs") as work:
        assert 'did you mean "bleu"?' in complaint("evaluate", "-m", trained, "--metric", "blue")
        assert "no such model folder" in complaint("evaluate", "-m", trained, "--against", corpus / "none")
        assert not work.called
    with patch.dict(os.environ, HEEDFUL_DATA=str(corpus)):
        assert here("evaluate", "-m", trained, "--data", "data:good.tsv").returncode == 0


def test_missing_validation_or_test_data_is_refused(corpus: Path) -> None:
    path = recipe(corpus, 'train = ["good.tsv"]')
    before = contents(corpus)
    assert "train, valid: name the files, or use a world" in complaint("train", path, "--out", corpus / "out")
    assert contents(corpus) == before
    path = recipe(corpus, 'train = ["good.tsv"]\nvalid = ["good.tsv"]')
    words: list[str | Path] = ["compare", path, "--vary", "model.dropout=0.1,0.2", "--out", corpus / "out"]
    assert "names no test data" in complaint(*words)  # before hours of training
    assert not (corpus / "out").exists()


@pytest.mark.parametrize("split", ["train", "valid"])
def test_bad_lines_are_skipped_on_request_and_reported(corpus: Path, split: str) -> None:
    (corpus / "u.tsv").write_bytes(GOOD.encode() + b"a\xff\tb\n\n")
    splits = {"train": ["good.tsv"], "valid": ["good.tsv"], split: ["u.tsv"]}
    path = recipe(corpus, "\n".join(f"{name} = {value}" for name, value in splits.items()))
    done = here("train", path, "data.on_error=skip", "--out", corpus / "out")
    assert done.returncode == 0, done.stderr
    assert "2 bad line(s) skipped" in done.stderr
    assert "u.tsv, line 31: not UTF-8" in done.stderr


@pytest.mark.parametrize("split", ["train", "valid"])
@pytest.mark.parametrize("side", ["source", "target"])
def test_a_line_of_100_000_words_in_the_data_is_refused_skipped_or_cut(corpus: Path, split: str, side: str) -> None:
    line = f"{LONG}\tle\n" if side == "source" else f"the\t{LONG}\n"
    (corpus / "l.tsv").write_text(GOOD + line)
    splits = {"train": ["good.tsv"], "valid": ["good.tsv"], split: ["l.tsv"]}
    path = recipe(corpus, "\n".join(f"{name} = {value}" for name, value in splits.items()))
    before = contents(corpus)
    error = complaint("train", path, "--out", corpus / "out")
    assert f"l.tsv, line 31: the {side} has 100,000 tokens, more than data.max_{side} = 500" in error
    assert contents(corpus) == before
    for policy, words in (("skip", "1 pair(s) skipped as too long"), ("cut", "1 pair(s) cut")):
        done = here("train", path, f"data.on_too_long={policy}", "--out", corpus / policy)
        assert done.returncode == 0, done.stderr
        assert words in done.stderr


def test_an_output_path_that_is_a_file_is_refused(corpus: Path, trained: Path) -> None:
    (corpus / "file").write_text("notes of the user")
    before = contents(corpus)
    vary = ("--vary", "model.dropout=0.1,0.2")
    for out, words in (
        (corpus / "file", "is a file; --out takes a folder"),
        (corpus / "file" / "x", "Not a dir"),
    ):
        assert words in complaint("train", corpus / "r.toml", "--out", out)
        assert words in complaint("compare", corpus / "r.toml", *vary, "--out", out)
        assert words in refused("world", "phrases", "--n", "30", "--out", out)
        assert "Not a dir" in complaint("trace", "the a falls", "-m", trained, "-o", out / "t.json")
    assert "Is a directory" in complaint("trace", "the a falls", "-m", trained, "-o", corpus)
    assert contents(corpus) == before


def test_a_training_that_cannot_start_leaves_nothing(corpus: Path) -> None:
    before = contents(corpus)
    out = ("--out", corpus / "out")
    assert "cannot be used here" in complaint("train", corpus / "r.toml", "training.device=mps", *out)
    assert "must be at most" in complaint("train", corpus / "r.toml", "model.embedding=1000000000000", *out)
    with patch("heedful.tasks.train.get_task", side_effect=MemoryError):
        assert "not enough memory" in complaint("train", corpus / "r.toml", *out)
    assert contents(corpus) == before
    (corpus / "out").mkdir()
    (corpus / "out" / "notes.txt").write_text("notes of the user")
    before = contents(corpus)
    complaint("train", corpus / "r.toml", "training.device=mps", *out)
    assert contents(corpus) == before
