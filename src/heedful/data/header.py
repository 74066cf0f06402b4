"""Whether the first line of a table names its columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

MAX_NAME_LENGTH = 40  # characters of a column's name
NAME_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
NUMBER = re.compile(r"\s*[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?\s*")
MIN_NUMBER_ROWS = 10  # rows with numbers below a name that make a header of it, unless the rows are ratings
FREE_TEXT_ROLES = frozenset(("source", "target", "text", "caption", "title"))
# Words of which columns' names consist.
NAME_WORDS = frozenset(
    "source src target tgt text texts sentence sentences label labels category class classes intent sentiment"
    " topic emotion question questions answer answers query response reply utterance context input output prompt"
    " completion document article summary headline title titles review comment tweet content body user users item"
    " items movie film book product song rating ratings score stars timestamp time date id ids index image images"
    " caption captions file filename path name url lang language english french vietnamese german spanish italian"
    " russian chinese japanese korean portuguese dutch translation word words pronunciation phonemes lemma split"
    " fold original transcript message polarity domain".split()
)
LANGUAGE_NAMES = frozenset(
    "english french vietnamese german spanish italian russian chinese japanese korean portuguese dutch".split()
)
# Codes of languages, which name the columns of translations. Each occurs in a header as a whole name.
LANGUAGE_CODES = frozenset(
    "ar bg bn ca cs da de el en es et eu fa fi fr ga gl he hi hr hu id is it ja ka ko lt lv ms nl no pl pt ro ru sk sl"
    " sq sr sv sw ta th tl tr uk ur vi zh ara ces cmn dan deu ell eng fin fra heb hin hun ind ita jpn kor nld nor pol"
    " por ron rus spa swe tha tur ukr vie zho".split()
)
MIN_INDEX_ROWS = 3  # rows that are numbered one by one below a blank cell, as pandas writes its index
MIN_LABEL_ROWS, MIN_LABEL_COUNT = 50, 3  # rows of a column of labels, and how often each occurs at least


def is_header(rows: Sequence[Sequence[str]], roles: Sequence[str] = ()) -> bool:
    """Return whether the first of some rows names the columns, in a table for columns of these `roles`.

    It does if all of its cells could be names, none of them occurs below, and enough of them are words that columns
    are named by: half of them, and at least two where all columns are texts, because a text may be such a word.
    Numbers below a name are a sign, too: in ratings always, in other tables if there are many of them, and never
    where all columns are texts. So are labels that all occur often, except the first. Above an index, as pandas
    writes it, a blank cell is enough; columns without a name and nearly without values do not count.

    >>> is_header([["text", "label"], ["good film", "1"]]), is_header([["good film", "1"], ["text", "0"]])
    (True, False)
    >>> is_header([["u", "i"], ["1", "7"]], ("user", "item")), is_header([["A", "B"], ["0", "0"]], ("source", "target"))
    (True, False)
    >>> is_header([["en", "vi"], ["Hi.", "Chào."]]), is_header([["Title", "Titre"], ["a", "b"]], ("source", "target"))
    (True, False)
    """
    if _has_index(rows):
        return True
    rows = _without_blank_columns(rows)
    first, below = [cell.strip() for cell in rows[0]], rows[1:]
    could_be_names = all(_could_be_name(cell) for cell in first) and len({cell.lower() for cell in first}) == len(first)
    known = sum(map(_is_known_name, first))
    all_texts = len(first) <= sum(role in FREE_TEXT_ROLES for role in roles)
    if not below or not could_be_names:  # a file of a header only
        return could_be_names and not all_texts and known == len(first) >= 2
    columns = [[row[number].strip() for row in below if number < len(row)] for number in range(len(first))]
    if any(_shape(name) in map(_shape, column) for name, column in zip(first, columns, strict=True)):
        return False  # a label or a word of the data
    min_numbers = 1 if "user" in roles else MIN_NUMBER_ROWS
    numbers = any(len(column) >= min_numbers and all(map(NUMBER.fullmatch, column)) for column in columns)
    signs = numbers or ("label" in roles and any(map(_is_label_column, columns)))
    return (signs and not all_texts) or (2 * known >= len(first) and (not all_texts or known >= min(2, len(first))))


def _has_index(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the rows are numbered one by one below a blank cell."""
    numbers = [row[0].strip() for row in rows[1:] if row]
    if rows[0][0].strip() or len(rows[0]) < 2 or len(numbers) < MIN_INDEX_ROWS or not numbers[0].isdecimal():
        return False
    start = int(numbers[0])
    return start <= 1 and all(number == str(start + n) for n, number in enumerate(numbers))


def _without_blank_columns(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the rows without the columns that have no name, and a value in a tenth of the rows at most."""
    blank = {
        number
        for number, name in enumerate(rows[0])
        if not name.strip() and 10 * sum(bool(row[number].strip()) for row in rows if number < len(row)) < len(rows)
    }
    if len(blank) == len(rows[0]):
        return [list(row) for row in rows]
    return [[cell for number, cell in enumerate(row) if number not in blank] for row in rows]


def _is_label_column(cells: Sequence[str]) -> bool:
    """Return whether there are many cells with few different values, each of which occurs several times."""
    counts = Counter(cells)
    return len(cells) >= MIN_LABEL_ROWS and min(counts.values()) >= MIN_LABEL_COUNT


def _is_known_name(name: str) -> bool:
    return name.lower() in LANGUAGE_CODES or any(word.lower() in NAME_WORDS for word in NAME_WORD.findall(name))


def _shape(cell: str) -> str:
    """Return a cell with all numbers alike: "user 1" has the shape of "user 27"."""
    return re.sub(r"\d+", "0", cell)


def _could_be_name(cell: str) -> bool:
    if not cell or len(cell) > MAX_NAME_LENGTH or NUMBER.fullmatch(cell) or len(cell.split()) > 3:
        return False
    return cell[-1] not in ".!?,;:\"'" and any(character.isalpha() for character in cell)
