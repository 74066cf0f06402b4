"""The reader: a text word by word, and how likely each next word is. LSTMN, LSTM or causal Transformer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.attention import PLAIN, Look, Watch, causal
from heedful.config import ModelConfig, ReaderConfig
from heedful.layers.dropout import Dropout, Locked
from heedful.layers.embedding import Positions, word_vectors
from heedful.layers.lstmn import LSTMN, TapeState
from heedful.layers.modules import Modules, must
from heedful.layers.readout import Output, TwoStepOutput
from heedful.layers.recurrent import Stack
from heedful.layers.transformer import Layer
from heedful.native import dropout
from heedful.record import Site

Carried = tuple[Tensor, ...] | tuple[TapeState, ...]
"""What goes from one part of a text to the next: an LSTM's states and cells, an LSTMN's tapes, or nothing."""


class Through(NamedTuple):
    """What one of the three makes of a text; no gradient goes back through `state`."""

    hidden: Float[Tensor, "row step hidden"]
    state: Carried
    looks: Mapping[str, Look]


class Reading(NamedTuple):
    """What is said after each word, which the output matrix turns into the next one; state and looks."""

    said: Float[Tensor, "row step width"]
    state: Carried
    looks: Mapping[str, Look]


class PlainLstm(nn.Module):
    """The baseline: all that was read is one state and one cell a layer."""

    sites: tuple[Site, ...] = ()

    def __init__(self, config: ReaderConfig, input: int, between: Dropout) -> None:
        super().__init__()
        self.stack = Stack("lstm", input, config.hidden, config.layers)
        self.stack.dropout = between
        for layer in self.stack.layers:
            _remember(layer.all_weights[0][2])

    def forward(self, x: Tensor, keep: Tensor, state: Carried, watch: Watch) -> Through:
        zeros = x.new_zeros(len(x), self.stack.hidden)
        begun = [t for t in state if isinstance(t, Tensor)] or [zeros] * (2 * len(self.stack.layers))
        hidden, after = self.stack(x, tuple(begun))
        return Through(hidden, tuple(t.detach() for t in after), {})


class TapeReader(nn.Module):
    """The LSTMN (Cheng 2016)."""

    def __init__(self, config: ReaderConfig, input: int, between: Dropout) -> None:
        super().__init__()
        self.most = config.tape
        self.stack = LSTMN(
            input,
            config.hidden,
            config.layers,
            recall=config.recall,
            zero_slot=config.zero_slot,
            recency=config.recency,
            skip=config.skip,
            dropout=between,
        )
        for cell in self.stack.cells:
            _remember(cell.gates.bias)

    @property
    def sites(self) -> tuple[Site, ...]:
        return self.stack.sites

    def forward(self, x: Tensor, keep: Tensor, state: Carried, watch: Watch) -> Through:
        begun = tuple(t for t in state if isinstance(t, TapeState))
        slots = self.stack.cells[0].tape.slots
        read = self.stack(x, keep, tuple(t.shortened(self.most, slots) for t in begun) or None, watch)
        return Through(read.hidden, read.state, read.looks)


class CausalTransformer(nn.Module):
    """Every word reads itself and all before it; nothing goes on to the next part of a text."""

    def __init__(self, config: ReaderConfig, input: int, share: float) -> None:
        super().__init__()
        self.width = config.hidden
        self.into = nn.Identity() if input == config.hidden else nn.Linear(input, config.hidden, bias=False)
        self.positions = Positions(config.positions, config.hidden, config.max_positions)
        self.layers = Modules(Layer(config, share, f"layer.{depth}") for depth in range(config.layers))
        last = nn.LayerNorm(config.hidden, eps=config.epsilon)
        self.last_norm = last if config.norm == "pre" else nn.Identity()

    @property
    def sites(self) -> tuple[Site, ...]:
        return tuple(layer.self_attention.site for layer in self.layers)

    def forward(self, x: Tensor, keep: Tensor, state: Carried, watch: Watch) -> Through:
        x = self.positions(self.into(x) * math.sqrt(self.width))
        allow = causal(x.shape[1], x.device)
        looks: dict[str, Look] = {}
        for layer in self.layers:
            x, looks[layer.self_site] = layer.read(x, keep, watch, allow)
        return Through(self.last_norm(x), (), looks)


def _remember(bias: Float[Tensor, "gates"]) -> None:
    """Forget gates begin open (Jozefowicz 2015): second of four in both orders of gates."""
    hidden = len(bias) // 4
    with torch.no_grad():
        bias[hidden : 2 * hidden] = 1.0


class Reader(nn.Module):
    """Word vectors, one of the three, and the output matrix, which may be the word vectors again."""

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        reader = must(config.reader)
        self.config = config
        drop: type[Dropout] = Locked if reader.locked else Dropout
        self.embedding = word_vectors(vocabulary, config.embedding)
        self.word_dropout = reader.word_dropout
        self.dropout = drop(config.dropout)
        self.core: PlainLstm | TapeReader | CausalTransformer
        if reader.kind == "transformer":
            self.core = CausalTransformer(reader, config.embedding, config.dropout)
        elif reader.kind == "lstm":
            self.core = PlainLstm(reader, config.embedding, drop(config.dropout))
        else:
            self.core = TapeReader(reader, config.embedding, drop(config.dropout))
        tied = config.tie == "output"
        narrow = tied and reader.hidden != config.embedding
        self.out = nn.Linear(reader.hidden, config.embedding, bias=False) if narrow else nn.Identity()
        width = config.embedding if tied else reader.hidden
        vectors = self.embedding if tied else None
        if 0 < reader.common < vocabulary:
            self.output: Output = TwoStepOutput(width, vocabulary, reader.common, vectors)
        else:
            self.output = Output(width, vocabulary, vectors)

    @property
    def sites(self) -> tuple[Site, ...]:
        return self.core.sites

    @property
    def alignment(self) -> str | None:
        """The site of the usual picture: the top layer's."""
        return self.sites[-1].id if self.sites else None

    def read(
        self,
        ids: Int[Tensor, "row step"],
        keep: Bool[Tensor, "row step"],
        state: Carried = (),
        watch: Watch = PLAIN,
    ) -> Reading:
        """Read words, going on from a state; `said` at padding is nobody's concern."""
        x = self.embedding(ids)
        if self.training and self.word_dropout:
            x = x * dropout(x.new_ones(self.embedding.num_embeddings, 1), self.word_dropout, True)[ids]
        through: Through = self.core(self.dropout(x), keep, state, watch)
        return Reading(self.dropout(self.out(through.hidden)), through.state, through.looks)

    def forward(self, ids: Int[Tensor, "row step"]) -> Float[Tensor, "row step vocab"]:
        """Scores of every next word of texts without padding."""
        scores: Tensor = self.output(self.read(ids, torch.ones_like(ids, dtype=torch.bool)).said)
        return scores
