"""Several models that write as one: their probabilities are averaged, step by step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Generator, Tensor

from heedful.attention import PLAIN, Look, Watch
from heedful.data.batch import TextBatch
from heedful.errors import ModelError
from heedful.models import State, Stepped, Writer
from heedful.record import Site


@dataclass(frozen=True, slots=True)
class Joint(State):
    """The states of the members, side by side."""

    parts: tuple[State, ...] = ()

    def select(
        self, rows: Int[Tensor, "row"], sentences: Int[Tensor, "kept"] | None = None, beam: int = 1
    ) -> Joint:
        return Joint(parts=tuple(part.select(rows, sentences, beam) for part in self.parts), at=self.at)

    def widened(self, beam: int) -> Joint:
        return Joint(parts=tuple(part.widened(beam) for part in self.parts), at=self.at)


class Ensemble:
    """A `Writer` made of writers with one vocabulary. Sites are named `0:cross`, `1:cross`, ..."""

    def __init__(self, members: Sequence[Writer]) -> None:
        if len({member.first for member in members}) != 1:
            raise ModelError(
                "these models begin an output with different tokens, so they cannot write as one"
            )
        self.members = tuple(members)

    @property
    def sites(self) -> tuple[Site, ...]:
        return tuple(
            site._replace(id=f"{i}:{site.id}")
            for i, member in enumerate(self.members)
            for site in member.sites
        )

    @property
    def alignment(self) -> str | None:
        """The first member's that has one."""
        named = (f"{i}:{m.alignment}" for i, m in enumerate(self.members) if m.alignment is not None)
        return next(named, None)

    @property
    def first(self) -> int:
        return self.members[0].first

    def encode(self, batch: TextBatch, watch: Watch = PLAIN) -> tuple[State, Mapping[str, Look]]:
        both = [member.encode(batch, _watch(watch, i)) for i, member in enumerate(self.members)]
        looks = _named([found for _, found in both])
        return Joint(parts=tuple(state for state, _ in both)), looks

    def step(self, state: State, last: Int[Tensor, "row"], watch: Watch = PLAIN) -> Stepped:
        assert isinstance(state, Joint)
        steps = [
            member.step(part, last, _watch(watch, i))
            for i, (member, part) in enumerate(zip(self.members, state.parts, strict=True))
        ]
        after = Joint(parts=tuple(s.state for s in steps), at=state.at + 1)
        return Stepped(_mean([s.logits for s in steps]), after, _named([s.looks for s in steps]))

    def score(
        self, batch: TextBatch, watch: Watch = PLAIN, sampling: float = 0.0, rng: Generator | None = None
    ) -> Stepped:
        steps = [m.score(batch, _watch(watch, i), sampling, rng) for i, m in enumerate(self.members)]
        after = Joint(parts=tuple(s.state for s in steps), at=steps[0].state.at)
        return Stepped(_mean([s.logits for s in steps]), after, _named([s.looks for s in steps]))


def _mean(logits: list[Tensor]) -> Tensor:
    """The logarithm of the mean probability."""
    together = torch.stack([each.log_softmax(dim=-1) for each in logits])
    return together.logsumexp(dim=0) - math.log(len(logits))


def _named(looks: list[Mapping[str, Look]]) -> dict[str, Look]:
    return {f"{i}:{site}": look for i, found in enumerate(looks) for site, look in found.items()}


def _watch(watch: Watch, member: int) -> Watch:
    """What of a watch concerns one member: its own sites, by their own names."""
    mark = f"{member}:"
    edit = watch.edit
    sites = watch.sites
    if sites is not None:
        sites = frozenset(site.removeprefix(mark) for site in sites if site.startswith(mark))
    if edit is None:
        return Watch(watch.detail, sites)
    return Watch(watch.detail, sites, lambda site, look, at: edit(mark + site, look, at))
