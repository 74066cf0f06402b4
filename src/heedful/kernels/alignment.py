"""The expectation step of statistical word alignment (IBM model 2 with a diagonal prior), in C or in torch.

Words are ids. The table of translation probabilities `t(f|e)` has one entry for each target word f and each source
word e that occurs in a sentence pair with it; e = 0 is the null word, which is beside every f.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.errors import ShapeError
from heedful.kernels import loader, structs
from heedful.kernels.guards import check_indices, check_offsets

NULL = 0  # id of the null word
CELLS = 2_000_000  # pairs of positions that the torch version holds at a time


class ParallelIds(NamedTuple):
    """The ids of sentence pairs: those of sentence s are `source[source_offsets[s]:source_offsets[s + 1]]`.

    Source ids start at 1, because 0 is the null word; target ids start at 0.
    """

    source: Int[Tensor, "position"]
    source_offsets: Int[Tensor, "sentence1"]
    target: Int[Tensor, "position"]
    target_offsets: Int[Tensor, "sentence1"]


class PairTable(NamedTuple):
    """The entries (e, f): those of target word f are `sources[offsets[f]:offsets[f + 1]]`, ascending.

    `order` are the positions of the target side, sorted by word; those of f start at `word_offsets[f]`.
    """

    ids: ParallelIds
    n_sources: int
    offsets: Int[Tensor, "word1"]
    sources: Int[Tensor, "entry"]  # int32
    order: Int[Tensor, "position"]
    word_offsets: Int[Tensor, "word1"]
    sentences: Int[Tensor, "position"]  # the sentence of each target position

    @property
    def n_targets(self) -> int:
        return len(self.offsets) - 1


class Expectation(NamedTuple):
    """Expected numbers of links, and what the tension of the prior is estimated from.

    `distance` is the sum of `|i/m - j/n|` under the posterior; `prior_distance` and `prior_variance` are its
    expectation and variance under the prior, for links that are not null.
    """

    counts: Float[Tensor, "entry"]  # float64
    log_likelihood: float
    distance: float
    prior_distance: float
    prior_variance: float


class Prior(NamedTuple):
    """`p(null)`, and `p(i | j, m, n) = exp(-tension |i/m - j/n|) / Z` of the others (Dyer 2013, eq. 1)."""

    null: float = 0.08
    tension: float = 4.0


def make_pair_table(ids: ParallelIds, n_sources: int, n_targets: int) -> PairTable:
    """Collect the source words beside each target word; ids are below `n_sources` and `n_targets`."""
    _check_ids(ids, n_sources, n_targets)
    lengths = ids.target_offsets.diff()
    sentences = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
    order = torch.argsort(ids.target, stable=True)
    word_offsets = _offsets(torch.bincount(ids.target, minlength=n_targets))
    nothing = torch.empty(0, dtype=torch.int32)
    table = PairTable(ids, n_sources, word_offsets, nothing, order, word_offsets, sentences)
    library = loader.library()
    if library is None:
        return _torch_table(table, n_targets)
    corpus = _corpus(table)
    counts = torch.empty(n_targets, dtype=torch.long)
    _check(library.heed_alignment_table(ctypes.addressof(corpus), counts.data_ptr(), None, None))
    offsets = _offsets(counts)
    sources = torch.empty(int(offsets[-1]), dtype=torch.int32)
    if len(sources):
        arguments = (ctypes.addressof(corpus), None, offsets.data_ptr(), sources.data_ptr())
        _check(library.heed_alignment_table(*arguments))
    return table._replace(offsets=offsets, sources=sources)


def expected_links(table: PairTable, probabilities: Float[Tensor, "entry"], prior: Prior) -> Expectation:
    """Return the expected number of links of each entry, given `t(f|e)` of each entry."""
    _check_probabilities(table, probabilities)
    library = loader.library()
    if library is None:
        return _torch_expectation(table, probabilities, prior)
    counts = torch.empty(len(probabilities), dtype=torch.float64)
    statistics = torch.empty(table.n_targets, 4, dtype=torch.float64)
    _run_pass(library, table, probabilities, prior, counts=counts, statistics=statistics)
    return Expectation(counts, *statistics.sum(dim=0).tolist())


def likeliest_links(table: PairTable, probabilities: Float[Tensor, "entry"], prior: Prior) -> Int[Tensor, "position"]:
    """Return for each target position the position of its likeliest source word; -1 is the null word.

    Of equally likely words it is the first, and null before all others.
    """
    _check_probabilities(table, probabilities)
    library = loader.library()
    if library is None:
        return _torch_links(table, probabilities, prior)
    best = torch.empty(len(table.order), dtype=torch.long)
    _run_pass(library, table, probabilities, prior, best=best)
    return best


def _check_ids(ids: ParallelIds, n_sources: int, n_targets: int) -> None:
    check_indices(ids.source, (len(ids.source),), n_sources, "source word")
    check_indices(ids.target, (len(ids.target),), n_targets, "target word")
    for side, tensor, offsets in (
        ("source_offsets", ids.source, ids.source_offsets),
        ("target_offsets", ids.target, ids.target_offsets),
    ):
        check_offsets(offsets, len(tensor), side)
    if len(ids.source_offsets) != len(ids.target_offsets):
        counts = f"{len(ids.source_offsets) - 1} sources, but {len(ids.target_offsets) - 1} targets"
        raise ShapeError(f"there are {counts}")
    if not 0 < n_sources < 2**31:
        raise ShapeError(f"a table takes from 1 to {2**31 - 1} source words, got {n_sources}")


def _check_probabilities(table: PairTable, probabilities: Tensor) -> None:
    shape = (len(table.sources),)
    if probabilities.shape != shape or probabilities.dtype != torch.float32 or not probabilities.is_contiguous():
        raise ShapeError(f"expected {shape[0]} contiguous probabilities in float32, got {tuple(probabilities.shape)}")


def _offsets(counts: Int[Tensor, "word"]) -> Int[Tensor, "word1"]:
    return torch.cat([torch.zeros(1, dtype=torch.long), counts.cumsum(dim=0)])


def _corpus(table: PairTable) -> structs.AlignmentCorpus:
    ids, lengths = table.ids, table.ids.source_offsets.diff()
    tensors = {
        "source": ids.source,
        "source_offsets": ids.source_offsets,
        "target_offsets": ids.target_offsets,
        "order": table.order,
        "word_offsets": table.word_offsets,
        "sentences": table.sentences,
    }
    return structs.AlignmentCorpus(
        n_words=len(table.word_offsets) - 1,
        source_vocabulary=table.n_sources,
        longest=int(lengths.max()) if len(lengths) else 0,
        **{name: tensor.data_ptr() for name, tensor in tensors.items()},
    )


def _run_pass(library: ctypes.CDLL, table: PairTable, probabilities: Tensor, prior: Prior, **outputs: Tensor) -> None:
    corpus = _corpus(table)
    step = structs.AlignmentStep(
        table_offsets=table.offsets.data_ptr(),
        table=table.sources.data_ptr(),
        probabilities=probabilities.data_ptr(),
        null_probability=prior.null,
        tension=prior.tension,
        **{name: tensor.data_ptr() for name, tensor in outputs.items()},
    )
    _check(library.heed_alignment_pass(ctypes.addressof(corpus), ctypes.addressof(step)))


def _check(done: int) -> None:
    if not done:
        raise MemoryError("no memory for a word alignment")


# The same in torch


class _Cells(NamedTuple):
    """All pairs of positions of some sentences: a row per target position, padded to the longest source."""

    positions: Int[Tensor, "row"]  # of the target side
    source: Int[Tensor, "row key"]  # ids of the source words, null where there is none
    keep: Tensor  # (row, key): where there is a word
    distance: Float[Tensor, "row key"]  # |i/m - j/n|


def _torch_table(table: PairTable, n_targets: int) -> PairTable:
    keys = torch.arange(n_targets) * table.n_sources  # (null, f)
    for cells in _iter_cells(table):
        words = table.ids.target[cells.positions][:, None].expand_as(cells.source)
        keys = torch.cat([keys, (words * table.n_sources + cells.source)[cells.keep]])
        keys = torch.unique(keys)
    words = keys // table.n_sources
    offsets = _offsets(torch.bincount(words, minlength=n_targets))
    return table._replace(offsets=offsets, sources=(keys % table.n_sources).to(torch.int32))


def _iter_cells(table: PairTable) -> Iterator[_Cells]:
    ids = table.ids
    source_lengths, target_lengths = ids.source_offsets.diff(), ids.target_offsets.diff()
    position = 0
    while position < len(ids.target):
        width = int(source_lengths[table.sentences[position:]].max())
        positions = torch.arange(position, min(len(ids.target), position + max(1, CELLS // max(1, width))))
        position = int(positions[-1]) + 1
        sentences = table.sentences[positions]
        lengths = source_lengths[sentences][:, None]
        keys = torch.arange(int(lengths.max()))
        keep = keys < lengths
        starts = ids.source_offsets[sentences][:, None]
        padded = torch.cat([ids.source, torch.zeros(1, dtype=torch.long)])  # so that an index exists
        source = padded[(starts + keys).clamp_max(len(ids.source))].masked_fill(~keep, NULL)
        target_position = (positions - ids.target_offsets[sentences] + 1).double() / target_lengths[sentences]
        distance = ((keys + 1) / lengths.clamp_min(1).double() - target_position[:, None]).abs()
        yield _Cells(positions, source, keep, distance)


class _Joint(NamedTuple):
    """The probability of each link together with the target word, that of null in column 0, and the entries."""

    joint: Float[Tensor, "row key1"]
    entries: Int[Tensor, "row key1"]
    prior: Float[Tensor, "row key"]


def _joint(table: PairTable, cells: _Cells, keys: Tensor, probabilities: Tensor, prior: Prior) -> _Joint:
    words = table.ids.target[cells.positions][:, None]
    entries = torch.searchsorted(keys, words * table.n_sources + torch.nn.functional.pad(cells.source, (1, 0)))
    weights = torch.exp(-prior.tension * cells.distance).masked_fill(~cells.keep, 0.0)
    weights = weights / weights.sum(dim=1, keepdim=True).clamp_min(1e-300)
    null = torch.full((len(weights), 1), prior.null, dtype=torch.float64)
    joint = torch.cat([null, (1 - prior.null) * weights], dim=1) * probabilities[entries]
    return _Joint(joint, entries, weights)


def _entry_keys(table: PairTable) -> Tensor:
    words = torch.repeat_interleave(torch.arange(table.n_targets), table.offsets.diff())
    return words * table.n_sources + table.sources


def _torch_expectation(table: PairTable, probabilities: Tensor, prior: Prior) -> Expectation:
    counts = torch.zeros(len(probabilities), dtype=torch.float64)
    statistics = torch.zeros(4, dtype=torch.float64)
    keys = _entry_keys(table)
    for cells in _iter_cells(table):
        joint, entries, weights = _joint(table, cells, keys, probabilities, prior)
        total = joint.sum(dim=1, keepdim=True)
        posterior = torch.where(total > 0, joint / total, 0.0)
        counts.index_add_(0, entries.flatten(), posterior.flatten())
        mean = (weights * cells.distance).sum(dim=1)
        variance = (weights * cells.distance**2).sum(dim=1) - mean**2
        linked = torch.where(total[:, 0] > 0, 1 - posterior[:, 0], 0.0)
        log_likelihood = total[total > 0].log().sum()
        distance = (posterior[:, 1:] * cells.distance).sum()
        statistics += torch.stack([log_likelihood, distance, (linked * mean).sum(), (linked * variance).sum()])
    return Expectation(counts, *statistics.tolist())


def _torch_links(table: PairTable, probabilities: Tensor, prior: Prior) -> Tensor:
    best = torch.empty(len(table.order), dtype=torch.long)
    keys = _entry_keys(table)
    for cells in _iter_cells(table):
        joint = _joint(table, cells, keys, probabilities, prior).joint
        first = (joint == joint.amax(dim=1, keepdim=True)).to(torch.uint8).cumsum(dim=1).eq(0).sum(dim=1)
        best[cells.positions] = first - 1
    return best
