"""A first look at data: its size, and the columns of each role, by their names or their content. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from heedful.config import DataConfig
from heedful.data.captions import read_captions
from heedful.data.header import LANGUAGE_CODES, LANGUAGE_NAMES, NAME_WORD, NUMBER
from heedful.data.json_rows import look_up
from heedful.data.line_file import LineFile
from heedful.data.lines import BadLine, BadLines
from heedful.data.pairs import PairFiles
from heedful.data.tables import RATING_ROLES, Table, as_text, find_roles, open_rows
from heedful.errors import DataError
from heedful.section import Column

MAX_LABELS = 100_000  # that are counted
SAMPLE_ROWS = 2_000  # by which columns without telling names are chosen
FIRST_TIME = 1e8  # seconds since 1970; a smaller number is no time of the last fifty years


class Profile(NamedTuple):
    """The size of some data: rows, the mean number of words on each side, `labels` of a classifier, bad lines."""

    rows: int
    source_words: float = 0.0
    target_words: float = 0.0
    labels: int = 0
    bad_lines: BadLines | None = None


class ColumnSample(NamedTuple):
    """The texts of one column in the first rows."""

    column: Column
    texts: list[str]

    @property
    def distinct(self) -> int:
        return len(set(self.texts))

    @property
    def mean_length(self) -> float:
        return sum(map(len, self.texts)) / max(1, len(self.texts))

    @property
    def is_number(self) -> bool:
        return bool(self.texts) and all(NUMBER.fullmatch(text) for text in self.texts)

    @property
    def is_time(self) -> bool:
        return self.is_number and min(float(text.replace(",", ".")) for text in self.texts) > FIRST_TIME


def guess_columns(path: Path, roles: Sequence[str], data: DataConfig, required: int) -> tuple[Column, ...]:
    """Return the columns of each role: by their names, else by their content; () if there is no way to tell.

    A label has few values and a text is long; source and target are in two languages, or the only texts, the source
    first; a time is a large number.
    """
    if data.columns:
        return data.columns
    rows = open_rows(path, data, roles=roles)
    named = find_roles(rows.names, roles) if rows.names else {}
    if all(role in named for role in roles[:required]):
        chosen = [named[role] for role in roles if role in named]
        return tuple(chosen[:required] if len(chosen) < len(roles) else chosen)
    samples = sample_columns(path, data, roles)
    if tuple(roles[:2]) == ("text", "label"):
        return _text_and_label(samples)
    if roles[0] == "user":
        times = [sample.column for sample in samples[2:] if sample.is_time]
        return (*(sample.column for sample in samples[:2]), *times[:1]) if len(samples) >= 2 else ()
    return _free_texts(samples, required, bool(rows.names))


def _free_texts(samples: Sequence[ColumnSample], required: int, has_names: bool) -> tuple[Column, ...]:
    """Return the columns of texts: of two languages, the only ones, or, for one text, the longest.

    Columns without names are taken in their order; of several with names none is preferred by its content, because
    an attribution or a comment may be longer than the texts.
    """
    texts = [sample for sample in samples if not sample.is_number] if len(samples) > required else list(samples)
    if has_names and len(texts) > required:
        languages = [sample for sample in texts if required == 2 and _is_language(str(sample.column))]
        varied = [sample for sample in texts if 2 * sample.distinct > len(sample.texts)]
        texts = languages if len(languages) == required else varied
        if required == 1:
            texts = [max(texts, key=lambda sample: sample.mean_length)] if texts else []
        elif len(texts) > required:
            return ()
    return tuple(sample.column for sample in texts[:required]) if len(texts) >= required else ()


def _is_language(name: str) -> bool:
    words = {word.lower() for word in NAME_WORD.findall(name.rpartition(".")[2])}
    return bool(words & LANGUAGE_NAMES) or name.rpartition(".")[2].lower() in LANGUAGE_CODES


def _text_and_label(samples: Sequence[ColumnSample]) -> tuple[Column, ...]:
    if len(samples) < 2:
        return ()
    text = max(samples, key=lambda sample: sample.mean_length)
    others = [sample for sample in samples if sample is not text]
    repeated = [sample for sample in others if 2 * sample.distinct <= len(sample.texts)]
    label = min(repeated or others, key=lambda sample: sample.distinct)
    return text.column, label.column


def sample_columns(path: Path, data: DataConfig, roles: Sequence[str] = ()) -> list[ColumnSample]:
    """Return the columns of a table with the texts of the first rows."""
    rows = open_rows(path, data, roles=roles)
    names: Sequence[Column] = rows.names or range(1, rows.n_columns + 1)
    samples = [ColumnSample(name, []) for name in names]
    for record in islice(rows, SAMPLE_ROWS):
        if isinstance(record, BadLine):
            continue
        for number, sample in enumerate(samples):
            text = as_text(_cell(record.cells, sample.column, number))
            if text is not None and text.strip():
                sample.texts.append(text.strip())
    return [sample for sample in samples if sample.texts]


def _cell(cells: Sequence[object] | Mapping[str, object], column: Column, number: int) -> object:
    if isinstance(cells, Mapping):
        return look_up(cells, str(column))
    return cells[number] if number < len(cells) else None


def profile_pairs(files: Sequence[str], base: Path, data: DataConfig, roles: tuple[str, str]) -> Profile:
    """Return the number of pairs, their mean lengths in words, and the number of different targets."""
    rows = source_words = target_words = 0
    targets: set[str] = set()
    pairs = PairFiles(files, base, data, roles=roles)
    for pair in pairs:
        rows += 1
        source_words += len(pair.source.split())
        target_words += len(pair.target.split())
        if len(targets) <= MAX_LABELS:
            targets.add(pair.target)
    return Profile(rows, source_words / rows, target_words / rows, len(targets), pairs.bad_lines)


def profile_ratings(path: Path, data: DataConfig) -> Profile:
    """Return the number of interactions."""
    table = Table(path, RATING_ROLES, data, required=2)
    rows, bad_lines = 0, BadLines("skip")
    for row in table:
        if isinstance(row, BadLine):
            bad_lines.add(row)
        else:
            rows += row is not None
    if not rows:
        raise DataError("\n".join(filter(None, [f"{path}: contains no rows", str(bad_lines)])))
    return Profile(rows, bad_lines=bad_lines)


def profile_captions(path: Path, data: DataConfig) -> Profile:
    """Return the number of captions and their mean length."""
    captions = [caption for image in read_captions(path, data).images for caption in image.captions]
    return Profile(len(captions), 0.0, sum(len(caption.split()) for caption in captions) / len(captions))


def profile_text(path: Path, data: DataConfig) -> Profile:
    """Return the number of lines and their mean length."""
    lines = words = 0
    file = LineFile(path, data)
    for line in file:
        lines, words = lines + 1, words + len(line.split())
    return Profile(lines, words / lines, bad_lines=file.bad_lines)
