"""Plain text, a sentence a line: read as a stream, in numbers, and cut into batches in two ways."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from heedful.config import DataConfig
from heedful.data.batch import Encoded, Lengths, Padded, pad
from heedful.data.corpus import Ragged
from heedful.data.paths import locate
from heedful.data.readers import Broken, Report, must_be_file, raw_lines, split_of, world_pairs
from heedful.data.tokenizer import END, PAD
from heedful.errors import DataError

CHUNK = 4_096  # lines tokenised at a time
Ids = npt.NDArray[np.int32]
Encode = Callable[[Sequence[str]], list[list[int]]]


class Lines:
    """The lines of one file that are not blank, read anew each time; `report` tells what was skipped."""

    def __init__(self, path: Path, data: DataConfig | None = None, part: str = "") -> None:
        must_be_file(path)
        self.path, self.part = path, part  # "train", "valid" or "test" of a split by hash; "": all
        self.data = data if data is not None else DataConfig.model_construct()
        self.report = Report()

    def __str__(self) -> str:
        return str(self.path)

    def __iter__(self) -> Iterator[str]:
        self.report = Report()
        empty = True
        for line in raw_lines(self.path):
            if isinstance(line, Broken):
                if self.data.broken == "refuse":
                    raise DataError(f'{line} (data.broken = "skip" goes on without such lines)')
                self.report.add(line)
            elif line.strip() and (not self.part or self._place(line) == self.part):
                empty = False
                yield line
        if empty:
            part = f" (the {self.part} part of the split)" if self.part else ""
            raise DataError("\n".join(filter(None, [f"{self}: no text in it{part}", str(self.report)])))

    def _place(self, line: str) -> str:
        return split_of(line, self.data.split_valid, self.data.split_test)


def open_lines(data: DataConfig, base: Path) -> dict[str, Iterable[str]]:
    """The text of every split that a recipe names; of a world, its source sentences."""
    if data.world is not None:
        return {split: [pair.source for pair in pairs] for split, pairs in world_pairs(data.world).items()}
    hashed = {"valid": data.split_valid, "test": data.split_test}
    train = locate(data.train[0], base)
    splits: dict[str, Iterable[str]] = {"train": Lines(train, data, "train" if any(hashed.values()) else "")}
    for split, files in (("valid", data.valid), ("test", data.test)):
        if files:
            splits[split] = Lines(locate(files[0], base), data)
        elif hashed[split]:
            splits[split] = Lines(train, data, split)
    return splits


class Tally(NamedTuple):
    """What became of the lines of a text."""

    cut: int = 0
    skipped: int = 0
    broken: str = ""

    def __str__(self) -> str:
        said = [self.broken] if self.broken else []
        said += [f"{self.cut:,} line(s) cut to the longest length"] if self.cut else []
        said += [f"{self.skipped:,} line(s) skipped for their length"] if self.skipped else []
        return "\n".join(said)


class Text:
    """Lines in numbers, each with its end token: by row for batches of sentences, or as one long text."""

    def __init__(self, rows: Ragged, tally: Tally) -> None:
        self.rows, self.tally = rows, tally
        lengths = rows.lengths
        self.lengths = Lengths(np.zeros_like(lengths), lengths)

    def __len__(self) -> int:
        return len(self.lengths.target)

    def __getitem__(self, row: int) -> Encoded:
        return Encoded([], self.rows.row(row))

    @property
    def flat(self) -> Ids:
        return np.asarray(self.rows.ids)


def encoded(lines: Iterable[str], encode: Encode, data: DataConfig, most: int | None) -> Text:
    """A text in numbers, under the policy for lines of more than `most` tokens (None: any length is read)."""
    ids: list[npt.NDArray[np.int32]] = []
    sizes: list[int] = [0]
    cut = skipped = number = 0
    stream = iter(lines)
    while some := list(islice(stream, CHUNK)):
        for row in encode(some):
            number += 1
            if most is not None and len(row) - 1 > most:
                if data.longer == "refuse":
                    raise DataError(_too_long(lines, number, len(row) - 1, most))
                cut, skipped = cut + (data.longer == "cut"), skipped + (data.longer == "skip")
                row = [*row[:most], END] if data.longer == "cut" else []
            if row:
                ids.append(np.array(row, dtype=np.int32))
                sizes.append(len(row))
    if not ids:
        raise DataError(f"no line of the text is within {most} tokens")
    tally = Tally(cut, skipped, str(lines.report) if isinstance(lines, Lines) else "")
    return Text(Ragged(np.concatenate(ids), np.cumsum(sizes)), tally)


def _too_long(lines: Iterable[str], number: int, found: int, most: int) -> str:
    where = str(lines) if isinstance(lines, Lines) else "the text"
    return (
        f"{where}, line {number} (blank ones not counted): {found:,} tokens, more than"
        f' data.max_source = {most:,} (data.longer = "cut" or "skip" goes on)'
    )


class ReadBatch(NamedTuple):
    """What is read, and the word that comes after each position behind the first `lead` of them."""

    given: Padded
    wanted: Tensor  # (row, step), PAD where nothing is wanted
    lead: int = 0

    def rows(self, start: int, step: int) -> ReadBatch:
        """Every `step`-th row from `start` on."""
        given = self.given.rows(start, step)
        wanted = self.wanted[start::step, : given.ids.shape[1] - self.lead].contiguous()
        return ReadBatch(given, wanted, self.lead)

    def to(self, device: torch.device) -> ReadBatch:
        return ReadBatch(self.given.to(device), self.wanted.to(device), self.lead)


def sentences(rows: Sequence[Sequence[int]], first: int) -> ReadBatch:
    """Each row by itself, read from the token `first` on.

    >>> sentences([[5, 6, 3], [7, 3]], 2)._asdict()["given"].ids
    tensor([[2, 5, 6],
            [2, 7, 0]])
    """
    return ReadBatch(pad([[first, *row[:-1]] for row in rows]), pad(rows).ids)


class Windows:
    """One long text in windows: in training at other places each epoch, and in any order.

    A window comes with the `lead` tokens before it, from which its state is made: so nothing goes from batch
    to batch, and a run can be taken up at any of them. What comes before the text is its end token.
    """

    def __init__(self, flat: Ids, window: int, lead: int, budget: int, seed: int) -> None:
        self.window, self.lead, self.seed = window, lead, seed
        self.rows = max(1, budget // window)
        self.text = np.concatenate([np.full(lead + 1, END, dtype=np.int32), flat])
        self.count = len(flat)

    def plan(self, epoch: int) -> list[Ids]:
        """The places, in the text, where the windows of each batch begin."""
        digest = hashlib.sha256(f"{self.seed} {epoch}".encode()).digest()
        rng = np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))
        first = int(rng.integers(self.window)) if self.count > 2 * self.window else 0
        starts = np.arange(first, max(first + 1, self.count - self.window + 1), self.window, dtype=np.int32)
        starts = rng.permutation(starts)
        return [starts[at : at + self.rows] for at in range(0, len(starts), self.rows)]

    def batch(self, starts: Ids) -> ReadBatch:
        width = min(self.window, self.count)
        given = starts[:, None] + np.arange(self.lead + width)
        wanted = starts[:, None] + self.lead + 1 + np.arange(width)
        ids, gold = (torch.from_numpy(self.text[at].astype(np.int64)) for at in (given, wanted))
        return ReadBatch(Padded(ids, torch.ones_like(ids, dtype=torch.bool)), gold, self.lead)


def parts_in_order(flat: Ids, window: int) -> Iterator[ReadBatch]:
    """One long text from its beginning to its end, a window at a time, as one row.

    >>> [part.wanted.tolist() for part in parts_in_order(np.array([5, 6, 3, 7, 3], dtype=np.int32), 2)]
    [[[5, 6]], [[3, 7]], [[3]]]
    """
    text = torch.from_numpy(np.concatenate([[END], flat]).astype(np.int64))[None]
    for first in range(0, len(flat), window):
        last = min(first + window, len(flat))
        given = text[:, first:last]
        yield ReadBatch(Padded(given, given != PAD), text[:, first + 1 : last + 1])
