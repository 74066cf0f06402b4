"""Labels of any kind, and word vectors from files."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import torch

from heedful.data.labels import Labels
from heedful.data.vectors import read_vectors
from heedful.errors import DataError, ModelError


def test_labels_are_text_and_come_back(tmp_path: Path) -> None:
    labels = Labels.learn(["tốt", "rất  tệ", "tốt", " tốt "])
    assert (labels.names, labels.counts) == (["rất tệ", "tốt"], [1, 3])
    assert labels.encode_all(["tốt", "rất tệ "]) == [[1, 3], [0, 3]]
    labels.save(tmp_path / "labels.json")
    again = Labels.load(tmp_path / "labels.json")
    assert (again.names, again.counts) == (labels.names, labels.counts)
    with pytest.raises(DataError, match='label "tot" is not in the training data; did you mean "tốt"'):
        labels.number("tot")
    for damaged in ("[]", "{", '{"a": "b"}', '{"a": 1}'):
        (tmp_path / "labels.json").write_text(damaged)
        with pytest.raises(ModelError, match="damaged"):
            Labels.load(tmp_path / "labels.json")


def test_what_cannot_be_labels_is_refused() -> None:
    with pytest.raises(DataError, match=r'two labels or more.*the only one is "x"'):
        Labels.learn(["x", "x"])
    with pytest.raises(DataError, match="30 different labels for 40 texts: are text and label the wrong way"):
        Labels.learn([f"text {n % 30}" for n in range(40)])


def test_weights_of_labels() -> None:
    labels = Labels.learn(["a"] * 6 + ["b"] * 2)
    assert labels.weights(()) is None
    balanced = labels.weights(("balanced",))
    assert balanced is not None
    assert torch.allclose(balanced, torch.tensor([8 / 12, 8 / 4])), "6 and 2 texts count alike"
    given = labels.weights(("b=3",))
    assert given is not None
    assert float(given[1] / given[0]) == pytest.approx(3)
    assert float((given * torch.tensor([6.0, 2.0])).sum()) == pytest.approx(8), "1 on average"
    with pytest.raises(DataError, match="class_weights: no label 'c'"):
        labels.weights(("c=3",))


GLOVE = "the 0.5 -1 2e-1\n. . . 1 2 3\ncat 1 1 1\ncat 9 9 9\n"


@pytest.mark.parametrize("head", ["", "4 3\n"], ids=["GloVe", "fastText"])
@pytest.mark.parametrize("packed", [False, True])
def test_vectors_of_both_formats(tmp_path: Path, head: str, packed: bool) -> None:
    path = tmp_path / ("v.txt.gz" if packed else "v.vec")
    raw = (head + GLOVE).encode()
    path.write_bytes(gzip.compress(raw) if packed else raw)
    found = read_vectors(path, {"the", "cat", ". . .", "dog"})
    assert found.width == 3
    assert {word: v.tolist() for word, v in found.vectors.items()} == {
        "the": pytest.approx([0.5, -1, 0.2]),
        ". . .": [1, 2, 3],
        "cat": [1, 1, 1],
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the 1 2 3\ncat 1 2\n", "line 2: expected a word and 3 numbers, found 3 parts: 'cat 1 2'"),
        ("the 1 2 3\ncat 1 x 3\n", "line 2: 'x' is not a number"),
        ("the 1 2 3\ncat 1 nan 3\n", "line 2: a number that is not finite"),
        ("9 3\ncat 1 2\n", "line 2: expected a word and 3 numbers"),
        ("the 1 2\n\n", "line 2: expected a word and 2 numbers"),
        ("", "no word vectors in it"),
        ("word\n", "line 1: expected a word and 1 numbers"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "v.txt"
    path.write_text(text)
    with pytest.raises(DataError, match=words):
        read_vectors(path, {"the", "cat"})


def test_what_is_no_file_of_vectors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_vectors(tmp_path / "none", set())
    (tmp_path / "v.gz").write_bytes(b"not gz")
    with pytest.raises(DataError, match="cannot be read"):
        read_vectors(tmp_path / "v.gz", set())
