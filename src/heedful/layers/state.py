"""Where a generation stands, and what one step of it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.attention import EMPTY, PLAIN, Attention, Carry, Look, Memory, Watch
from heedful.layers.modules import must


class Read(NamedTuple):
    """What an encoder gives: for every position what is compared and what is read, and its last states.

    `hidden` and `cells` hold the final states of every layer, directions side by side; they are empty
    where an encoder has none (`cells` where it is no LSTM). `tapes`: what an LSTMN wrote, by site.
    """

    keys: Float[Tensor, "batch key width"]
    values: Float[Tensor, "batch key width"]
    keep: Bool[Tensor, "batch key"]
    hidden: tuple[Float[Tensor, "batch state"], ...] = ()
    cells: tuple[Float[Tensor, "batch state"], ...] = ()
    looks: Mapping[str, Look] = MappingProxyType({})
    tapes: Mapping[str, Memory] = MappingProxyType({})

    def mean(self) -> Float[Tensor, "batch width"]:
        """The mean over real positions; zeros for a sentence without any."""
        weights = self.keep.to(self.keys.dtype) / self.keep.sum(dim=1, keepdim=True).clamp_min(1)
        return torch.einsum("bk,bkd->bd", weights, self.keys)


@dataclass(frozen=True, slots=True)
class State:
    """Rows are hypotheses, `beam` of them to a sentence, side by side; memories are per sentence.

    `cache` holds what each row itself has written (keys and values, or inputs of a convolution),
    `cells` the recurrent states, `feed` what of the last step enters the next.
    """

    memory: Mapping[str, Memory] = field(default_factory=dict)
    cache: Mapping[str, Memory] = field(default_factory=dict)
    cells: tuple[Tensor, ...] = ()  # (row, ...)
    feed: Tensor | None = None  # (row, width)
    carry: Mapping[str, Carry] = field(default_factory=dict)
    fixed: Mapping[str, Tensor] = field(default_factory=dict)  # per sentence: the one vector
    at: int = 0  # the step to come; all rows march together

    def select(
        self, rows: Int[Tensor, "row"], sentences: Int[Tensor, "kept"] | None = None, beam: int = 1
    ) -> State:
        """These rows only, in this order. `sentences` says which sentences stay when some have left.

        `beam` is the number of rows a sentence has from now on; rows of one sentence stay side by side.
        """
        memory, fixed = self.memory, self.fixed
        if sentences is not None:
            memory = {site: m.select(sentences) for site, m in memory.items()}
            fixed = {name: f[sentences] for name, f in fixed.items()}
        return State(
            memory,
            {site: m.select(rows) for site, m in self.cache.items()},
            tuple(cell[rows] for cell in self.cells),
            None if self.feed is None else self.feed[rows],
            {site: _rows_of(carry, rows, beam) for site, carry in self.carry.items()},
            fixed,
            self.at,
        )

    def widened(self, beam: int) -> State:
        """Every row `beam` times; what belongs to sentences is not repeated."""
        count = next(len(t) for t in self._row_tensors())
        rows = torch.arange(count).repeat_interleave(beam)
        return self.select(rows, beam=beam)

    def _row_tensors(self) -> list[Tensor]:
        caches = [m.keep for m in self.cache.values()]
        return [*self.cells, *caches, *([self.feed] if self.feed is not None else [])]

    def moved(self, steps: int, **changes: object) -> State:
        return replace(self, at=self.at + steps, **changes)  # type: ignore[arg-type]


def _rows_of(carry: Carry, rows: Tensor, beam: int) -> Carry:
    """A carry is (sentence, row of the sentence, ...); flatten, choose, fold again."""
    return {name: t.flatten(0, 1)[rows].view(-1, beam, *t.shape[2:]) for name, t in carry.items()}


COPY = "copy"  # the site of a pointer
IDS = "source ids"  # what can be copied, per sentence


class Copied(NamedTuple):
    """Where steps point, the gate between making (below 0) and copying, and what stands there."""

    weights: Float[Tensor, "row query key"]
    gate: Float[Tensor, "row query"]
    ids: Int[Tensor, "row key"]

    def mixed(self, scores: Float[Tensor, "row query vocab"]) -> Float[Tensor, "row query vocab"]:
        """The log-probabilities of words that are made by these scores or copied."""
        made = scores.softmax(dim=-1) * torch.sigmoid(-self.gate)[..., None]
        ids = self.ids[:, None].expand_as(self.weights)
        both = made.scatter_add(-1, ids, self.weights * torch.sigmoid(self.gate)[..., None])
        return both.clamp_min(torch.finfo(both.dtype).tiny).log()


def as_it_is(said: Tensor) -> Tensor:
    """The output of whatever gives its logits itself."""
    return said


class Stepped(NamedTuple):
    """What steps give: what scores the next words, the state after them, looks by site, what was in between.

    `logits` is the last matrix times `said` (where words can be copied, log-probabilities that count it in).
    It is the largest product of most models, and computed only
    where it is asked for: training wants it for real positions alone, in pieces.
    """

    said: Float[Tensor, "row query width"]
    state: State
    looks: Mapping[str, Look]
    inner: Mapping[str, Tensor] = MappingProxyType({})
    output: Callable[[Tensor], Tensor] = as_it_is
    copied: Copied | None = None

    @property
    def logits(self) -> Float[Tensor, "row query vocab"]:
        scores = self.output(self.said)
        return scores if self.copied is None else self.copied.mixed(scores)


def look_rows(
    attention: Attention,
    query: Float[Tensor, "row query width"],
    state: State,
    site: str,
    watch: Watch = PLAIN,
) -> tuple[Float[Tensor, "row query out"], Look, Carry]:
    """Look with every row at its own sentence's memory: rows of a sentence lie on the query axis."""
    memory = state.memory[site]
    rows, steps, _ = query.shape
    sentences = len(memory.keep)
    folded = query.reshape(sentences, -1, query.shape[-1])
    at = (state.at + torch.arange(steps, device=query.device)).repeat(rows // max(sentences, 1))
    context, look, carry = attention.look(
        folded,
        memory,
        at=at.expand(sentences, -1),
        carry=state.carry.get(site, EMPTY),
        watch=watch,
    )
    return context.reshape(rows, steps, -1), _unfolded(look, rows, steps), carry


def _unfolded(look: Look, rows: int, steps: int) -> Look:
    """A look of (sentence, row x step) as one of (row, step)."""

    def unfold(t: Tensor) -> Tensor:
        return t.reshape(rows, steps, *t.shape[2:])

    return _over(look, unfold)


def _over(look: Look, change: Callable[[Tensor], Tensor]) -> Look:
    """Every tensor of a look, changed."""
    weights, scores, query, context = (
        None if t is None else change(t) for t in (look.weights, look.scores, look.query, look.context)
    )
    return Look(weights, scores, {name: change(t) for name, t in look.extra.items()}, query, context)


def side_by_side(looks: list[Look]) -> Look:
    """The looks of single steps as one look with all of them on the query axis."""
    first = looks[0]

    def joined(name: str) -> Tensor | None:
        if getattr(first, name) is None:
            return None
        return torch.cat([must(getattr(look, name)) for look in looks], dim=1)

    extra = {name: torch.cat([look.extra[name] for look in looks], dim=1) for name in first.extra}
    return Look(joined("weights"), joined("scores"), extra, joined("query"), joined("context"))


def one_by_one(
    write: Callable[[State, Tensor, Watch], Stepped],
    state: State,
    ids: Int[Tensor, "row query"],
    watch: Watch,
) -> Stepped:
    """The same words one step after another, where each step depends on what the one before read."""
    steps: list[Stepped] = []
    for t in range(ids.shape[1]):
        steps.append(write(state, ids[:, t : t + 1], watch))
        state = steps[-1].state
    return join_steps(steps)


def join_steps(steps: list[Stepped]) -> Stepped:
    """Single steps as one record of all of them."""
    if len(steps) == 1:
        return steps[0]
    return Stepped(
        torch.cat([s.said for s in steps], dim=1),
        steps[-1].state,
        {site: side_by_side([s.looks[site] for s in steps]) for site in steps[0].looks},
        {name: torch.cat([s.inner[name] for s in steps], dim=1) for name in steps[0].inner},
        steps[0].output,
        _copied_in_all(steps),
    )


def _copied_in_all(steps: list[Stepped]) -> Copied | None:
    copied = [s.copied for s in steps if s.copied is not None]
    if not copied:
        return None
    weights, gates = (torch.cat([c[i] for c in copied], dim=1) for i in (0, 1))
    return Copied(weights, gates, copied[0].ids)
