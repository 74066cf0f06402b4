"""A corpus in numbers: tokenised once, in memory while it is small, else in a memory-mapped cache on disk.

A cache folder is named by a hash of the files' contents, the tokenisers and the settings, so a change of any
of them means another folder. It is written under a temporary name and renamed when it is whole; what is in
it is checked by hash each time it is opened, and made again where it does not hold.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from heedful.config import DataConfig
from heedful.data.batch import Encoded, Lengths
from heedful.data.paths import cache_folder
from heedful.data.readers import Found, Pairs, TextPair
from heedful.data.tokenizer import END, Tokenizer
from heedful.errors import DataError

FORMAT = 1  # raised when the same input would give another cache
CHUNK = 4_096  # pairs tokenised at a time
LET_GO = 64  # examples read before their pages leave the process again; each may bring 64 KB a file
STALE = 3_600.0  # seconds after which an unfinished cache is one that was given up
SIDES = ("source", "target")
Array = npt.NDArray[Any]


class Coder(Protocol):
    """What turns the texts of a target into numbers: a tokeniser, or labels."""

    def __len__(self) -> int: ...
    def encode_all(self, lines: Sequence[str]) -> list[list[int]]: ...  # an end behind each
    def to_json(self) -> str: ...


class Tally(NamedTuple):
    """What became of the pairs of a corpus."""

    pairs: int = 0
    cut: int = 0
    skipped: int = 0
    broken: str = ""  # the reader's report

    def __str__(self) -> str:
        said = [self.broken] if self.broken else []
        said += [f"{self.cut:,} pair(s) cut to the longest length"] if self.cut else []
        said += [f"{self.skipped:,} pair(s) skipped for their length"] if self.skipped else []
        return "\n".join(said)


class Ragged(NamedTuple):
    """Rows of different lengths in one flat array: row i is `ids[ends[i]:ends[i + 1]]`."""

    ids: Array
    ends: Array

    def row(self, number: int) -> list[int]:
        row: list[int] = self.ids[self.ends[number] : self.ends[number + 1]].tolist()
        return row

    @property
    def lengths(self) -> npt.NDArray[np.int32]:
        lengths = np.empty(len(self.ends) - 1, dtype=np.int32)
        np.subtract(self.ends[1:], self.ends[:-1], out=lengths, casting="unsafe")
        self.let_go()
        return lengths

    def let_go(self) -> None:
        """Pages once read would count as this process's memory, until the whole corpus does."""
        for array in self:
            mapped = getattr(array.base, "_mmap", None)
            if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
                mapped.madvise(mmap.MADV_DONTNEED)


class Corpus:
    """Encoded pairs by row number, and the lengths of all of them."""

    def __init__(self, source: Ragged, target: Ragged, tally: Tally) -> None:
        self.source = source
        self.target = target
        self.tally = tally
        self.lengths = Lengths(source.lengths, target.lengths)
        self._read = 0

    @property
    def on_disk(self) -> bool:
        return isinstance(self.source.ids.base, np.memmap)

    def __len__(self) -> int:
        return len(self.lengths.source)

    def __getitem__(self, row: int) -> Encoded:
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of a corpus of {len(self):,} pairs")
        self._read += 1
        if self._read % LET_GO == 0:
            self.source.let_go()
            self.target.let_go()
        return Encoded(self.source.row(row), self.target.row(row))


def open_corpus(
    pairs: Pairs | Sequence[TextPair], source: Tokenizer, target: Coder, data: DataConfig
) -> Corpus:
    """The corpus of these pairs: from its cache if there is a whole one, else tokenised now.

    Up to `data.in_memory` pairs stay in memory, and so do pairs that come from no file.
    """
    encoder = Encoder(source, target, data)
    if not isinstance(pairs, Pairs):
        return _in_memory(encoder.chunks(pairs), encoder)
    folder = cache_folder() / "corpora" / encoder.key(pairs)
    cached = _opened(folder)
    if cached is not None:
        return cached
    chunks = encoder.chunks(pairs)
    first: list[Chunk] = []
    for chunk in chunks:
        first.append(chunk)
        if encoder.tally.pairs > data.in_memory:
            _write(folder, _all(first, chunks), encoder)
            written = _opened(folder)
            if written is None:
                raise DataError(f"{folder}: the cache cannot be read back; is the disk full or failing?")
            return written
    return _in_memory(iter(first), encoder)


def within(
    pairs: Pairs | Sequence[TextPair], source: Tokenizer, target: Coder, data: DataConfig
) -> tuple[list[TextPair], Tally]:
    """The texts of the pairs that `open_corpus` keeps: what is to be searched must not be longer either."""
    encoder = Encoder(source, target, data)
    kept = [found.pair for some in encoder.kept(pairs) for found, _ in some]
    if encoder.tally.cut:
        kept = [pair._replace(source=source.cut(pair.source, data.max_source)) for pair in kept]
    return kept, encoder.tally


class Chunk(NamedTuple):
    """Some rows on their way to memory or disk."""

    ids: tuple[Array, Array]
    lengths: tuple[Array, Array]


class Encoder:
    """From pairs to numbers under the policy for long ones; keeps the tally."""

    def __init__(self, source: Tokenizer, target: Coder, data: DataConfig) -> None:
        self.tokenizers: tuple[Coder, Coder] = (source, target)
        self.data = data
        self.most = (data.max_source, data.max_target)
        self.tally = Tally()

    def dtype(self, side: int) -> str:
        return "<u2" if len(self.tokenizers[side]) <= 1 << 16 else "<i4"

    def key(self, pairs: Pairs) -> str:
        digest = hashlib.sha256(f"{FORMAT} {pairs.fingerprint()} {self.most} {self.data.longer}".encode())
        for tokenizer in self.tokenizers:
            digest.update(hashlib.sha256(tokenizer.to_json().encode()).digest())
        return digest.hexdigest()[:32]

    def chunks(self, pairs: Pairs | Sequence[TextPair]) -> Iterator[Chunk]:
        """A chunk of rows at a time. The tally holds what was read so far."""
        for some in self.kept(pairs):
            rows = [row for _, row in some]
            yield Chunk((self._flat(rows, 0), self._flat(rows, 1)), (_sizes(rows, 0), _sizes(rows, 1)))

    def kept(self, pairs: Pairs | Sequence[TextPair]) -> Iterator[list[tuple[Found, Encoded]]]:
        """The pairs that the policy keeps, as text and in numbers, some at a time; none at all: an error."""
        if isinstance(pairs, Pairs):
            where, found = str(pairs), pairs.numbered()
        else:
            where, found = "the pairs given", (Found(n, pair) for n, pair in enumerate(pairs, 1))
        while some := list(islice(found, CHUNK)):
            if rows := self._judged(some, where):
                yield rows
        if isinstance(pairs, Pairs):
            self.tally = self.tally._replace(broken=str(pairs.report))
        if not self.tally.pairs:
            tokens = f"{self.data.max_source} and {self.data.max_target} tokens"
            raise DataError(f"{where}: no pairs in it" + f" within {tokens}" * bool(self.tally.skipped))

    def _judged(self, some: list[Found], where: str) -> list[tuple[Found, Encoded]]:
        sources = self.tokenizers[0].encode_all([item.pair.source for item in some])
        targets = self.tokenizers[1].encode_all([item.pair.target for item in some])
        rows: list[tuple[Found, Encoded]] = []
        cut = skipped = 0
        for item, *both in zip(some, sources, targets, strict=True):
            if all(len(ids) - 1 <= most for ids, most in zip(both, self.most, strict=True)):
                rows.append((item, Encoded(*both)))
            elif self.data.longer == "skip":
                skipped += 1
            elif self.data.longer == "cut":
                cut += 1
                rows.append((item, Encoded(*map(_cut, both, self.most))))
            else:
                raise DataError(self._too_long(item.line, both, where))
        pairs = self.tally.pairs + len(rows)
        self.tally = Tally(pairs, self.tally.cut + cut, self.tally.skipped + skipped)
        return rows

    def _flat(self, rows: list[Encoded], side: int) -> Array:
        return np.array([i for row in rows for i in row[side]], dtype=self.dtype(side))

    def _too_long(self, line: int, both: list[list[int]], where: str) -> str:
        side = 0 if len(both[0]) - 1 > self.most[0] else 1
        return (
            f"{where}, line {line}: the {SIDES[side]} has {len(both[side]) - 1:,} tokens, more than"
            f' data.max_{SIDES[side]} = {self.most[side]:,} (data.longer = "cut" or "skip" goes on)'
        )


def _cut(ids: list[int], most: int) -> list[int]:
    return ids if len(ids) - 1 <= most else [*ids[:most], END]


def _sizes(rows: list[Encoded], side: int) -> Array:
    return np.array([len(row[side]) for row in rows], dtype=np.int64)


def _all(first: list[Chunk], rest: Iterable[Chunk]) -> Iterator[Chunk]:
    while first:
        yield first.pop(0)
    yield from rest


def _in_memory(chunks: Iterator[Chunk], encoder: Encoder) -> Corpus:
    held = list(chunks)
    sides = []
    for side in (0, 1):
        lengths = np.concatenate([chunk.lengths[side] for chunk in held])
        ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        sides.append(Ragged(np.concatenate([chunk.ids[side] for chunk in held]), ends))
    return Corpus(sides[0], sides[1], encoder.tally)


class _File:
    """A file that is hashed while it is written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: BinaryIO = path.open("wb")
        self.digest = hashlib.sha256()

    def write(self, array: Array) -> None:
        raw = array.tobytes()
        self.digest.update(raw)
        self.file.write(raw)

    def close(self) -> str:
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        return self.digest.hexdigest()


def _write(folder: Path, chunks: Iterator[Chunk], encoder: Encoder) -> None:
    """Fill a temporary folder beside `folder`, then give it that name."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _sweep(folder.parent)
        making = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", suffix=".tmp", dir=folder.parent))
        try:
            _fill(making, chunks, encoder)
            if folder.exists():  # one that does not hold
                shutil.rmtree(folder)
            with contextlib.suppress(FileExistsError):  # another process was quicker with the same
                making.rename(folder)
        finally:
            shutil.rmtree(making, ignore_errors=True)
    except OSError as error:
        raise DataError(
            f"{folder}: the cache cannot be written: {error.strerror or error}"
            " (HEEDFUL_CACHE names another place; data.in_memory = pairs to keep in memory)"
        ) from None


def _fill(making: Path, chunks: Iterator[Chunk], encoder: Encoder) -> None:
    ids = [_File(making / f"{side}.ids") for side in SIDES]
    ends = [_File(making / f"{side}.ends") for side in SIDES]
    last = [0, 0]
    try:
        for file in ends:
            file.write(np.zeros(1, dtype="<i8"))
        for chunk in chunks:
            for side in (0, 1):
                stops = last[side] + np.cumsum(chunk.lengths[side])
                last[side] = int(stops[-1])
                ids[side].write(chunk.ids[side])
                ends[side].write(stops.astype("<i8"))
    finally:
        hashes = {file.path.name: file.close() for file in (*ids, *ends)}
    head = {
        "format": FORMAT,
        "sha256": hashes,
        "dtype": [encoder.dtype(side) for side in (0, 1)],
        "tally": encoder.tally._asdict(),
    }
    (making / "corpus.json").write_text(json.dumps(head, indent=1), encoding="utf-8")


def _opened(folder: Path) -> Corpus | None:
    """The corpus in a cache folder; None where there is none, or one that does not hold what it says."""
    try:
        head = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
        for name, wanted in head["sha256"].items():
            with (folder / name).open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != wanted:
                    return None
        sides = [
            Ragged(
                np.asarray(np.memmap(folder / f"{side}.ids", dtype=dtype, mode="r")),  # quicker to slice
                np.asarray(np.memmap(folder / f"{side}.ends", dtype="<i8", mode="r")),
            )
            for side, dtype in zip(SIDES, head["dtype"], strict=True)
        ]
        return Corpus(sides[0], sides[1], Tally(**head["tally"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _sweep(parent: Path) -> None:
    """Remove what a killed process left behind."""
    for left in parent.glob("*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - max(p.stat().st_mtime for p in (left, *left.iterdir())) > STALE:
                shutil.rmtree(left)
