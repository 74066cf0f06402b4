"""Encoded corpora: tokenized once, kept in memory while small, else read from a memory-mapped cache on disk.

A cache folder is named by a hash of the files' contents, the tokenizers and the settings, so a change of any of
them leads to another folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

import numpy as np

from heedful.config import DataConfig
from heedful.data.batch import EncodedPair, Lengths
from heedful.data.corpus_cache import FORMAT, SIDES, Chunk, CorpusCounts, load_cache, write_cache
from heedful.data.pairs import NumberedPair, PairFiles, TextPair
from heedful.data.paths import cache_folder
from heedful.data.ragged import Array, Ragged
from heedful.data.tokenizer import END, Tokenizer
from heedful.errors import DataError

CHUNK = 4_096  # pairs tokenized at a time
RELEASE_EVERY = 64  # examples read between two releases of mapped pages; each may map 64 KB per file

PairSource = PairFiles | Sequence[TextPair]


class Vocabulary(Protocol):
    """Turns target texts into ids: a tokenizer, or labels."""

    def __len__(self) -> int: ...
    def encode_all(self, lines: Sequence[str]) -> list[list[int]]: ...  # with an end token after each
    def to_json(self) -> str: ...


class Corpus:
    """Encoded pairs by row number, and the lengths of all of them."""

    def __init__(self, source: Ragged, target: Ragged, counts: CorpusCounts) -> None:
        self.source = source
        self.target = target
        self.counts = counts
        self.lengths = Lengths(source.lengths, target.lengths)
        self._n_reads = 0

    @property
    def on_disk(self) -> bool:
        return isinstance(self.source.ids.base, np.memmap)

    def __len__(self) -> int:
        return len(self.lengths.source)

    def __getitem__(self, row: int) -> EncodedPair:
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of a corpus of {len(self):,} pairs")
        self._n_reads += 1
        if self._n_reads % RELEASE_EVERY == 0:
            self.source.release_pages()
            self.target.release_pages()
        return EncodedPair(self.source.row(row), self.target.row(row))


def open_corpus(pairs: PairSource, source: Tokenizer, target: Vocabulary, data: DataConfig) -> Corpus:
    """Return the encoded pairs: from the cache if it holds them, else tokenized now.

    Up to `data.in_memory` pairs stay in memory, and so do pairs that come from no file.
    """
    encoder = CorpusEncoder(source, target, data)
    if not isinstance(pairs, PairFiles):
        return _in_memory(encoder.chunks(pairs), encoder)
    folder = cache_folder() / "corpora" / encoder.cache_key(pairs)
    cached = load_cache(folder)
    if cached is not None:
        return Corpus(*cached)
    chunks = encoder.chunks(pairs)
    first: list[Chunk] = []
    for chunk in chunks:
        first.append(chunk)
        if encoder.counts.pairs > data.in_memory:
            dtypes = [encoder.dtype(side) for side in (0, 1)]
            write_cache(folder, _drain(first, chunks), dtypes, lambda: encoder.counts)
            cached = load_cache(folder)
            if cached is None:
                raise DataError(f"{folder}: the cache cannot be read back; is the disk full or failing?")
            return Corpus(*cached)
    return _in_memory(iter(first), encoder)


def filter_by_length(
    pairs: PairSource, source: Tokenizer, target: Vocabulary, data: DataConfig
) -> tuple[list[TextPair], CorpusCounts]:
    """Return the texts of the pairs that `open_corpus` keeps, cut where it cuts, for decoding in validation."""
    encoder = CorpusEncoder(source, target, data)
    texts = [item.numbered.pair for chunk in encoder.encode(pairs) for item in chunk]
    if encoder.counts.cut:
        texts = [pair._replace(source=source.truncate(pair.source, data.max_source)) for pair in texts]
    return texts, encoder.counts


class EncodedItem(NamedTuple):
    """A pair as text and as ids."""

    numbered: NumberedPair
    ids: EncodedPair


class CorpusEncoder:
    """Encodes pairs, handles too long ones as `data.on_too_long` says, and counts them in `counts`."""

    def __init__(self, source: Tokenizer, target: Vocabulary, data: DataConfig) -> None:
        self.tokenizers: tuple[Vocabulary, Vocabulary] = (source, target)
        self.data = data
        self.max_lengths = (data.max_source, data.max_target)
        self.counts = CorpusCounts()

    def dtype(self, side: int) -> str:
        return "<u2" if len(self.tokenizers[side]) <= 1 << 16 else "<i4"

    def cache_key(self, pairs: PairFiles) -> str:
        """Return a hash of everything that determines the encoded pairs."""
        settings = f"{FORMAT} {pairs.fingerprint()} {self.max_lengths} {self.data.on_too_long}"
        digest = hashlib.sha256(settings.encode())
        for tokenizer in self.tokenizers:
            digest.update(hashlib.sha256(tokenizer.to_json().encode()).digest())
        return digest.hexdigest()[:32]

    def chunks(self, pairs: PairSource) -> Iterator[Chunk]:
        """Yield the encoded pairs as flat arrays, `CHUNK` pairs at a time."""
        for items in self.encode(pairs):
            rows = [item.ids for item in items]
            yield Chunk((self._flat(rows, 0), self._flat(rows, 1)), (_row_lengths(rows, 0), _row_lengths(rows, 1)))

    def encode(self, pairs: PairSource) -> Iterator[list[EncodedItem]]:
        """Yield the pairs that are kept, `CHUNK` read at a time; it is an error if none is."""
        if isinstance(pairs, PairFiles):
            where, stream = str(pairs), pairs.numbered_pairs()
        else:
            where, stream = "the list of pairs", (NumberedPair(n, pair) for n, pair in enumerate(pairs, 1))
        while chunk := list(islice(stream, CHUNK)):
            if items := self._encode_chunk(chunk, where):
                yield items
        if isinstance(pairs, PairFiles):
            self.counts = self.counts._replace(bad_lines=str(pairs.bad_lines))
        if not self.counts.pairs:
            limits = f"data.max_source = {self.data.max_source} and data.max_target = {self.data.max_target}"
            detail = f" within {limits}; raise them" if self.counts.skipped else ""
            raise DataError(f"{where}: contains no pairs{detail}")

    def _encode_chunk(self, chunk: list[NumberedPair], where: str) -> list[EncodedItem]:
        sources = self.tokenizers[0].encode_all([numbered.pair.source for numbered in chunk])
        targets = self.tokenizers[1].encode_all([numbered.pair.target for numbered in chunk])
        items: list[EncodedItem] = []
        cut = skipped = 0
        for numbered, *both in zip(chunk, sources, targets, strict=True):
            if all(len(ids) - 1 <= limit for ids, limit in zip(both, self.max_lengths, strict=True)):
                items.append(EncodedItem(numbered, EncodedPair(*both)))
            elif self.data.on_too_long == "skip":
                skipped += 1
            elif self.data.on_too_long == "cut":
                cut += 1
                items.append(EncodedItem(numbered, EncodedPair(*map(_cut, both, self.max_lengths))))
            else:
                raise DataError(self._too_long(numbered.line, both, where))
        pairs, old_cut, old_skipped, _ = self.counts
        self.counts = CorpusCounts(pairs + len(items), old_cut + cut, old_skipped + skipped)
        return items

    def _flat(self, rows: list[EncodedPair], side: int) -> Array:
        return np.array([i for row in rows for i in row[side]], dtype=self.dtype(side))

    def _too_long(self, line: int, both: list[list[int]], where: str) -> str:
        side = 0 if len(both[0]) - 1 > self.max_lengths[0] else 1
        return (
            f"{where}, line {line}: the {SIDES[side]} has {len(both[side]) - 1:,} tokens, more than"
            f" data.max_{SIDES[side]} = {self.max_lengths[side]:,}"
            ' (raise it, or set data.on_too_long = "cut" or "skip")'
        )


def _cut(ids: list[int], limit: int) -> list[int]:
    return ids if len(ids) - 1 <= limit else [*ids[:limit], END]


def _row_lengths(rows: list[EncodedPair], side: int) -> Array:
    return np.array([len(row[side]) for row in rows], dtype=np.int64)


def _drain(first: list[Chunk], rest: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield all chunks, and free those already in memory one by one."""
    while first:
        yield first.pop(0)
    yield from rest


def _in_memory(chunks: Iterator[Chunk], encoder: CorpusEncoder) -> Corpus:
    loaded = list(chunks)
    sides = []
    for side in (0, 1):
        lengths = np.concatenate([chunk.lengths[side] for chunk in loaded])
        ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        sides.append(Ragged(np.concatenate([chunk.ids[side] for chunk in loaded]), ends))
    return Corpus(sides[0], sides[1], encoder.counts)
