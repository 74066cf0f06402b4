"""Subword tokenization for the peers, identical to heedful's. Needs only the `tokenizers` library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import paths
import tokenizers
from tokenizers import decoders

N_SPECIAL = 4  # ids 0-3 are <pad> <unk> <s> </s>


class SubwordTokenizer:
    """Byte-level BPE; subwords are printable names without spaces, such as "Ġcat"."""

    def __init__(self, path: Path = paths.TOKENIZER) -> None:
        self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        self._decoder = decoders.ByteLevel()
        self._names = [self._tokenizer.id_to_token(i) for i in range(self._tokenizer.get_vocab_size())]

    def split(self, lines: Sequence[str]) -> list[list[str]]:
        """Return the subwords of each line."""
        encodings = self._tokenizer.encode_batch_fast(list(lines), add_special_tokens=False)
        return [[self._names[i] for i in encoding.ids] for encoding in encodings]

    def join(self, subwords: Sequence[str]) -> str:
        """Return the line of these subwords, without the space before its first word."""
        line: str = self._decoder.decode(list(subwords))
        return line.removeprefix(" ")

    def vocabulary(self) -> list[str]:
        """Return every subword in the order of ids, without the special tokens."""
        return self._names[N_SPECIAL:]
