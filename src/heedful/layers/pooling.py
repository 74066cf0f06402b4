"""Pooling of word states to one vector per text: attention, mean, maximum or final states."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.attention import Attention, AttentionOutput, Hooks, Memory, build_attention, extent
from heedful.config import ModelConfig
from heedful.layers.state import EncoderOutput
from heedful.optional import not_none
from heedful.trace.schema import Site

POOL = "pool"  # site of the pooling attention


class PoolingQuery(NamedTuple):
    """The query of a text and the memory it attends to, so that pooling can be repeated with other weights."""

    query: Float[Tensor, "batch query width"]
    memory: Memory

    def repeat(self, count: int) -> PoolingQuery:
        """Return the query repeated `count` times, so that hooks can set different weights for each copy."""
        return self._replace(query=self.query.expand(-1, count, -1))


class PoolingOutput(NamedTuple):
    """One vector per text; with attention also its output and its query."""

    vector: Float[Tensor, "batch width"]
    attentions: Mapping[str, AttentionOutput] = MappingProxyType({})
    query: PoolingQuery | None = None


def final_states(
    states: Float[Tensor, "batch key width"], keep: Bool[Tensor, "batch key"], directions: int
) -> Float[Tensor, "batch width"]:
    """Return `[h_T forward; h_1 backward]` of each text; with one direction, `h_T`."""
    rows = torch.arange(states.shape[0], device=states.device)
    last = states[rows, (extent(keep) - 1).clamp_min(0)]
    if directions == 1:
        return last
    half = states.shape[-1] // 2
    return torch.cat([last[:, :half], states[:, 0, half:]], dim=-1)


def max_pool(states: Float[Tensor, "batch key width"], keep: Bool[Tensor, "batch key"]) -> Float[Tensor, "batch width"]:
    """Return the maximum over the positions of `keep`, per feature; zeros for a text without any."""
    maximum = states.masked_fill(~keep[..., None], -torch.inf).amax(dim=1)
    return maximum.masked_fill(~keep.any(dim=1)[:, None], 0.0)


class Pooling(nn.Module):
    """The pooling that [model.classifier] names.

    The query of attention is the final state, or a learned vector (Yang 2016, eq. 5-7). With `form = "zhou"` the
    states of both directions are added, the keys are `tanh(h)`, and so is the output (Zhou 2016, eq. 8-12).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        classifier = not_none(config.classifier)
        encoder = config.encoder
        self.kind = classifier.pooling
        self.zhou = classifier.form == "zhou"
        self.directions = 2 if encoder.recurrent and encoder.bidirectional else 1
        self.width = config.pooled_width
        self.attention: Attention | None = None
        self.query: nn.Parameter | None = None
        if self.kind == "attention":
            self.attention = build_attention(
                config.attention, query_size=self.width, key_size=self.width, site=POOL, kind="pool"
            )
            if classifier.query == "learned":
                self.query = nn.Parameter(torch.randn(self.width) * self.width**-0.5)

    @property
    def sites(self) -> tuple[Site, ...]:
        return () if self.attention is None else (self.attention.site,)

    def forward(self, encoder_output: EncoderOutput, hooks: Hooks) -> PoolingOutput:
        if self.attention is not None:
            query = self.make_query(encoder_output)
            vector, attention = self.attend(query, hooks)
            return PoolingOutput(vector[:, 0], {POOL: attention}, query)
        values, keep = encoder_output.values, encoder_output.keep
        if self.kind == "mean":
            return PoolingOutput(encoder_output._replace(keys=values).mean())
        if self.kind == "max":
            return PoolingOutput(max_pool(values, keep))
        return PoolingOutput(final_states(values, keep, self.directions))

    def make_query(self, encoder_output: EncoderOutput) -> PoolingQuery:
        """Return the query of each text, and the memory it attends to."""
        keys, values, keep = encoder_output.keys, encoder_output.values, encoder_output.keep
        learned = None if self.query is None else self.query.expand(keys.shape[0], -1)
        query = final_states(keys, keep, self.directions) if learned is None else learned
        if self.zhou:
            forward, backward = values.chunk(2, dim=-1)
            values = forward + backward
            keys = torch.tanh(values)
        return PoolingQuery(query[:, None], not_none(self.attention).prepare(keys, keep, values))

    def attend(self, query: PoolingQuery, hooks: Hooks) -> tuple[Float[Tensor, "batch query width"], AttentionOutput]:
        """Return the pooled vector of every query, and the attention output."""
        output, _ = not_none(self.attention)(query.query, query.memory, hooks=hooks)
        context = not_none(output.context)
        return torch.tanh(context) if self.zhou else context, output
