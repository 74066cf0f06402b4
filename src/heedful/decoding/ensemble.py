"""An ensemble of models that decode together: their probabilities are averaged in every step."""

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
class EnsembleState(State):
    """The decoder states of all members."""

    members: tuple[State, ...] = ()

    def select(
        self, rows: Int[Tensor, "row"], sentences: Int[Tensor, "kept"] | None = None, beam: int = 1
    ) -> EnsembleState:
        members = tuple(member.select(rows, sentences, beam) for member in self.members)
        return EnsembleState(members=members, position=self.position)

    def expand_to_beam(self, beam: int) -> EnsembleState:
        members = tuple(member.expand_to_beam(beam) for member in self.members)
        return EnsembleState(members=members, position=self.position)


class Ensemble(AutoregressiveModel):
    """Models with the same vocabulary as one `AutoregressiveModel`. Sites are named `0:cross`, `1:cross`, ..."""

    def __init__(self, members: Sequence[AutoregressiveModel]) -> None:
        if len({member.start_token for member in members}) != 1:
            raise ModelError(
                "an ensemble needs models with the same model.decoder.start_token; some of these begin outputs"
                " with <s>, others with </s>"
            )
        self.members = tuple(members)

    @property
    def sites(self) -> tuple[Site, ...]:
        return tuple(
            site._replace(id=f"{i}:{site.id}") for i, member in enumerate(self.members) for site in member.sites
        )

    @property
    def alignment_site(self) -> str | None:
        """The alignment site of the first member that has one."""
        sites = (f"{i}:{m.alignment_site}" for i, m in enumerate(self.members) if m.alignment_site is not None)
        return next(sites, None)

    @property
    def start_token(self) -> int:
        return self.members[0].start_token

    def initial_state(self, batch: TextBatch, hooks: Hooks = NO_HOOKS) -> tuple[State, Mapping[str, AttentionOutput]]:
        results = [member.initial_state(batch, _member_hooks(hooks, i)) for i, member in enumerate(self.members)]
        attentions = _prefix_sites([attentions for _, attentions in results])
        return EnsembleState(members=tuple(state for state, _ in results)), attentions

    def step(self, state: State, last: Int[Tensor, "row"], hooks: Hooks = NO_HOOKS) -> DecoderOutput:
        assert isinstance(state, EnsembleState)
        outputs = [
            member.step(member_state, last, _member_hooks(hooks, i))
            for i, (member, member_state) in enumerate(zip(self.members, state.members, strict=True))
        ]
        return _combine(outputs, state.position + 1)

    def __call__(
        self, batch: TextBatch, hooks: Hooks = NO_HOOKS, scheduled_sampling: float = 0.0, rng: Generator | None = None
    ) -> DecoderOutput:
        outputs = [m(batch, _member_hooks(hooks, i), scheduled_sampling, rng) for i, m in enumerate(self.members)]
        return _combine(outputs, outputs[0].state.position)


def _combine(outputs: Sequence[DecoderOutput], position: int) -> DecoderOutput:
    """Return the output of the ensemble; its logits are the logarithm of the members' mean probability."""
    log_probs = torch.stack([output.logits.log_softmax(dim=-1) for output in outputs])
    mean = log_probs.logsumexp(dim=0) - math.log(len(outputs))
    state = EnsembleState(members=tuple(output.state for output in outputs), position=position)
    return DecoderOutput(mean, state, _prefix_sites([output.attentions for output in outputs]))


def _prefix_sites(attentions: Sequence[Mapping[str, AttentionOutput]]) -> dict[str, AttentionOutput]:
    """Return the attentions of all members by site, with the member's number before the name."""
    return {f"{i}:{site}": output for i, member in enumerate(attentions) for site, output in member.items()}


def _member_hooks(hooks: Hooks, member: int) -> Hooks:
    """Return the hooks of one member, with its own names of its sites."""
    prefix = f"{member}:"
    edit, sites = hooks.edit, hooks.sites
    if sites is not None:
        sites = frozenset(site.removeprefix(prefix) for site in sites if site.startswith(prefix))
    if edit is None:
        return Hooks(hooks.detail, sites)
    return Hooks(hooks.detail, sites, lambda site, output, positions: edit(prefix + site, output, positions))
