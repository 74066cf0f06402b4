"""Pretrained word vectors from files."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from heedful.data.vectors import read_vectors
from heedful.errors import DataError

GLOVE = "the 0.5 -1 2e-1\n. . . 1 2 3\ncat 1 1 1\ncat 9 9 9\n"


@pytest.mark.parametrize("header", ["", "4 3\n"], ids=["GloVe", "fastText"])
@pytest.mark.parametrize("compressed", [False, True])
def test_both_formats_give_the_same_vectors(tmp_path: Path, header: str, compressed: bool) -> None:
    path = tmp_path / ("v.txt.gz" if compressed else "v.vec")
    raw = (header + GLOVE).encode()
    path.write_bytes(gzip.compress(raw) if compressed else raw)
    result = read_vectors(path, {"the", "cat", ". . .", "dog"})
    assert result.width == 3
    assert {word: v.tolist() for word, v in result.vectors.items()} == {
        "the": pytest.approx([0.5, -1, 0.2]),
        ". . .": [1, 2, 3],
        "cat": [1, 1, 1],
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the 1 2 3\ncat 1 2\n", "line 2: expected a word and 3 numbers, found 3 parts: 'cat 1 2'"),
        ("the 1 2 3\ncat 1 x 3\n", "line 2: 'x' is not a number"),
        ("the 1 2 3\ncat 1 nan 3\n", "line 2: contains a number that is not finite"),
        ("the 1 2 3\ncat 1 1e400 3\n", "line 2: contains a number that is not finite"),
        ("9 3\ncat 1 2\n", "line 2: expected a word and 3 numbers"),
        (f"9 {'9' * 5_000}\ncat\n", "line 2: expected a word and 1 numbers"),
        ("the 1 2\n\n", "line 2: expected a word and 2 numbers"),
        ("", "contains no word vectors"),
        ("word\n", "line 1: expected a word and 1 numbers"),
    ],
)
def test_a_bad_line_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "v.txt"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_vectors(path, {"the", "cat"})


def test_a_missing_or_damaged_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_vectors(tmp_path / "none", set())
    (tmp_path / "v.gz").write_bytes(b"not gz")
    with pytest.raises(DataError, match="cannot be read"):
        read_vectors(tmp_path / "v.gz", set())
