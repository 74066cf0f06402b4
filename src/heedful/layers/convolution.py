"""Convolutional encoder and decoder (Gehring 2017): gated linear filters with residuals."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.attention import Carry, Look, Watch, build_attention
from heedful.config import ModelConfig
from heedful.config.model import encoder_width
from heedful.layers.dropout import Dropout
from heedful.layers.embedding import Positions
from heedful.layers.modules import Modules
from heedful.layers.readout import Output
from heedful.layers.state import Read, State, Stepped, look_rows, one_by_one
from heedful.record import Site

HALF = math.sqrt(0.5)  # keeps the variance of a sum of two


class ConvEncoder(nn.Module):
    """Keys are the top layer; values are the top layer plus the embeddings (projected to its width)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        encoder = config.encoder
        self.width = encoder.hidden
        self.positions = Positions(encoder.positions, config.embedding, encoder.max_positions)
        self.into = nn.Linear(config.embedding, encoder.hidden)
        self.filters = Modules(
            nn.Conv1d(encoder.hidden, 2 * encoder.hidden, encoder.kernel, padding=encoder.kernel // 2)
            for _ in range(encoder.layers)
        )
        self.dropout = Dropout(config.dropout)

    def forward(self, inputs: Float[Tensor, "batch key input"], keep: Bool[Tensor, "batch key"]) -> Read:
        """Padding is zeroed before every filter, so that a sentence never feels its neighbours' length."""
        mask = keep[..., None]
        words = self.into(self.dropout(self.positions(inputs)))
        x = words
        for conv in self.filters:
            given = self.dropout(x).masked_fill(~mask, 0.0)
            x = (F.glu(conv(given.transpose(1, 2)).transpose(1, 2), dim=-1) + x) * HALF
        x = x.masked_fill(~mask, 0.0)
        return Read(x, ((x + words) * HALF).masked_fill(~mask, 0.0), keep)


class ConvDecoder(nn.Module):
    """Causal filters with a look after each layer: the query is the layer's output plus the word (eq. 1)."""

    def __init__(self, config: ModelConfig, embedding: nn.Embedding, tied: bool) -> None:
        super().__init__()
        decoder = config.decoder
        self.kernel = decoder.kernel
        self.embedding = embedding
        self.positions = Positions(decoder.positions, config.embedding, decoder.max_positions)
        self.into = nn.Linear(config.embedding, decoder.hidden)
        self.filters = Modules(
            nn.Conv1d(decoder.hidden, 2 * decoder.hidden, decoder.kernel) for _ in range(decoder.layers)
        )
        key = encoder_width(config)
        context = decoder.hidden if config.attention.heads else key
        self.asks = Modules(nn.Linear(decoder.hidden, decoder.hidden) for _ in self.filters)
        self.looks = Modules(
            build_attention(config.attention, query=decoder.hidden, key=key, site=f"cross.{depth}")
            for depth in range(decoder.layers)
        )
        self.answers = Modules(nn.Linear(context, decoder.hidden) for _ in self.filters)
        self.dropout = Dropout(config.dropout)
        self.out = nn.Linear(decoder.hidden, config.embedding)
        self.output = Output(config.embedding, embedding.num_embeddings, embedding if tied else None)

    @property
    def sites(self) -> tuple[Site, ...]:
        return tuple(look.site for look in self.looks)

    @property
    def alignment(self) -> str:
        return f"cross.{len(self.looks) - 1}"

    @property
    def shift(self) -> int:
        return 1

    @property
    def parallel(self) -> bool:
        return not any(look.sequential for look in self.looks)

    def begin(self, read: Read) -> State:
        """Each layer remembers the last inputs that its filter still covers; before the first word, zeros."""
        memory = {look.site.id: look.prepare(read.keys, read.keep, read.values) for look in self.looks}
        width = self.into.out_features
        past = read.keys.new_zeros(len(read.keys), self.kernel - 1, width)
        carry = {look.site.id: look.start(memory[look.site.id]) for look in self.looks}
        return State(memory, cells=(past,) * len(self.filters), carry=carry)

    def write(self, state: State, ids: Int[Tensor, "row query"], watch: Watch) -> Stepped:
        if not self.parallel and ids.shape[1] > 1:
            return one_by_one(self.write, state, ids, watch)
        words = self.into(self.dropout(self.positions(self.embedding(ids), state.at)))
        x = words
        cells: list[Tensor] = []
        looks: dict[str, Look] = {}
        carry: dict[str, Carry] = {}
        inner: dict[str, Tensor] = {}
        for depth, conv in enumerate(self.filters):
            given = torch.cat([state.cells[depth], self.dropout(x)], dim=1)
            cells.append(given[:, given.shape[1] - (self.kernel - 1) :])
            gated = F.glu(conv(given.transpose(1, 2)).transpose(1, 2), dim=-1)
            query = (self.asks[depth](gated) + words) * HALF
            site = f"cross.{depth}"
            context, looks[site], carry[site] = look_rows(self.looks[depth], query, state, site, watch)
            inner = {"context": context, "gated": gated, "stream": x}
            x = ((gated + self.answers[depth](context)) * HALF + x) * HALF
        after = state.moved(ids.shape[1], cells=tuple(cells), carry=carry)
        return Stepped(self.dropout(self.out(x)), after, looks, inner, self.output)
