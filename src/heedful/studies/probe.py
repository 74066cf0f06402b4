"""Probes: decisions of a model whose attention can be changed while all before it stays as it was.

The honesty tests know nothing else of a model. `TextProbe` gives decisions of an encoder-decoder: the next
word at some steps of its own outputs, everything before the look cached, the words before it forced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Generator, Tensor, nn

from heedful.attention import Detail, Look, Override, Watch
from heedful.data.batch import Padded, Regions, TextBatch, pad
from heedful.data.tokenizer import END, START
from heedful.decoding.words import banned
from heedful.layers.state import Copied, State, Stepped
from heedful.models import Seq2Seq

ROWS = 500  # hypotheses computed at once: more only make memory new


class Probe(Protocol):
    """Some decisions side by side; rows are decisions."""

    @property
    def weights(self) -> Tensor: ...  # (row, head, key): the model's own
    @property
    def valid(self) -> Tensor: ...  # (row, key): may be read, and is no special token
    @property
    def open(self) -> Tensor: ...  # (row, key): may be read
    @property
    def p(self) -> Tensor: ...  # (row, class): the model's own
    def outcome(self, weights: Tensor) -> Tensor: ...  # (row, k, head, key) -> (row, k, class)


def in_parts(weights: Tensor, some: Callable[[Tensor], Tensor]) -> Tensor:
    """What `some` makes of all variants (row, k, head, key), as many at once as may be."""
    per = max(1, ROWS // len(weights))
    return torch.cat([some(part) for part in torch.split(weights, per, dim=1)], dim=1)


Decision = tuple[int, int]  # which sentence, which step of it


class Decided(Probe, Protocol):
    """A probe that knows whose decisions its rows are."""

    @property
    def shares(self) -> Tensor: ...  # (row, key): what each word weighed, however it was read
    @property
    def sentences(self) -> list[int]: ...
    @property
    def step(self) -> int: ...


class Subject(Protocol):
    """A model and what it decided about some sentences: all that the tests of `examine.py` know of a task."""

    @property
    def decision(self) -> str: ...  # what is decided, in words
    @property
    def quality(self) -> str: ...  # the name of the figure in `outputs`
    @property
    def things(self) -> str: ...  # what is looked at, in words
    @property
    def probed(self) -> bool: ...  # are there single decisions, or outputs alone?
    @property
    def sources(self) -> Sequence[Sequence[int]]: ...  # in ids, the end token last
    def chosen(self, each: int, seed: int) -> list[set[int]]: ...  # steps of each sentence, drawn
    def probes(self, steps: Sequence[set[int]]) -> Iterator[Decided]: ...
    def again(self, decisions: Sequence[Decision], sources: Sequence[Sequence[int]]) -> Tensor:
        """The distribution of each decision when this is read in place of its sentence: (row, class)."""

    def saliency(self, decisions: Sequence[Decision]) -> list[Tensor]: ...  # of every position, summing to 1
    def outputs(self, seed: int) -> dict[str, float]: ...  # as it is, and with weights uniform and permuted


@dataclass(frozen=True)
class TextProbe:
    """One step of each of some sentences."""

    model: Seq2Seq
    state: State
    last: Tensor
    site: str
    weights: Tensor
    valid: Tensor
    open: Tensor
    p: Tensor
    sentences: list[int]  # which of the corpus
    step: int

    @property
    def shares(self) -> Tensor:
        return self.weights.mean(dim=1)

    def outcome(self, weights: Tensor) -> Tensor:
        """The distributions of the next word under other weights, gradients led back to them."""
        return in_parts(weights, self._some)

    def _some(self, weights: Tensor) -> Tensor:
        rows, count = weights.shape[:2]

        def change(site: str, look: Look, _: Tensor) -> Override | None:
            assert look.weights is not None
            return Override(weights.to(look.weights.dtype)) if site == self.site else None

        wide = self.state.widened(count)
        stepped = self.model.step(wide, self.last.repeat_interleave(count), Watch(Detail.NONE, edit=change))
        return banned(stepped).softmax(dim=-1).view(rows, count, -1)


@dataclass(frozen=True)
class Corpus:
    """Sentences read and what the model itself wrote for them, in ids."""

    sources: Sequence[Sequence[int]]
    written: Sequence[Sequence[int]]

    def read(self, rows: Sequence[int], sources: Sequence[Sequence[int]]) -> Padded | Regions:
        """What a model reads when these stand for the sentences of `rows`."""
        return pad(sources)

    def batch(self, rows: Sequence[int]) -> TextBatch:
        """Sentences as they are, to be written as the model wrote them."""
        target = pad([[START, *self.written[row]] for row in rows])
        return TextBatch(self.read(rows, [self.sources[row] for row in rows]), target)

    def special(self, batch: TextBatch) -> Tensor:
        """(row, key): no part of what was said, such as the end token."""
        lengths = batch.source.lengths
        return torch.arange(batch.source.keep.shape[1]) == (lengths - 1)[:, None]


def chosen_steps(corpus: Corpus, per_sentence: int, seed: int) -> list[set[int]]:
    """For each sentence some steps, drawn; all of them where there are no more. The end is no decision."""
    rng = Generator().manual_seed(seed)
    chosen = []
    for written in corpus.written:
        count = max(1, len(written) - 1)
        chosen.append(set(torch.randperm(count, generator=rng)[:per_sentence].tolist()))
    return chosen


def text_probes(
    model: Seq2Seq, corpus: Corpus, steps: Sequence[set[int]], batch_size: int = 50
) -> Iterator[TextProbe]:
    """The chosen decisions, those of one batch and step together."""
    assert model.alignment is not None
    some = [i for i, mine in enumerate(steps) if mine]
    order = sorted(some, key=lambda i: len(corpus.sources[i]))
    for first in range(0, len(order), batch_size):
        rows = order[first : first + batch_size]
        yield from _batch(model, corpus, steps, rows)


def _batch(model: Seq2Seq, corpus: Corpus, steps: Sequence[set[int]], rows: list[int]) -> Iterator[TextProbe]:
    site = model.alignment
    assert site is not None
    written = pad([corpus.written[row] for row in rows]).ids
    batch = corpus.batch(rows)
    with torch.no_grad():
        state, _ = model.encode(batch)
    last = torch.full((len(rows),), model.first)
    open_ = state.memory[site].keep
    special = corpus.special(batch)
    watch = Watch(Detail.WEIGHTS, frozenset({site}))
    for t in range(max(max(steps[row], default=0) for row in rows) + 1):
        with torch.no_grad():
            stepped = model.step(state, last, watch)
        mine = [place for place, row in enumerate(rows) if t in steps[row]]
        if mine:
            at = torch.tensor(mine)
            weights = stepped.looks[site].weights
            assert weights is not None
            yield TextProbe(
                model,
                state.select(at, at),
                last[at],
                site,
                weights[at, 0],
                (open_ & ~special)[at],
                open_[at],
                banned(stepped)[at].softmax(dim=-1).detach(),
                [rows[place] for place in mine],
                t,
            )
        state, last = stepped.state, written[:, t]


def scored(
    model: Seq2Seq, corpus: Corpus, decisions: Sequence[Decision], sources: Sequence[Sequence[int]]
) -> Tensor:
    """The distribution of each decision when this is read in place of its sentence: (row, word)."""
    prefixes = [corpus.written[sentence][:step] for sentence, step in decisions]
    order = sorted(range(len(sources)), key=lambda i: (len(sources[i]), len(prefixes[i])))
    found: list[tuple[int, Tensor]] = []
    for first in range(0, len(order), 200):
        rows = order[first : first + 200]
        target = pad([[START, *prefixes[row], END] for row in rows])
        with torch.no_grad():
            read = corpus.read([decisions[row][0] for row in rows], [sources[row] for row in rows])
            stepped = model.score(TextBatch(read, target))
            at = torch.tensor([len(prefixes[row]) for row in rows])
            p = banned(one_step(stepped, at)).softmax(dim=-1)
        found += zip(rows, p, strict=True)
    return torch.stack([p for _, p in sorted(found, key=lambda pair: pair[0])])


def one_step(stepped: Stepped, at: Tensor) -> Stepped:
    """Of many steps, one for each row."""
    rows = torch.arange(len(at))
    copied = stepped.copied
    if copied is not None:
        copied = Copied(copied.weights[rows, at][:, None], copied.gate[rows, at][:, None], copied.ids)
    return stepped._replace(said=stepped.said[rows, at][:, None], copied=copied)


def saliency(model: Seq2Seq, corpus: Corpus, decisions: Sequence[tuple[int, int]]) -> list[Tensor]:
    """For each (sentence, step): `|sum_d x_id dP(y)/dx_id|` of every source position, summing to 1.

    y is the word that the model wrote. The weights of every look at the source are held fast.
    """
    found: dict[tuple[int, int], Tensor] = {}
    by_sentence: dict[int, list[int]] = {}
    for sentence, step in decisions:
        by_sentence.setdefault(sentence, []).append(step)
    order = sorted(by_sentence, key=lambda i: len(corpus.sources[i]))
    for first in range(0, len(order), 50):
        rows = order[first : first + 50]
        for (sentence, step), slope in _slopes(model, corpus, rows, by_sentence):
            found[sentence, step] = slope
    return [found[decision] for decision in decisions]


def _slopes(
    model: Seq2Seq, corpus: Corpus, rows: list[int], steps: Mapping[int, list[int]]
) -> Iterator[tuple[tuple[int, int], Tensor]]:
    sites = {site.id for site in model.sites if site.kind == "cross"}

    def held(site: str, look: Look, _: Tensor) -> Override | None:
        assert look.weights is not None
        return Override(look.weights.detach()) if site in sites else None

    batch = corpus.batch(rows)
    assert batch.target is not None
    for number in range(max(len(steps[row]) for row in rows)):
        at = torch.tensor([steps[row][min(number, len(steps[row]) - 1)] for row in rows])
        gold = batch.target.ids[torch.arange(len(rows)), at + 1]
        with torch.enable_grad():  # anew each time: fused layers lead back once
            stepped, vectors = _from_vectors(model, batch, Watch(Detail.NONE, edit=held))
            p = banned(one_step(stepped, at)).softmax(dim=-1).gather(-1, gold[:, None])
            (slope,) = torch.autograd.grad(p.sum(), vectors)
        importance = (slope * vectors.detach()).sum(dim=-1).abs()
        for place, row in enumerate(rows):
            if number < len(steps[row]):
                mine = importance[place, : len(corpus.sources[row])]
                yield (row, steps[row][number]), mine / mine.sum().clamp_min(1e-30)


def _from_vectors(model: Seq2Seq, batch: TextBatch, watch: Watch) -> tuple[Stepped, Tensor]:
    """The batch scored, and the source's word vectors (or regions), to which gradients lead."""
    if isinstance(batch.source, Regions):
        seen = batch.source.vectors.detach().requires_grad_()
        return model.score(TextBatch(Regions(seen, batch.source.keep), batch.target), watch), seen
    vectors: list[Tensor] = []

    def hear(_: nn.Module, __: object, out: Tensor) -> Tensor:
        if not vectors:  # where vectors are shared, the target's come later
            vectors.append(out.detach().requires_grad_())
            return vectors[0]
        return out

    handle = model.embedding.register_forward_hook(hear)
    try:
        return model.score(batch, watch), vectors[0]
    finally:
        handle.remove()
