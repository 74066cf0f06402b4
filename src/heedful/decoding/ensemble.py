"""Several models that write as one: their probabilities are averaged, step by step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Generator, Tensor

from heedful.attention import NO_HOOKS, AttentionOutput, Hooks
from heedful.data.batch import TextBatch
from heedful.errors import ModelError
from heedful.models import AutoregressiveModel, DecoderOutput, State
from heedful.trace.schema import Site


@dataclass(frozen=True, slots=True)
class Joint(State):
    """The states of the members, side by side."""

    parts: tuple[State, ...] = ()

    def select(self, rows: Int[Tensor, "row"], sentences: Int[Tensor, "kept"] | None = None, beam: int = 1) -> Joint:
        return Joint(parts=tuple(part.select(rows, sentences, beam) for part in self.parts), position=self.position)

    def expand_to_beam(self, beam: int) -> Joint:
        return Joint(parts=tuple(part.expand_to_beam(beam) for part in self.parts), position=self.position)


class Ensemble(AutoregressiveModel):
    """A `Writer` made of writers with one vocabulary. Sites are named `0:cross`, `1:cross`, ..."""

    def __init__(self, members: Sequence[AutoregressiveModel]) -> None:
        if len({member.start_token for member in members}) != 1:
            raise ModelError("these models begin an output with different tokens, so they cannot write as one")
        self.members = tuple(members)

    @property
    def sites(self) -> tuple[Site, ...]:
        return tuple(
            site._replace(id=f"{i}:{site.id}") for i, member in enumerate(self.members) for site in member.sites
        )

    @property
    def alignment_site(self) -> str | None:
        """The first member's that has one."""
        named = (f"{i}:{m.alignment_site}" for i, m in enumerate(self.members) if m.alignment_site is not None)
        return next(named, None)

    @property
    def start_token(self) -> int:
        return self.members[0].start_token

    def initial_state(self, batch: TextBatch, hooks: Hooks = NO_HOOKS) -> tuple[State, Mapping[str, AttentionOutput]]:
        both = [member.initial_state(batch, _watch(hooks, i)) for i, member in enumerate(self.members)]
        attentions = _named([found for _, found in both])
        return Joint(parts=tuple(state for state, _ in both)), attentions

    def step(self, state: State, last: Int[Tensor, "row"], hooks: Hooks = NO_HOOKS) -> DecoderOutput:
        assert isinstance(state, Joint)
        steps = [
            member.step(part, last, _watch(hooks, i))
            for i, (member, part) in enumerate(zip(self.members, state.parts, strict=True))
        ]
        after = Joint(parts=tuple(s.state for s in steps), position=state.position + 1)
        return DecoderOutput(_mean([s.logits for s in steps]), after, _named([s.attentions for s in steps]))

    def __call__(
        self, batch: TextBatch, hooks: Hooks = NO_HOOKS, scheduled_sampling: float = 0.0, rng: Generator | None = None
    ) -> DecoderOutput:
        steps = [m(batch, _watch(hooks, i), scheduled_sampling, rng) for i, m in enumerate(self.members)]
        after = Joint(parts=tuple(s.state for s in steps), position=steps[0].state.position)
        return DecoderOutput(_mean([s.logits for s in steps]), after, _named([s.attentions for s in steps]))


def _mean(logits: list[Tensor]) -> Tensor:
    """The logarithm of the mean probability."""
    together = torch.stack([each.log_softmax(dim=-1) for each in logits])
    return together.logsumexp(dim=0) - math.log(len(logits))


def _named(attentions: list[Mapping[str, AttentionOutput]]) -> dict[str, AttentionOutput]:
    return {f"{i}:{site}": look for i, found in enumerate(attentions) for site, look in found.items()}


def _watch(hooks: Hooks, member: int) -> Hooks:
    """What of a watch concerns one member: its own sites, by their own names."""
    mark = f"{member}:"
    edit = hooks.edit
    sites = hooks.sites
    if sites is not None:
        sites = frozenset(site.removeprefix(mark) for site in sites if site.startswith(mark))
    if edit is None:
        return Hooks(hooks.detail, sites)
    return Hooks(hooks.detail, sites, lambda site, look, at: edit(mark + site, look, at))
