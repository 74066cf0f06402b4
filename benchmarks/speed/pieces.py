"""Text to pieces and back for the peers, as our own tokeniser does it. Needs `tokenizers` only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import places
import tokenizers
from tokenizers import decoders

SPECIAL = 4  # ids 0-3 are <pad> <unk> <s> </s>


class Pieces:
    """A line is cut into pieces of bytes: printable names without spaces, such as "Ġcat"."""

    def __init__(self, path: Path = places.PIECES) -> None:
        self._cutter = tokenizers.Tokenizer.from_file(str(path))
        self._joiner = decoders.ByteLevel()
        self._names = [self._cutter.id_to_token(i) for i in range(self._cutter.get_vocab_size())]

    def cut(self, lines: Sequence[str]) -> list[list[str]]:
        found = self._cutter.encode_batch_fast(list(lines), add_special_tokens=False)
        return [[self._names[i] for i in encoding.ids] for encoding in found]

    def join(self, pieces: Sequence[str]) -> str:
        """The line that these pieces write; a first word has its space, which nobody wants to see."""
        joined: str = self._joiner.decode(list(pieces))
        return joined.removeprefix(" ")

    def names(self) -> list[str]:
        """Every piece in the order of ids, without the special ones."""
        return self._names[SPECIAL:]
