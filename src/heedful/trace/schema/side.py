"""The two sides of a trace: the input and the output, as tokens and words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from heedful.trace.schema.fold import NO_WORD
from heedful.trace.schema.record import Record

Role = Literal["normal", "start", "end", "unknown"]


class Token(Record):
    """One position: the token as the vocabulary writes it, and the index of its word (-1: none)."""

    text: str
    word: int = NO_WORD
    role: Role = "normal"
    id: int | None = None


class Gold(Record):
    """A reference word alignment: (source word, target word), counted from 0. Sure links are also possible."""

    sure: list[tuple[int, int]]
    possible: list[tuple[int, int]] = Field(default_factory=list)


class SourceImage(Record):
    """The input image. Its tokens are the regions of a grid (rows, columns), row by row."""

    data_uri: str
    width: Annotated[int, Field(ge=1)]
    height: Annotated[int, Field(ge=1)]
    grid: tuple[int, int]


class Side(Record):
    """The input or the output: its text, its tokens, and the words they belong to."""

    text: str
    tokens: Annotated[list[Token], Field(min_length=1)]
    words: list[str]
    reference: str | None = None  # of an output: the reference text
    image: SourceImage | None = None  # of an input that is an image


def side_from_words(words: Sequence[str]) -> Side:
    """Return a side whose tokens are words; `<s>`, `</s>` and `<unk>` get their roles by name."""
    roles: Mapping[str, Role] = {"</s>": "end", "<s>": "start", "<unk>": "unknown"}
    tokens: list[Token] = []
    plain: list[str] = []
    for word in words:
        role = roles.get(word, "normal")
        is_word = role in ("normal", "unknown")
        tokens.append(Token(text=word, word=len(plain) if is_word else NO_WORD, role=role))
        plain += [word] if is_word else []
    return Side(text=" ".join(plain), tokens=tokens, words=plain)
