"""Class labels: numbers, weights, files."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from heedful.data.labels import Labels
from heedful.errors import DataError, ModelError


def test_labels_are_loaded_as_they_were_saved(tmp_path: Path) -> None:
    labels = Labels.from_labels(["tốt", "rất  tệ", "tốt", " tốt "])
    assert (labels.names, labels.counts) == (["rất tệ", "tốt"], [1, 3])
    assert labels.encode_all(["tốt", "rất tệ "]) == [[1, 3], [0, 3]]
    labels.save(tmp_path / "labels.json")
    again = Labels.load(tmp_path / "labels.json")
    assert (again.names, again.counts) == (labels.names, labels.counts)
    with pytest.raises(DataError, match='label "tot" is not in the training data; did you mean "tốt"'):
        labels.index("tot")
    for damaged in (
        *("[]", "{", '{"a": "b"}', '{"a": 1}', "[" * 100_000, '{"a": 1, "b": 1e999}', '{"a": 1, "b": true}'),
        *('{"a": 1, "b": -1}', '{"a": 1, "b": null}', '{"a": 1, " b": 1}', '{"a": 1, "\\ud800": 1}', '["a", "b"]'),
        f'{{"a": 1, "b": {"9" * 5_000}}}',
    ):
        (tmp_path / "labels.json").write_text(damaged)
        with pytest.raises(ModelError, match="damaged"):
            Labels.load(tmp_path / "labels.json")


def test_suspicious_labels_are_an_error() -> None:
    with pytest.raises(DataError, match=r'at least two labels.*the only one is "x"'):
        Labels.from_labels(["x", "x"])
    with pytest.raises(DataError, match="30 different labels for 40 texts: are the columns of text and label swapped"):
        Labels.from_labels([f"text {n % 30}" for n in range(40)])


def test_class_weights_are_1_on_average() -> None:
    labels = Labels.from_labels(["a"] * 6 + ["b"] * 2)
    assert labels.class_weights(()) is None
    balanced = labels.class_weights(("balanced",))
    assert balanced is not None
    assert torch.allclose(balanced, torch.tensor([8 / 12, 8 / 4])), "6 and 2 texts have the same total weight"
    weights = labels.class_weights(("b=3",))
    assert weights is not None
    assert float(weights[1] / weights[0]) == pytest.approx(3)
    assert float((weights * torch.tensor([6.0, 2.0])).sum()) == pytest.approx(8), "1 on average"
    with pytest.raises(DataError, match="class_weights: no label 'c'"):
        labels.class_weights(("c=3",))
