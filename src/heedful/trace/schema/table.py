"""The weights of a site as a labeled table, by word or by token."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from heedful.trace.schema.fold import NO_WORD, Array, fold
from heedful.trace.schema.side import Side, Token
from heedful.trace.schema.site import SideName


class Noun(NamedTuple):
    """What the rows or columns of a table are called."""

    singular: str
    plural: str


REGION, INPUT_WORD = Noun("region", "regions"), Noun("input word", "input words")
OUTPUT_WORD = Noun("output word", "output words")
INPUT_NOUNS = {"recommend": Noun("item of the history", "items of the history")}  # task -> input token
OUTPUT_NOUNS = {  # task -> output token
    "classify": Noun("label", "labels"),
    "recommend": Noun("recommended item", "recommended items"),
}


class AttentionTable(NamedTuple):
    """Labels, weights (row, column), gold links (row, column), and what rows and columns are called."""

    rows: list[str]
    columns: list[str]
    weights: Array
    gold: list[tuple[int, int]]
    row_noun: Noun
    column_noun: Noun


class TokenGroups(NamedTuple):
    """Positions that form a row or column, their labels, and the row or column of each word."""

    positions: list[list[int]]
    labels: list[str]
    index_of_word: dict[int, int]


def side_noun(side: SideName, task: str, image: bool) -> Noun:
    """Return what the tokens of a side are called."""
    if side == "target":
        return OUTPUT_NOUNS.get(task, OUTPUT_WORD)
    return REGION if image else INPUT_NOUNS.get(task, INPUT_WORD)


def group_tokens(side: Side, words: bool, specials: bool, punctuation: bool = False) -> TokenGroups:
    """Group the positions of a side by word (or one by one), with or without start and end tokens.

    With `punctuation`, punctuation marks that are tokens are groups of their own.
    """
    groups = TokenGroups([], [], {})
    for position, token in enumerate(side.tokens):
        if token.word == NO_WORD:
            if specials or token.role == "normal":
                groups.positions.append([position])
                groups.labels.append(token.text)
        elif words and token.word in groups.index_of_word:
            groups.positions[groups.index_of_word[token.word]].append(position)
        else:
            groups.index_of_word.setdefault(token.word, len(groups.positions))
            groups.positions.append([position])
            groups.labels.append(side.words[token.word] if words else token.text)
    return _split_punctuation(side, groups) if words and punctuation else groups


def _split_punctuation(side: Side, groups: TokenGroups) -> TokenGroups:
    """Separate the punctuation before and after words; links of a word go to the word without it."""
    split = TokenGroups([], [], {})
    word_of_group = {index: word for word, index in groups.index_of_word.items()}
    for index, (positions, label) in enumerate(zip(groups.positions, groups.labels, strict=True)):
        texts = [_plain_text(side.tokens[position]) for position in positions]
        start, stop = _core(texts)
        if index not in word_of_group or "".join(texts) != label:
            start, stop = 0, len(texts)
        for part in range(start):
            split.positions.append([positions[part]])
            split.labels.append(texts[part])
        if index in word_of_group:
            split.index_of_word[word_of_group[index]] = len(split.positions)
        split.positions.append(positions[start:stop])
        split.labels.append(label if (start, stop) == (0, len(texts)) else "".join(texts[start:stop]))
        for part in range(stop, len(texts)):
            split.positions.append([positions[part]])
            split.labels.append(texts[part])
    return split


def _plain_text(token: Token) -> str:
    return token.text.replace("▁", "")


def _core(texts: Sequence[str]) -> tuple[int, int]:
    """Return the first and the last (exclusive) token of a word that is not punctuation; all if every one is.

    >>> _core(['"', "Hello", "!", '"'])
    (1, 2)
    """
    inner = [index for index, text in enumerate(texts) if not _is_punctuation(text)]
    visible = [index for index in inner if texts[index]]
    return (min(inner), max(inner) + 1) if visible else (0, len(texts))


def _is_punctuation(text: str) -> bool:
    return bool(text) and all(unicodedata.category(letter)[0] in "PS" for letter in text)


def build_table(
    matrix: Array,
    rows: TokenGroups,
    columns: TokenGroups,
    gold: list[tuple[int, int]],
    nouns: tuple[Noun, Noun],
) -> AttentionTable:
    """Fold a matrix (query, key) into a table. `gold` are (source word, target word) links."""
    links = [
        (rows.index_of_word[target], columns.index_of_word[source])
        for source, target in gold
        if target in rows.index_of_word and source in columns.index_of_word
    ]
    weights = fold(matrix, rows.positions, columns.positions)
    return AttentionTable(rows.labels, columns.labels, weights, links, *nouns)
