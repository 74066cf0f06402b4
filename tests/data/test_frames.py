"""Data of Python programs: every kind of object gives the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from heedful.config import DataConfig
from heedful.data.frames import iter_rows, split_datasets, store_table
from heedful.data.pairs import LABEL_ROLES, PairFiles, TextPair
from heedful.errors import DataError

COLUMNS = {"text": ["good", "bad — naïve"], "label": [1, 0]}
PAIRS = [TextPair("good", "1"), TextPair("bad — naïve", "0")]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))


def pairs_of(data: object) -> list[TextPair]:
    return list(PairFiles([str(store_table(data))], Path(), roles=LABEL_ROLES))


def test_plain_objects_are_tables() -> None:
    tuples = list(zip(*COLUMNS.values(), strict=True))

    def generate() -> Iterator[tuple[Any, ...]]:
        yield from tuples

    assert pairs_of(tuples) == PAIRS
    assert pairs_of(generate()) == PAIRS
    assert pairs_of(COLUMNS) == PAIRS
    assert pairs_of([dict(zip(COLUMNS, row, strict=True)) for row in tuples]) == PAIRS
    assert list(iter_rows(["a line", "another"])) == [["a line"], ["another"]]


@pytest.mark.filterwarnings("ignore")  # those of the libraries
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "datasets"])
def test_frames_are_tables(library: str) -> None:
    module = pytest.importorskip(library)
    makers: dict[str, Callable[[], Any]] = {
        "pandas": lambda: module.DataFrame(COLUMNS),
        "polars": lambda: module.DataFrame(COLUMNS),
        "pyarrow": lambda: module.table(COLUMNS),
        "datasets": lambda: module.Dataset.from_dict(COLUMNS),
    }
    make = makers[library]
    assert pairs_of(make()) == PAIRS
    if library == "polars":
        assert pairs_of(make().lazy()) == PAIRS
    if library == "datasets":
        named = make().cast_column("label", module.ClassLabel(names=["no", "yes"]))
        assert [pair.target for pair in pairs_of(named)] == ["yes", "no"]
        assert set(split_datasets(module.DatasetDict(train=named, validation=named))) == {"train", "valid"}


class Frame:
    """Something with the methods of a pandas frame, where pandas is not installed."""

    columns = ("text", "label")

    def itertuples(self, index: bool, name: str | None) -> Iterator[tuple[object, ...]]:
        return zip(*COLUMNS.values(), strict=True)


class Label:
    """A feature of a dataset that has names for its numbers."""

    def int2str(self, number: int) -> str:
        return ("no", "yes")[number]


class Dataset(list[dict[str, object]]):
    """Something with the attributes of a dataset, where datasets is not installed."""

    features: ClassVar = {"text": object(), "label": Label()}


def test_libraries_are_recognized_by_their_methods() -> None:
    assert pairs_of(Frame()) == PAIRS
    rows = Dataset({"text": text, "label": label} for text, label in zip(*COLUMNS.values(), strict=True))
    assert [pair.target for pair in pairs_of(rows)] == ["yes", "no"]


def test_the_same_data_is_the_same_file_and_a_draft_is_removed() -> None:
    first = store_table(COLUMNS)
    assert store_table(Frame()) == first
    assert store_table([("a", "b")]) != first

    def broken() -> Iterator[tuple[str, str]]:
        yield "a", "b"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store_table(broken())
    assert len(list(first.parent.iterdir())) == 2


def test_missing_values_are_bad_lines() -> None:
    path = store_table([("a", None), ("b", float("nan")), ("c", "d")])
    skip = DataConfig.model_validate({"train": "t", "valid": "v", "on_error": "skip"})
    pairs = PairFiles([str(path)], Path(), skip)
    assert list(pairs) == [TextPair("c", "d")]
    assert pairs.bad_lines.count == 2


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (3, "expected a file name, a list of tuples .* got int"),
        ("a.csv", "got text"),
        ([("a", "b"), 3], "row 2: expected a tuple, a list, a dict or text, got int"),
        ({"text": ["a"], "label": []}, "columns of one length; text: 1, label: 0"),
        ([("a", object())], "a cell has a object"),
    ],
)
def test_other_objects_are_errors(data: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        store_table(data)
