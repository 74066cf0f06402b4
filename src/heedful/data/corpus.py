"""Encoded corpora: tokenized once; small ones stay in memory, larger ones are memory-mapped from a cache on disk.

The name of a cache folder is a hash of the files' contents, the tokenizers and the settings: if any of them changes,
a new cache is written.
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

CHUNK_SIZE = 4_096  # pairs tokenized at a time
RELEASE_EVERY = 64  # examples read between two calls of `release_pages`; each may map 64 KB per file

PairSource = PairFiles | Sequence[TextPair]


class Vocabulary(Protocol):
    """Encodes target texts as ids: a tokenizer, or the labels of a classifier."""

    def __len__(self) -> int: ...
    def encode_all(self, lines: Sequence[str]) -> list[list[int]]: ...  # each ends with the end token
    def to_json(self) -> str: ...


class Corpus:
    """Encoded pairs by row number, with the lengths of all pairs."""

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
    """Return the encoded pairs, from the cache if they are in it.

    Pairs from files are written to the cache if there are more than `data.in_memory`; all others stay in memory.
    """
    encoder = CorpusEncoder(source, target, data)
    if not isinstance(pairs, PairFiles):
        return _in_memory(encoder.chunks(pairs), encoder)
    folder = cache_folder() / "corpora" / encoder.cache_key(pairs)
    cached = load_cache(folder)
    if cached is not None:
        return Corpus(*cached)
    chunks = encoder.chunks(pairs)
    buffer: list[Chunk] = []
    for chunk in chunks:
        buffer.append(chunk)
        if encoder.counts.pairs > data.in_memory:
            dtypes = [encoder.dtype(side) for side in (0, 1)]
            write_cache(folder, _drain(buffer, chunks), dtypes, lambda: encoder.counts)
            cached = load_cache(folder)
            if cached is None:
                raise DataError(f"{folder}: the cache cannot be read back; is the disk full or failing?")
            return Corpus(*cached)
    return _in_memory(iter(buffer), encoder)


def filter_by_length(
    pairs: PairSource, source: Tokenizer, target: Vocabulary, data: DataConfig
) -> tuple[list[TextPair], CorpusCounts]:
    """Return the texts of the pairs that `open_corpus` keeps, with the same truncation, for decoding in validation."""
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
    """Encodes pairs; those that are too long are handled by `data.on_too_long` and counted in `counts`."""

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
        """Yield the encoded pairs as concatenated ids, `CHUNK_SIZE` pairs at a time."""
        for items in self.encode(pairs):
            rows = [item.ids for item in items]
            yield Chunk(
                (self._concatenate(rows, 0), self._concatenate(rows, 1)), (_row_lengths(rows, 0), _row_lengths(rows, 1))
            )

    def encode(self, pairs: PairSource) -> Iterator[list[EncodedItem]]:
        """Yield the pairs that are kept, from `CHUNK_SIZE` pairs at a time; raise a DataError if there are none."""
        if isinstance(pairs, PairFiles):
            name, stream = str(pairs), pairs.numbered_pairs()
        else:
            name, stream = "the list of pairs", (NumberedPair(n, pair) for n, pair in enumerate(pairs, 1))
        while chunk := list(islice(stream, CHUNK_SIZE)):
            if items := self._encode_chunk(chunk, name):
                yield items
        if isinstance(pairs, PairFiles):
            self.counts = self.counts._replace(bad_lines=str(pairs.bad_lines))
        if not self.counts.pairs:
            limits = f"data.max_source = {self.data.max_source} and data.max_target = {self.data.max_target}"
            detail = f" within {limits}; raise them" if self.counts.skipped else ""
            raise DataError(f"{name}: contains no pairs{detail}")

    def _encode_chunk(self, chunk: list[NumberedPair], name: str) -> list[EncodedItem]:
        sources = self.tokenizers[0].encode_all([numbered.pair.source for numbered in chunk])
        targets = self.tokenizers[1].encode_all([numbered.pair.target for numbered in chunk])
        items: list[EncodedItem] = []
        cut = skipped = 0
        for numbered, *sides in zip(chunk, sources, targets, strict=True):
            if all(len(ids) - 1 <= limit for ids, limit in zip(sides, self.max_lengths, strict=True)):
                items.append(EncodedItem(numbered, EncodedPair(*sides)))
            elif self.data.on_too_long == "skip":
                skipped += 1
            elif self.data.on_too_long == "cut":
                cut += 1
                items.append(EncodedItem(numbered, EncodedPair(*map(_truncate, sides, self.max_lengths))))
            else:
                raise DataError(self._too_long_message(name, numbered.line, sides))
        counts = self.counts
        self.counts = CorpusCounts(counts.pairs + len(items), counts.cut + cut, counts.skipped + skipped)
        return items

    def _concatenate(self, rows: list[EncodedPair], side: int) -> Array:
        return np.array([id for row in rows for id in row[side]], dtype=self.dtype(side))

    def _too_long_message(self, name: str, line: int, sides: list[list[int]]) -> str:
        side = 0 if len(sides[0]) - 1 > self.max_lengths[0] else 1
        return (
            f"{name}, line {line}: the {SIDES[side]} has {len(sides[side]) - 1:,} tokens, more than"
            f" data.max_{SIDES[side]} = {self.max_lengths[side]:,}"
            ' (raise it, or set data.on_too_long = "cut" or "skip")'
        )


def _truncate(ids: list[int], limit: int) -> list[int]:
    return ids if len(ids) - 1 <= limit else [*ids[:limit], END]


def _row_lengths(rows: list[EncodedPair], side: int) -> Array:
    return np.array([len(row[side]) for row in rows], dtype=np.int64)


def _drain(buffer: list[Chunk], rest: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield all chunks; those of the buffer are removed from it, so that their memory is freed."""
    while buffer:
        yield buffer.pop(0)
    yield from rest


def _in_memory(chunks: Iterator[Chunk], encoder: CorpusEncoder) -> Corpus:
    loaded = list(chunks)
    sides = []
    for side in (0, 1):
        lengths = np.concatenate([chunk.lengths[side] for chunk in loaded])
        ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        sides.append(Ragged(np.concatenate([chunk.ids[side] for chunk in loaded]), ends))
    return Corpus(sides[0], sides[1], encoder.counts)
