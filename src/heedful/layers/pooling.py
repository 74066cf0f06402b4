"""From the states of all words to one vector: a single look, or a mean, a maximum, the last states."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.attention import Attention, Look, Memory, Watch, build_attention, extent
from heedful.config import ModelConfig
from heedful.config.model import RECURRENT, pooled_width
from heedful.layers.modules import must
from heedful.layers.state import Read
from heedful.record import Site

POOL = "pool"  # the site


class Asked(NamedTuple):
    """What a text is asked, and what can be read of it; made once, however often the weights change."""

    query: Float[Tensor, "batch query width"]
    memory: Memory

    def times(self, count: int) -> Asked:
        """The same question so many times."""
        return self._replace(query=self.query.expand(-1, count, -1))


class Pooled(NamedTuple):
    """One vector for each text, and how it was read."""

    vector: Float[Tensor, "batch width"]
    looks: Mapping[str, Look] = MappingProxyType({})
    asked: Asked | None = None


def last_states(
    states: Float[Tensor, "batch key width"], keep: Bool[Tensor, "batch key"], directions: int
) -> Float[Tensor, "batch width"]:
    """`[h_T forward; h_1 backward]`, of each text its own; with one direction, `h_T`."""
    rows = torch.arange(len(states), device=states.device)
    end = states[rows, (extent(keep) - 1).clamp_min(0)]
    if directions == 1:
        return end
    half = states.shape[-1] // 2
    return torch.cat([end[:, :half], states[:, 0, half:]], dim=-1)


def largest(
    states: Float[Tensor, "batch key width"], keep: Bool[Tensor, "batch key"]
) -> Float[Tensor, "batch width"]:
    """The maximum over real positions, place by place; zeros for a text without any."""
    found = states.masked_fill(~keep[..., None], -torch.inf).amax(dim=1)
    return found.masked_fill(~keep.any(dim=1)[:, None], 0.0)


class Pooling(nn.Module):
    """As [model.classifier] says."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        classifier = must(config.classifier)
        encoder = config.encoder
        self.kind = classifier.pooling
        self.added = classifier.form == "zhou"
        self.directions = 2 if encoder.kind in RECURRENT and encoder.bidirectional else 1
        self.width = pooled_width(config)
        self.attention: Attention | None = None
        self.query: nn.Parameter | None = None
        if self.kind == "attention":
            self.attention = build_attention(
                config.attention, query=self.width, key=self.width, site=POOL, kind="pool"
            )
            if classifier.query == "learned":
                self.query = nn.Parameter(torch.randn(self.width) * self.width**-0.5)

    @property
    def sites(self) -> tuple[Site, ...]:
        return () if self.attention is None else (self.attention.site,)

    def forward(self, read: Read, watch: Watch) -> Pooled:
        if self.attention is not None:
            asked = self.ask(read)
            vector, look = self.look(asked, watch)
            return Pooled(vector[:, 0], {POOL: look}, asked)
        if self.kind == "mean":
            return Pooled(read._replace(keys=read.values).mean())
        if self.kind == "max":
            return Pooled(largest(read.values, read.keep))
        return Pooled(last_states(read.values, read.keep, self.directions))

    def ask(self, read: Read) -> Asked:
        """What asks, and what it will ask; Zhou 2016 compares with `tanh(h)` and reads `h`."""
        keys, values = read.keys, read.values
        if self.added:
            forward, backward = values.chunk(2, dim=-1)
            values = forward + backward
            keys = torch.tanh(values)
        if self.query is None:
            query = last_states(read.keys, read.keep, self.directions)
        else:
            query = self.query.expand(len(keys), -1)
        return Asked(query[:, None], must(self.attention).prepare(keys, read.keep, values))

    def look(self, asked: Asked, watch: Watch) -> tuple[Float[Tensor, "batch query width"], Look]:
        """Read with the query; it may have been repeated, to be given other weights each time."""
        context, look, _ = must(self.attention).look(asked.query, asked.memory, watch=watch)
        return torch.tanh(context) if self.added else context, look
