"""Tables for all tasks: CSV, TSV, JSONL, JSON and Parquet files, with columns chosen by name or number.

`data.columns` chooses them; without it they are found by the names that are usual for them, such as text and label.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import islice
from numbers import Integral, Real
from pathlib import Path
from typing import NamedTuple, Protocol

from heedful.config import DataConfig
from heedful.data.delimited import SAMPLE_LINES, SEPARATORS, DelimitedFile, Record
from heedful.data.header import NAME_WORD
from heedful.data.json_rows import JSON_SUFFIXES, JSONL_SUFFIXES, MISSING, JsonRows, look_up
from heedful.data.lines import EXCERPT_LENGTH, MAX_NAMES, BadLine, parse_column
from heedful.data.parquet import ParquetRows
from heedful.errors import DataError
from heedful.section import Column
from heedful.terminal_text import shorten

PARQUET_SUFFIXES = (".parquet", ".pq")
TABLE_SUFFIXES = (*JSONL_SUFFIXES, *JSON_SUFFIXES, *PARQUET_SUFFIXES, ".csv", ".csv.gz", ".tsv", ".tsv.gz")
RATING_ROLES = ("user", "item", "time")
MAX_COLUMNS_LISTED = 20
OTHER_SEPARATORS = "|:^~"  # which are not found by themselves

# What a column may be called, by its role. A column has a role if a word of its name is among these.
ROLE_WORDS: Mapping[str, frozenset[str]] = {
    role: frozenset(words.split())
    for role, words in {
        "source": "source src input text sentence question query prompt document article context utterance word"
        " content",
        "target": "target tgt output label answer response reply summary headline title translation completion"
        " pronunciation phonemes",
        "text": "text texts sentence review comment tweet utterance question query content body document message"
        " title source input",
        "label": "label labels category class intent sentiment topic emotion polarity stars rating target output",
        "user": "user users customer reader member visitor",
        "item": "item items movie film book product song article track artist game",
        "time": "time timestamp date",
        "image": "image images file filename photo picture path img",
        "caption": "caption captions text sentence description comment",
        "title": "title titles name label",
    }.items()
}


class Row(NamedTuple):
    """The texts of the chosen columns of one row, and the line it begins in."""

    line: int
    texts: tuple[str, ...]


class RowSource(Protocol):
    """A file with rows: `names` are its columns, or empty if they have none."""

    path: Path

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def n_columns(self) -> int: ...
    def __iter__(self) -> Iterator[Record | BadLine]: ...
    def describe(self) -> str: ...


class Table:
    """A file with rows and columns; `roles` say what the columns of `data.columns` are, such as source and target.

    The first `required` roles must have a column; a blank cell of one of them makes a bad line. `setting` names the
    setting of the columns in errors.
    """

    def __init__(
        self,
        path: Path,
        roles: Sequence[str],
        data: DataConfig | None = None,
        columns: Sequence[Column] | None = None,
        required: int | None = None,
        setting: str = "data.columns",
    ) -> None:
        data = data if data is not None else DataConfig.model_construct()
        self.path, self.roles, self.setting = path, tuple(roles), setting
        self.required = len(self.roles) if required is None else required
        given = tuple(data.columns if columns is None else columns)
        self.where = [_parse_condition(text) for text in data.where] if columns is None else []
        wanted = [*given, *(column for column, _ in self.where)]
        self.rows = open_rows(path, data, wanted, self.roles)
        self.columns: tuple[Column, ...] = self._choose(given)

    def describe(self) -> str:
        """Return a line for the log: the format that was found, and the column of each role."""
        columns = (shorten(str(column), MAX_NAMES) for column in self.columns)
        chosen = ", ".join(f"{role}: column {column}" for role, column in zip(self.roles, columns, strict=False))
        return f"{self.rows.describe()}; {chosen} ({self.setting})"

    def __iter__(self) -> Iterator[Row | BadLine | None]:
        """Yield the texts of every row; None: a row that `data.where` excludes."""
        getters = [self._getter(column) for column in (*self.columns, *(column for column, _ in self.where))]
        n_chosen = len(self.columns)
        for record in self.rows:
            if isinstance(record, BadLine):
                yield record
                continue
            line, cells = record
            values = [getter(cells) for getter in getters]
            if MISSING in values:
                yield BadLine(self.path, line, self._missing(cells, values.index(MISSING)))
                continue
            conditions = zip(values[n_chosen:], self.where, strict=True)
            if any(as_text(value) != expected for value, (_, expected) in conditions):
                yield None
            else:
                yield from (self._row(line, row) for row in self._expand(values[:n_chosen]))

    def _expand(self, values: list[object]) -> Iterable[list[object]]:
        """Return the cells of each row that one record stands for."""
        return [values]

    def _row(self, line: int, values: Sequence[object]) -> Row | BadLine:
        checked: list[str] = []
        for number, value in enumerate(values):
            text = as_text(value)
            if text is None:
                found = json.dumps(value, ensure_ascii=False, default=repr)[:EXCERPT_LENGTH]
                return BadLine(self.path, line, f"{self._name(number)}: expected text, found {found}")
            if number < self.required and not text.strip():
                return BadLine(self.path, line, f"{self._name(number)} is blank")
            if any("\ud800" <= character <= "\udfff" for character in text):
                reason = "contains half a surrogate pair, which is not valid Unicode"
                return BadLine(self.path, line, f"{self._name(number)}: {reason}")
            checked.append(text)
        return Row(line, tuple(checked))

    def _name(self, number: int) -> str:
        column = self.columns[number]
        return f"column {column}" if isinstance(column, int) else f'column "{column}"'

    def _missing(self, cells: object, number: int) -> str:
        column = (*self.columns, *(column for column, _ in self.where))[number]
        if isinstance(cells, Mapping):
            return f'no column "{column}"; the columns are: {_listed(cells)} ({self.setting})'
        found = [str(cell) for cell in cells] if isinstance(cells, Sequence) else []
        if not any(cell.strip() for cell in found):
            return "blank"
        excerpt = " | ".join(found)[:EXCERPT_LENGTH]
        expected = f"at least {self._index(column) + 1} columns{self._separator()}"
        return f"expected {expected}; found {len(found)} column(s): {excerpt!r} ({self.setting})"

    def _separator(self) -> str:
        separator = self.rows.dialect.separator if isinstance(self.rows, DelimitedFile) else ""
        return f" separated by a {SEPARATORS[separator]}" if separator in SEPARATORS else ""

    def _getter(self, column: Column) -> Callable[[object], object]:
        if isinstance(self.rows, DelimitedFile) or not self.rows.names:
            index = self._index(column)
            return lambda cells: cells[index] if index < len(cells) else MISSING  # type: ignore[index, arg-type]
        name = self.rows.names[column - 1] if isinstance(column, int) else column
        return lambda cells: look_up(cells, name)  # type: ignore[arg-type]

    def _index(self, column: Column) -> int:
        return column - 1 if isinstance(column, int) else self.rows.names.index(column)

    # --- the choice of columns ---

    def _choose(self, given: Sequence[Column]) -> tuple[Column, ...]:
        """Return the columns of `data.columns`, or those found by their names; all problems are one error."""
        problems = [self._check(column, self.setting) for column in given]
        problems += [self._check(column, "data.where") for column, _ in self.where]
        if given and not self.required <= len(given) <= len(self.roles):
            listed = " and ".join(self.roles[: self.required])
            problems.append(f"{self.setting}: expected {self.required} ({listed}), got {len(given)}")
        if any(problems):
            raise DataError("\n".join([*filter(None, problems), self._there()]))
        return tuple(given) or self._find_columns()

    def _check(self, column: Column, setting: str) -> str:
        names = self.rows.names
        if isinstance(column, int):
            if not names or column <= len(names):
                return ""
            return f"{self.path}: {setting} = {column}: there are only {len(names)} columns"
        if not names:
            return f'{self.path}: {setting} = "{column[:EXCERPT_LENGTH]}": no such name in the first line'
        if column in names or (not isinstance(self.rows, DelimitedFile) and self._is_in_sample(column)):
            return ""
        close = difflib.get_close_matches(column, names, n=1)
        hint = f'; did you mean "{close[0]}"?' if close else ""
        return f'{self.path}: {setting} = "{column[:EXCERPT_LENGTH]}": no such column{hint}'

    def _is_in_sample(self, column: str) -> bool:
        """Return whether one of the first rows has a field; rows of JSON may have different ones."""
        records = [record for record in islice(self.rows, SAMPLE_LINES) if isinstance(record, Record)]
        cells = [record.cells for record in records if isinstance(record.cells, Mapping)]
        return any(look_up(fields, column) is not MISSING for fields in cells)

    def _there(self) -> str:
        if self.rows.names:
            return f"its columns are: {_listed(self.rows.names)}"
        return f"it has no header; give numbers from 1 to {self.rows.n_columns}"

    def _find_columns(self) -> tuple[Column, ...]:
        names = self.rows.names
        if not names:
            return tuple(range(1, self.required + 1))
        found = find_roles(names, self.roles)
        if all(role in found for role in self.roles[: self.required]):
            chosen = [found[role] for role in self.roles if role in found]
            return tuple(chosen[: self.required] if len(chosen) < len(self.roles) else chosen)
        if len(names) == self.required:
            return tuple(names)
        roles = " and ".join(self.roles[: self.required])
        raise DataError(
            f"{self.path}: set {self.setting} to the names or numbers of the columns of {roles}; {self._there()}"
            f"{self._separator_hint()}"
        )

    def _separator_hint(self) -> str:
        """Return what to do if the only column of a text file contains a character that may divide it."""
        names = self.rows.names
        mark = next((mark for mark in OTHER_SEPARATORS if mark in names[0]), "") if len(names) == 1 else ""
        is_text = isinstance(self.rows, DelimitedFile)
        return f'; if "{mark}" divides the columns, set data.separator to it' if is_text and mark else ""


def open_rows(path: Path, data: DataConfig, wanted: Sequence[Column] = (), roles: Sequence[str] = ()) -> RowSource:
    """Return the rows of a file; the format follows from its name, a header from `wanted` columns and their `roles`."""
    name = path.name.lower()
    if name.endswith((*JSONL_SUFFIXES, *JSON_SUFFIXES)):
        return JsonRows(path)
    if name.endswith(PARQUET_SUFFIXES):
        return ParquetRows(path)
    return DelimitedFile(path, data.header, data.separator, wanted, roles)


def is_table(path: Path) -> bool:
    """Return whether the name of a file says that it has columns."""
    return path.name.lower().endswith(TABLE_SUFFIXES)


def find_roles(names: Sequence[str], roles: Sequence[str]) -> dict[str, str]:
    """Return the column of each role that can be found by the names of the columns.

    An exact name is preferred to one that contains the word; each column has one role.

    >>> find_roles(["userId", "movieId", "rating", "timestamp"], ("user", "item", "time"))
    {'user': 'userId', 'item': 'movieId', 'time': 'timestamp'}
    """
    found: dict[str, str] = {}
    for exact in (True, False):
        for role in roles:
            if role in found:
                continue
            for name in names:
                words = [word.lower() for word in NAME_WORD.findall(name.rpartition(".")[2])]
                matches = role in ("".join(words), name.lower()) if exact else ROLE_WORDS[role] & set(words)
                if matches and name not in found.values():
                    found[role] = name
                    break
    return {role: found[role] for role in roles if role in found}


def as_text(value: object) -> str | None:
    """Return a cell as text, None if it is not one: numbers as they are written, cells without a value as "".

    >>> as_text("a  b"), as_text(2**60 + 1), as_text(4.0), as_text(float("nan")), as_text([1])
    ('a  b', '1152921504606846977', '4', '', None)
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        number = float(value)
        return "" if math.isnan(number) else str(int(number)) if number.is_integer() else repr(number)
    if isinstance(value, date):
        return value.isoformat()
    return "" if value is None else None


def _parse_condition(text: str) -> tuple[Column, str]:
    name, _, value = text.partition("=")
    return parse_column(name) or name.strip(), value


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - MAX_COLUMNS_LISTED:,} more" if len(listed) > MAX_COLUMNS_LISTED else ""
    return ", ".join(listed[:MAX_COLUMNS_LISTED]) + more
