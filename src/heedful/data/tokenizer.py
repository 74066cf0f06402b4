"""Tokenisers: from a line to numbers and back. A thin cover over the `tokenizers` library."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from heedful.config import TokenizerConfig
from heedful.errors import ModelError

PAD, UNK, START, END = 0, 1, 2, 3  # the same in every vocabulary
SPECIALS = ("<pad>", "<unk>", "<s>", "</s>")


class Tokenizer:
    """One side's vocabulary. Ids 0-3 are `<pad> <unk> <s> </s>`; no other id is special."""

    def __init__(self, inner: tokenizers.Tokenizer) -> None:
        self._inner = inner

    @classmethod
    def learn(cls, lines: Iterable[str], config: TokenizerConfig) -> Self:
        """A vocabulary of the commonest words of these lines.

        >>> tokenizer = Tokenizer.learn(["a cat", "a dog"], TokenizerConfig())
        >>> tokenizer.tokens(tokenizer.encode("a bird"))
        ['a', '<unk>', '</s>']
        """
        inner = tokenizers.Tokenizer(models.WordLevel(unk_token="<unk>"))
        inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        trainer = trainers.WordLevelTrainer(
            vocab_size=config.size,
            min_frequency=config.min_count,
            special_tokens=list(SPECIALS),
            show_progress=False,
        )
        inner.train_from_iterator(lines, trainer)
        return cls(inner)

    def encode(self, line: str) -> list[int]:
        """The ids of a line with the end token behind them."""
        # A user's text that reads like a special token is only text: it must not end the sentence.
        ids: list[int] = self._inner.encode(line, add_special_tokens=False).ids
        return [UNK if i < len(SPECIALS) else i for i in ids] + [END]

    def encode_all(self, lines: Sequence[str]) -> list[list[int]]:
        return [self.encode(line) for line in lines]

    def tokens(self, ids: Sequence[int]) -> list[str]:
        return [self._inner.id_to_token(i) or SPECIALS[UNK] for i in ids]

    def decode(self, ids: Sequence[int]) -> str:
        """The line these ids write, without what ends or pads it."""
        return " ".join(self.tokens([i for i in ids if i not in (PAD, START, END)]))

    def __len__(self) -> int:
        return int(self._inner.get_vocab_size())

    def save(self, path: Path) -> None:
        self._inner.save(str(path))

    @classmethod
    def load(cls, path: Path) -> Self:
        try:
            return cls(tokenizers.Tokenizer.from_file(str(path)))
        except Exception as error:  # the library raises a bare Exception for a missing or broken file
            raise ModelError(f"{path}: not a tokeniser: {error}") from None
