"""Data of Python programs: every kind of object gives the same rows."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import datasets
import numpy
import pandas
import polars
import pyarrow
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
    module = importlib.import_module(library)
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


NESTED = [{"translation": {"en": "tea", "vi": "trà"}, "id": 1}, {"translation": {"en": "cat", "vi": "mèo"}, "id": 2}]


@pytest.mark.filterwarnings("ignore")
def test_nested_fields_of_frames_and_datasets_are_columns() -> None:
    columns = DataConfig.model_validate({"train": "t", "valid": "v", "columns": ["translation.en", "translation.vi"]})
    for data in (
        NESTED,
        polars.DataFrame(NESTED),
        pandas.DataFrame(NESTED),
        pyarrow.Table.from_pylist(NESTED),
        pyarrow.RecordBatch.from_pylist(NESTED),
        datasets.Dataset.from_list(NESTED),
        datasets.Dataset.from_list(NESTED).to_iterable_dataset(),
    ):
        pairs = PairFiles([str(store_table(data))], Path(), columns)
        assert list(pairs) == [TextPair("tea", "trà"), TextPair("cat", "mèo")], type(data)


def test_a_column_of_other_objects_is_an_error_only_if_it_is_used() -> None:
    frame = pandas.DataFrame(
        {
            **COLUMNS,
            "vector": [numpy.zeros(2), numpy.ones(2)],
            "image": [b"x", object()],
            "price": [Decimal("1.5"), None],
        }
    )
    path = store_table(frame)
    assert list(PairFiles([str(path)], Path(), roles=LABEL_ROLES)) == PAIRS
    image = DataConfig.model_validate({"train": "t", "valid": "v", "columns": ["text", "image"]})
    with pytest.raises(DataError, match=r'column "image": expected text, found \["<bytes>"\]'):
        list(PairFiles([str(path)], Path(), image, roles=LABEL_ROLES))
    assert list(iter_rows([("a", numpy.bool_(True))])) == [["a", True]]
    store_table([("a", numpy.bool_(True))])


def test_a_missing_date_is_blank_and_not_the_text_nat() -> None:
    path = store_table(pandas.DataFrame({"text": pandas.to_datetime(["2020-01-01", None]), "label": [1, 2]}))
    assert path.read_text().splitlines()[1] == '{"text": null, "label": 2}'


@pytest.mark.parametrize("library", ["torch", "numpy", "pandas", "arrow"])
def test_a_dataset_gives_the_same_rows_in_every_format(library: str) -> None:
    assert pairs_of(datasets.Dataset.from_dict(COLUMNS).with_format(library)) == PAIRS


def test_splits_with_other_names_are_an_error_that_lists_them() -> None:
    table = datasets.Dataset.from_dict(COLUMNS)
    for splits in (
        datasets.DatasetDict(train=table, validation_matched=table),
        datasets.DatasetDict(validation_matched=table),
        {"train": [("a", "b")], "validation_matched": [("c", "d")]},
    ):
        with pytest.raises(DataError, match=r"expected train and perhaps validation.*found .*validation_matched"):
            split_datasets(splits)
    assert split_datasets(COLUMNS) == {"train": COLUMNS}
    assert split_datasets({"train": ["a line"], "dev": ["another"]}) == {"train": ["a line"], "valid": ["another"]}


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
        ({"text": "abc", "label": "de"}, "a list per column; text: got str"),
        ([{"a", "b"}], "row 1: expected a tuple, a list, a dict or text, got set"),
        ([], "the data has no rows"),
        (pandas.DataFrame([["a", "b"]], columns=["x", "x"]), "two columns have the same name; the columns are: x, x"),
    ],
)
def test_other_objects_are_errors(data: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        store_table(data)
