"""Tokenizers encode lines as ids and decode them, by the `tokenizers` library.

There are four kinds: `word` splits at white space and `character` into code points, and rare ones become `<unk>`;
`bpe` and `unigram` split into subwords over bytes. `tokenizer_training.py` trains them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from itertools import accumulate
from pathlib import Path
from typing import Literal, Self

import tokenizers
from tokenizers import models

from heedful.config import TokenizerConfig
from heedful.data.asset_files import read_json
from heedful.data.pairs import TextPair
from heedful.data.tokenizer_file import check_tokenizer
from heedful.data.tokenizer_training import (
    BYTE_OF_CHARACTER,
    END,
    PAD,
    SPECIALS,
    START,
    UNK,
    all_cores,
    train_subwords,
    train_units,
)
from heedful.errors import ModelError

__all__ = ["END", "NO_WORD", "PAD", "SPECIALS", "START", "UNK", "Tokenizer", "TokenizerKind", "train_tokenizers"]

MANY_LINES = 500  # from which on several threads are started to encode them: a few ms of work
NO_WORD = -1  # index for tokens that belong to no word
TokenizerKind = Literal["word", "character", "bytes"]


class Tokenizer:
    """The tokenizer of one side. Ids 0-3 are `<pad> <unk> <s> </s>`; no other id is special."""

    def __init__(self, inner: tokenizers.Tokenizer) -> None:
        self._inner = inner
        self.kind = _find_kind(inner)
        self._bytes_cache: dict[int, bytes] = {}

    @property
    def unit(self) -> str:
        """What its vocabulary consists of: "words", "characters" or "subwords"."""
        return {"word": "words", "character": "characters", "bytes": "subwords"}[self.kind]

    @property
    def lowercases(self) -> bool:
        """Whether it lower-cases its input."""
        normalizer = self._inner.normalizer
        return normalizer is not None and "a" in normalizer.normalize_str("A")

    @classmethod
    def train(cls, lines: Iterable[str], config: TokenizerConfig) -> Self:
        """Train a vocabulary of the most frequent words, characters or subwords of these lines, read once.

        >>> tokenizer = Tokenizer.train(["a cat", "a dog"], TokenizerConfig())
        >>> tokenizer.tokens(tokenizer.encode("a bird"))
        ['a', '<unk>', '</s>']
        """
        if config.kind in ("bpe", "unigram"):
            return cls(train_subwords(lines, config))
        return cls(train_units(lines, config))

    def encode(self, line: str) -> list[int]:
        """Return the ids of a line, and the end token."""
        ids: list[int] = self._inner.encode(line, add_special_tokens=False).ids
        return [*ids, END]

    def encode_all(self, lines: Sequence[str]) -> list[list[int]]:
        """Encode many lines, on all available cores if they are so many that it pays."""
        with all_cores() if len(lines) >= MANY_LINES else nullcontext():
            encodings = self._inner.encode_batch_fast(list(lines), add_special_tokens=False)
        return [[*encoding.ids, END] for encoding in encodings]

    def truncate(self, line: str, max_tokens: int) -> str:
        """Return the beginning of a line that has at most `max_tokens` tokens: complete words.

        A first word that is longer by itself is cut between characters.

        >>> tokenizer = Tokenizer.train(["a cat"], TokenizerConfig(kind="character"))
        >>> tokenizer.truncate("a cat", 5), tokenizer.truncate("a cat", 4), tokenizer.truncate("cats", 2)
        ('a cat', 'a', 'ca')
        """
        ids = self.encode(line)
        if len(ids) - 1 <= max_tokens:
            return line
        n_words = self.word_ids(ids)[max_tokens]  # before the one that does not fit
        if n_words > 0:
            return " ".join(line.split()[:n_words])
        text = line.strip()[:max_tokens]  # a character has at least one token
        while len(self.encode(text)) - 1 > max_tokens:
            text = text[: len(text) // 2]
        return text

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return each token as readable text: "▁" for a space, the bytes for a part of a character."""
        return [self.token_text(i) for i in ids]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the line of these ids, without padding, start and end tokens."""
        ids = [i for i in ids if i not in (PAD, START, END)]
        if self.kind == "word":
            return " ".join(self.tokens(ids))
        text = b"".join(map(self._bytes, ids)).decode("utf-8", errors="replace")
        return text.removeprefix(" ") if self.kind == "bytes" else text

    def word_ids(self, ids: Sequence[int]) -> list[int]:
        """Return for each token the index of its word, of the text split at white space.

        A space belongs to the word after it (at the end of the line: before it); padding, start, end, and spaces
        in a text of nothing else have `NO_WORD`.

        >>> tokenizer = Tokenizer.train(["ab a"], TokenizerConfig(kind="character"))
        >>> tokenizer.word_ids(tokenizer.encode("ab a"))
        [0, 0, 1, 1, -1]
        """
        real = [i not in (PAD, START, END) for i in ids]
        if self.kind == "word":
            numbers = iter(range(len(ids)))
            return [next(numbers) if is_real else NO_WORD for is_real in real]
        raw = [self._bytes(i) if is_real else b"" for i, is_real in zip(ids, real, strict=True)]
        word_of_byte = _word_of_each_byte(b"".join(raw))
        starts = accumulate(map(len, raw), initial=0)
        return [word_of_byte[start] if is_real else NO_WORD for is_real, start in zip(real, starts, strict=False)]

    def word_texts(self, ids: Sequence[int]) -> list[str]:
        """Return the words that `word_ids` counts."""
        return self.decode(ids).split()

    def vocabulary(self) -> list[str]:
        """Return every token by its id, in the spelling of the library."""
        return [self._name(i) for i in range(len(self))]

    def __len__(self) -> int:
        return int(self._inner.get_vocab_size())

    def to_json(self) -> str:
        """Return the tokenizer as JSON, the same text for the same vocabulary."""
        return str(self._inner.to_str(pretty=False))

    def save(self, path: Path) -> None:
        path.write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Load a tokenizer written by `save`; anything else raises ModelError before the library sees it."""
        try:
            tree = read_json(path)
        except (OSError, ValueError) as error:
            raise ModelError(f"{path}: not a tokenizer: {error}") from None
        try:
            check_tokenizer(tree)
        except ValueError as error:
            raise ModelError(f"{path}: not a tokenizer of heedful: {error}") from None
        try:
            return cls(tokenizers.Tokenizer.from_str(json.dumps(tree)))
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException as error:  # the library's errors are bare Exceptions, and its panics not even that
            raise ModelError(f"{path}: not a tokenizer: {error}") from None

    def _name(self, id: int) -> str:
        """Return a token in the spelling of the library; `<unk>` for an id outside the vocabulary."""
        name = self._inner.id_to_token(id) if id >= len(SPECIALS) else None
        return name if name is not None else SPECIALS[id if 0 <= id < len(SPECIALS) else UNK]

    def _bytes(self, id: int) -> bytes:
        if id not in self._bytes_cache:
            name = self._name(id)
            if self.kind == "bytes" and id >= len(SPECIALS):
                raw = bytes(BYTE_OF_CHARACTER[character] for character in name if character in BYTE_OF_CHARACTER)
            else:
                raw = name.encode("utf-8")
            self._bytes_cache[id] = raw
        return self._bytes_cache[id]

    def token_text(self, id: int) -> str:
        """Return one token as readable text."""
        if id < len(SPECIALS) or self.kind == "word":
            return self._name(id)
        text = self._bytes(id).decode("utf-8", errors="surrogateescape")
        parts = (f"<{ord(c) - 0xDC00:02X}>" if "\udc80" <= c <= "\udcff" else c for c in text)
        return "".join(parts).replace(" ", "▁")


def train_tokenizers(pairs: Iterable[TextPair], config: TokenizerConfig) -> tuple[Tokenizer, Tokenizer]:
    """Train the tokenizers of source and target; a shared one reads `pairs` once, else they are read twice."""
    if config.shared:
        shared = Tokenizer.train((text for pair in pairs for text in pair[:2]), config)
        return shared, shared
    kind = config.kind if config.target_kind == "same" else config.target_kind
    target = config.model_copy(update={"kind": kind, "decompose": False})  # only sources are decomposed
    return (
        Tokenizer.train((pair.source for pair in pairs), config),
        Tokenizer.train((pair.target for pair in pairs), target),
    )


def _find_kind(inner: tokenizers.Tokenizer) -> TokenizerKind:
    if not isinstance(inner.model, models.WordLevel):
        return "bytes"
    split = json.loads(inner.to_str())["pre_tokenizer"]
    return "word" if split["behavior"] == "Removed" else "character"


def _word_of_each_byte(raw: bytes) -> list[int]:
    """Return for each byte, and for the end, the index of its word or, for white space, of the next word."""
    words: list[int] = []
    word, outside, spaces = NO_WORD, True, 0
    for character in raw.decode("utf-8", errors="surrogateescape"):
        size = len(character.encode("utf-8", errors="surrogateescape"))
        if character.isspace():
            outside, spaces = True, spaces + size
            continue
        word += outside
        words += [word] * (spaces + size)
        outside, spaces = False, 0
    return words + [word] * (spaces + 1)
