"""Data of Python programs as tables: lists, generators, pandas, polars and pyarrow frames, and Hugging Face datasets.

Libraries are recognized by the methods of their objects, so none is imported. Rows are written once, as they come,
to a JSONL file in the cache folder whose name is a hash of its content: generators need not fit into memory, the
same data is the same file, and a recipe can name it.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Set
from datetime import date
from decimal import Decimal
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from heedful.data.paths import cache_folder
from heedful.errors import DataError

# Names of splits of datasets, and what recipes call them.
SPLIT_NAMES = {
    "train": "train",
    "validation": "valid",
    "valid": "valid",
    "val": "valid",
    "dev": "valid",
    "test": "test",
}
EXPECTED = (
    "expected a file name, a list of tuples or dicts, a dict of columns, a generator, a pandas, polars or pyarrow"
    " table, or a dataset"
)


def split_datasets(data: object) -> dict[str, object]:
    """Return the splits of a `DatasetDict`, or of a dict of tables; anything else is training data.

    >>> split_datasets({"train": [("a", "b")], "validation": [("c", "d")]})
    {'train': [('a', 'b')], 'valid': [('c', 'd')]}
    """
    if data is None:
        raise DataError(f"{EXPECTED}, got None")
    if not isinstance(data, Mapping) or not data:
        return {"train": data}
    if "train" in data and set(data) <= set(SPLIT_NAMES):
        return {SPLIT_NAMES[name]: split for name, split in data.items()}
    if not all(map(_is_table, data.values())):
        return {"train": data}
    others = ", ".join(list(SPLIT_NAMES)[1:])
    raise DataError(f"splits of data: expected train and perhaps {others}; found {', '.join(map(str, data))}")


def _is_table(value: object) -> bool:
    """Return whether a value of a dict is a table of its own, and not a column."""
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(row, list | tuple | Mapping) for row in value[:10])
    return hasattr(value, "columns") or hasattr(value, "column_names") or hasattr(value, "features")


def iter_rows(data: Any) -> Iterator[dict[str, Any] | list[Any]]:
    """Yield the rows of any supported object: dicts if its columns have names, else lists.

    >>> list(iter_rows([("good", 1), ("bad", 0)]))
    [['good', 1], ['bad', 0]]
    >>> list(iter_rows({"text": ["good", "bad"], "label": [1, 0]}))
    [{'text': 'good', 'label': 1}, {'text': 'bad', 'label': 0}]
    """
    if isinstance(data, str | bytes):
        raise DataError(f"{EXPECTED}, got text")
    if hasattr(data, "itertuples") and hasattr(data, "columns"):  # pandas
        names = [str(name) for name in data.columns]
        if len(set(names)) < len(names):
            raise DataError(f"two columns have the same name; the columns are: {', '.join(names[:20])}")
        return (dict(zip(names, row, strict=True)) for row in data.itertuples(index=False, name=None))
    if hasattr(data, "iter_rows") and hasattr(data, "columns"):  # polars
        return iter(data.iter_rows(named=True))
    if hasattr(data, "to_batches") and hasattr(data, "column_names"):  # pyarrow
        return (row for batch in data.to_batches() for row in batch.to_pylist())
    if hasattr(data, "collect_schema") and hasattr(data, "collect"):  # a lazy frame of polars
        return iter_rows(data.collect())
    if hasattr(data, "to_pylist") and hasattr(data, "schema"):  # a record batch of pyarrow
        return iter(data.to_pylist())
    if isinstance(data, Mapping):
        return _column_rows(data)
    if hasattr(data, "features") and hasattr(data, "with_format"):  # a dataset, whatever its rows are converted to
        data = data.with_format(None)
    if not isinstance(data, Iterable):
        raise DataError(f"{EXPECTED}, got {type(data).__name__}")
    return _plain_rows(data, _label_names(data))


def _column_rows(columns: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name, values in columns.items():
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise DataError(f"a dict of columns needs a list per column; {name}: got {type(values).__name__}")
    lists = {str(name): list(values) for name, values in columns.items()}
    if len({len(values) for values in lists.values()}) > 1:
        sizes = ", ".join(f"{name}: {len(values):,}" for name, values in lists.items())
        raise DataError(f"a dict of columns needs columns of one length; {sizes}")
    return (dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True))


def _label_names(data: object) -> dict[str, Any]:
    """Return functions from numbers to names for the columns of a Hugging Face dataset that have them."""
    features = getattr(data, "features", None)
    if not isinstance(features, Mapping):
        return {}
    return {name: feature.int2str for name, feature in features.items() if hasattr(feature, "int2str")}


def _plain_rows(data: Iterable[Any], label_names: Mapping[str, Any]) -> Iterator[dict[str, Any] | list[Any]]:
    for number, row in enumerate(data, 1):
        if isinstance(row, Mapping):
            names = {name: name_of(row[name]) for name, name_of in label_names.items() if _is_label(row.get(name))}
            yield {**row, **names}
        elif isinstance(row, str):
            yield [row]
        elif isinstance(row, Iterable) and not isinstance(row, bytes | Set):  # a set has no order
            yield list(row)
        else:
            raise DataError(f"row {number}: expected a tuple, a list, a dict or text, got {type(row).__name__}")


def _is_label(value: object) -> bool:
    return isinstance(value, int) and value >= 0  # -1 is a row without a label


def store_table(data: object) -> Path:
    """Write the rows of any supported object to a file in the cache folder, and return its path."""
    folder = cache_folder() / "tables"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, draft_name = tempfile.mkstemp(prefix=".draft-", dir=folder)
    except OSError as error:
        raise DataError(f"{folder}: cannot be written: {error.strerror}; set HEEDFUL_CACHE to another folder") from None
    draft = Path(draft_name)
    digest = hashlib.sha256()
    try:
        with os.fdopen(handle, "wb") as file:
            for row in iter_rows(data):
                line = (
                    json.dumps(row, ensure_ascii=False, default=_plain_value).encode("utf-8", "surrogatepass") + b"\n"
                )
                digest.update(line)
                file.write(line)
            if not file.tell():
                raise DataError("the data has no rows")
        path = folder / f"{digest.hexdigest()[:32]}.jsonl"
        draft.replace(path)
        return path
    finally:
        draft.unlink(missing_ok=True)


def _plain_value(value: Any) -> object:
    """Return numbers and arrays of other libraries, dates and missing values as JSON has them.

    Other objects become a list with the name of their type: only a column that is used is an error later.
    """
    if type(value).__name__ in ("NAType", "NaTType"):  # missing values of pandas; NaT is a date, too
        return None
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if hasattr(value, "tolist"):  # NumPy and torch
        return value.tolist()
    return [f"<{type(value).__name__}>"]
