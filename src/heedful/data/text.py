"""Plain text for language models, one sentence per line: batches of sentences, or of windows of one long text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from heedful.config import DataConfig
from heedful.data.batch import EncodedPair, Lengths, Padded, pad
from heedful.data.line_file import LineFile
from heedful.data.ragged import Ragged
from heedful.data.rng import seeded_rng
from heedful.data.tokenizer import END, PAD
from heedful.errors import DataError

CHUNK_SIZE = 4_096  # lines tokenized at a time
Ids = npt.NDArray[np.int32]
Encode = Callable[[Sequence[str]], list[list[int]]]


class TextCounts(NamedTuple):
    """Counts of the lines of a text that were cut or skipped, and the summary of bad lines."""

    cut: int = 0
    skipped: int = 0
    bad_lines: str = ""

    def __str__(self) -> str:
        parts = [self.bad_lines] if self.bad_lines else []
        parts += [f"{self.cut:,} line(s) cut to the maximum length"] if self.cut else []
        parts += [f"{self.skipped:,} line(s) skipped as too long"] if self.skipped else []
        return "\n".join(parts)


class EncodedText:
    """Lines as ids, each with its end token: by row for batches of sentences, or as one long text."""

    def __init__(self, rows: Ragged, counts: TextCounts) -> None:
        self.rows, self.counts = rows, counts
        lengths = rows.lengths
        self.lengths = Lengths(np.zeros_like(lengths), lengths)

    def __len__(self) -> int:
        return len(self.lengths.target)

    def __getitem__(self, row: int) -> EncodedPair:
        return EncodedPair([], self.rows.row(row))

    @property
    def flat(self) -> Ids:
        """All ids in one array."""
        return np.asarray(self.rows.ids)


def encode_text(lines: Iterable[str], encode: Encode, data: DataConfig, max_tokens: int | None) -> EncodedText:
    """Encode lines; those of more than `max_tokens` are handled as `data.on_too_long` says (None: no limit)."""
    ids: list[Ids] = []
    lengths: list[int] = [0]  # 0 first, so that the cumulative sums are the bounds of the rows
    cut = skipped = number = 0
    stream = iter(lines)
    while chunk := list(islice(stream, CHUNK_SIZE)):
        for row in encode(chunk):
            number += 1
            if max_tokens is not None and len(row) - 1 > max_tokens:
                if data.on_too_long == "error":
                    raise DataError(_too_long_message(lines, number, len(row) - 1, max_tokens))
                cut, skipped = cut + (data.on_too_long == "cut"), skipped + (data.on_too_long == "skip")
                row = [*row[:max_tokens], END] if data.on_too_long == "cut" else []
            if row:
                ids.append(np.array(row, dtype=np.int32))
                lengths.append(len(row))
    if not ids:
        raise DataError(f"every line of the text has more than {max_tokens} tokens; raise data.max_source")
    counts = TextCounts(cut, skipped, str(lines.bad_lines) if isinstance(lines, LineFile) else "")
    return EncodedText(Ragged(np.concatenate(ids), np.cumsum(lengths)), counts)


def _too_long_message(lines: Iterable[str], number: int, n_tokens: int, max_tokens: int) -> str:
    name = str(lines) if isinstance(lines, LineFile) else "the text"
    return (
        f"{name}, line {number} (not counting blank lines): {n_tokens:,} tokens, more than"
        f' data.max_source = {max_tokens:,} (raise it, or set data.on_too_long = "cut" or "skip")'
    )


class LanguageModelBatch(NamedTuple):
    """Token ids, and the next token at each position after the first `context` ones."""

    inputs: Padded
    targets: Tensor  # (row, step), PAD where there is no target
    context: int = 0

    def rows(self, start: int, step: int) -> LanguageModelBatch:
        """Return every `step`-th row from `start` on."""
        inputs = self.inputs.rows(start, step)
        targets = self.targets[start::step, : inputs.ids.shape[1] - self.context].contiguous()
        return LanguageModelBatch(inputs, targets, self.context)

    def to(self, device: torch.device) -> LanguageModelBatch:
        return LanguageModelBatch(self.inputs.to(device), self.targets.to(device), self.context)


def sentence_batch(rows: Sequence[Sequence[int]], start_token: int) -> LanguageModelBatch:
    """Return a batch of independent sentences, each with `start_token` as its first input.

    >>> sentence_batch([[5, 6, 3], [7, 3]], 2).inputs.ids
    tensor([[2, 5, 6],
            [2, 7, 0]])
    """
    return LanguageModelBatch(pad([[start_token, *row[:-1]] for row in rows]), pad(rows).ids)


class WindowBatches:
    """Batches of windows of one long text, at new offsets and in a new order each epoch.

    A window comes with the `context` tokens before it, from which its initial state is computed. No state is
    carried from batch to batch, so training can resume at any of them. The text is preceded by end tokens.
    """

    def __init__(self, flat: Ids, window: int, context: int, batch_tokens: int, seed: int) -> None:
        self.window, self.context, self.seed = window, context, seed
        self.rows = max(1, batch_tokens // window)
        self.text = np.concatenate([np.full(context + 1, END, dtype=np.int32), flat])
        self.count = len(flat)

    def plan(self, epoch: int) -> list[Ids]:
        """Return the start positions of the windows of each batch."""
        rng = seeded_rng(self.seed, epoch)
        first = int(rng.integers(self.window)) if self.count > 2 * self.window else 0
        starts = np.arange(first, max(first + 1, self.count - self.window + 1), self.window, dtype=np.int32)
        starts = rng.permutation(starts)
        return [starts[i : i + self.rows] for i in range(0, len(starts), self.rows)]

    def batch(self, starts: Ids) -> LanguageModelBatch:
        """Return the windows that start at these positions."""
        width = min(self.window, self.count)
        input_positions = starts[:, None] + np.arange(self.context + width)
        target_positions = starts[:, None] + self.context + 1 + np.arange(width)
        inputs, targets = (
            torch.from_numpy(self.text[positions].astype(np.int64)) for positions in (input_positions, target_positions)
        )
        return LanguageModelBatch(Padded(inputs, torch.ones_like(inputs, dtype=torch.bool)), targets, self.context)


def sequential_windows(flat: Ids, window: int) -> Iterator[LanguageModelBatch]:
    """Yield one long text from beginning to end, one window at a time, as batches of one row.

    >>> [part.targets.tolist() for part in sequential_windows(np.array([5, 6, 3, 7, 3], dtype=np.int32), 2)]
    [[[5, 6]], [[3, 7]], [[3]]]
    """
    text = torch.from_numpy(np.concatenate([[END], flat]).astype(np.int64))[None]
    for first in range(0, len(flat), window):
        last = min(first + window, len(flat))
        inputs = text[:, first:last]
        yield LanguageModelBatch(Padded(inputs, inputs != PAD), text[:, first + 1 : last + 1])
