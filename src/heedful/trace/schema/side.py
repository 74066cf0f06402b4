"""The two sides of a trace: the input and the output, as tokens and words."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field, field_validator

from heedful.trace.schema.fold import NO_WORD
from heedful.trace.schema.record import Integer, Record

Role = Literal["normal", "start", "end", "unknown"]


IMAGE_KINDS = tuple(f"data:image/{kind};base64" for kind in ("jpeg", "png", "gif", "webp"))
MAX_IMAGE_LETTERS = 16_000_000
Pixels = Annotated[int, Field(ge=1, le=10_000)]


class Token(Record):
    """One position: the token as the vocabulary writes it, and the index of its word (-1: none)."""

    text: str
    word: Integer = NO_WORD
    role: Role = "normal"
    id: Integer | None = None


class Gold(Record):
    """A reference word alignment: (source word, target word), counted from 0. Sure links are also possible."""

    sure: list[tuple[Integer, Integer]]
    possible: list[tuple[Integer, Integer]] = Field(default_factory=list)


class SourceImage(Record):
    """The input image. Its tokens are the regions of a grid (rows, columns), row by row."""

    data_uri: str
    width: Pixels
    height: Pixels
    grid: tuple[Pixels, Pixels]

    @field_validator("data_uri")
    @classmethod
    def _check_data(cls, uri: str) -> str:
        kind, comma, data = uri.partition(",")
        if kind not in IMAGE_KINDS or not comma:
            raise ValueError(f"expected an image that starts with {IMAGE_KINDS[0]},")
        if len(data) > MAX_IMAGE_LETTERS:
            raise ValueError(f"the image has {len(data):,} letters of base64, more than {MAX_IMAGE_LETTERS:,}")
        try:
            base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise ValueError("the image is not base64") from None
        return uri


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
