"""The language model: an LSTM, an LSTMN or a causal Transformer predicts each next word of a text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful import kernels
from heedful.attention import NO_HOOKS, AttentionOutput, Hooks, causal
from heedful.config import LanguageModelConfig, ModelConfig
from heedful.layers.dropout import Dropout, VariationalDropout
from heedful.layers.embedding import Positions, token_embedding
from heedful.layers.lstmn import LSTMN, TapeState
from heedful.layers.modules import TypedModuleList
from heedful.layers.readout import Output, TwoLevelOutput
from heedful.layers.recurrent import RecurrentStack
from heedful.layers.transformer import EncoderLayer, final_norm, linear_or_identity
from heedful.optional import not_none
from heedful.trace.schema import Site

CoreState = tuple[Tensor, ...] | tuple[TapeState, ...]
"""The state after a part of a text: hidden states and cells of an LSTM, tapes of an LSTMN; empty for a Transformer."""


class CoreOutput(NamedTuple):
    """The hidden states of a text, its attentions by site, and the detached state after it."""

    hidden: Float[Tensor, "row step hidden"]
    state: CoreState
    attentions: Mapping[str, AttentionOutput]


class LanguageModelOutput(NamedTuple):
    """The features that the output layer turns into logits of the next word, the state, attentions by site."""

    features: Float[Tensor, "row step width"]
    state: CoreState
    attentions: Mapping[str, AttentionOutput]


class LSTMCore(nn.Module):
    """A stacked LSTM, the baseline without attention."""

    sites: tuple[Site, ...] = ()

    def __init__(self, config: LanguageModelConfig, input_size: int, dropout: Dropout) -> None:
        super().__init__()
        self.rnn = RecurrentStack("lstm", input_size, config.hidden, config.layers)
        self.rnn.dropout = dropout
        for layer in self.rnn.layers:
            _init_forget_bias(layer.all_weights[0][2])

    def forward(self, x: Tensor, keep: Tensor, state: CoreState, hooks: Hooks) -> CoreOutput:
        zeros = x.new_zeros(len(x), self.rnn.hidden_size)
        initial = [t for t in state if isinstance(t, Tensor)] or [zeros] * (2 * len(self.rnn.layers))
        hidden, final = self.rnn(x, tuple(initial))
        return CoreOutput(hidden, tuple(t.detach() for t in final), {})


class LSTMNCore(nn.Module):
    """A stacked LSTMN (Cheng 2016); a text continues with the last `max_tape` slots of each tape."""

    def __init__(self, config: LanguageModelConfig, input_size: int, dropout: Dropout) -> None:
        super().__init__()
        self.max_tape = config.max_tape
        self.lstmn = LSTMN(
            input_size,
            config.hidden,
            config.layers,
            recall=config.recall,
            zero_slot=config.zero_slot,
            recency=config.recency,
            skip=config.skip,
            dropout=dropout,
        )
        for cell in self.lstmn.cells:
            _init_forget_bias(cell.gates.bias)

    @property
    def sites(self) -> tuple[Site, ...]:
        return self.lstmn.sites

    def forward(self, x: Tensor, keep: Tensor, state: CoreState, hooks: Hooks) -> CoreOutput:
        zero_slots = self.lstmn.cells[0].tape.initial_slots
        tapes = tuple(tape.truncate(self.max_tape, zero_slots) for tape in state if isinstance(tape, TapeState))
        output = self.lstmn(x, keep, tapes or None, hooks)
        return CoreOutput(output.hidden, output.state, output.attentions)


class CausalTransformer(nn.Module):
    """A Transformer in which every word attends to itself and those before it; it has no state between calls."""

    def __init__(self, config: LanguageModelConfig, input_size: int, dropout: float) -> None:
        super().__init__()
        self.width = config.hidden
        self.input_projection = linear_or_identity(input_size, config.hidden)
        self.positions = Positions(config.positions, config.hidden, config.max_positions)
        self.layers = TypedModuleList(EncoderLayer(config, dropout, f"layer.{depth}") for depth in range(config.layers))
        self.final_norm = final_norm(config)

    @property
    def sites(self) -> tuple[Site, ...]:
        return tuple(layer.self_attention.site for layer in self.layers)

    def forward(self, x: Tensor, keep: Tensor, state: CoreState, hooks: Hooks) -> CoreOutput:
        x = self.positions(self.input_projection(x) * math.sqrt(self.width))
        allowed = causal(x.shape[1], x.device)
        attentions: dict[str, AttentionOutput] = {}
        for layer in self.layers:
            x, attentions[layer.self_site] = layer(x, keep, hooks, allowed)
        return CoreOutput(self.final_norm(x), (), attentions)


def _init_forget_bias(bias: Float[Tensor, "gates"]) -> None:
    """Set the bias of the forget gates, the second quarter of the gates, to 1 (Jozefowicz 2015)."""
    hidden = len(bias) // 4
    with torch.no_grad():
        bias[hidden : 2 * hidden] = 1.0


class LanguageModel(nn.Module):
    """An embedding, the core that [model.language_model] names, and an output layer, tied to it or not."""

    __call__: Callable[..., LanguageModelOutput]

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        settings = not_none(config.language_model)
        self.config = config
        dropout: type[Dropout] = VariationalDropout if settings.variational_dropout else Dropout
        self.embedding = token_embedding(vocabulary, config.embedding)
        self.word_dropout = settings.word_dropout
        self.dropout = dropout(config.dropout)
        self.core: LSTMCore | LSTMNCore | CausalTransformer
        if settings.kind == "transformer":
            self.core = CausalTransformer(settings, config.embedding, config.dropout)
        elif settings.kind == "lstm":
            self.core = LSTMCore(settings, config.embedding, dropout(config.dropout))
        else:
            self.core = LSTMNCore(settings, config.embedding, dropout(config.dropout))
        tied = config.tie_embeddings == "output"
        project = tied and settings.hidden != config.embedding
        self.output_projection = nn.Linear(settings.hidden, config.embedding, bias=False) if project else nn.Identity()
        width = config.embedding if tied else settings.hidden
        embedding = self.embedding if tied else None
        if 0 < settings.shortlist < vocabulary:
            self.output: Output = TwoLevelOutput(width, vocabulary, settings.shortlist, embedding)
        else:
            self.output = Output(width, vocabulary, embedding)

    @property
    def sites(self) -> tuple[Site, ...]:
        return self.core.sites

    @property
    def alignment_site(self) -> str | None:
        """The attention of the top layer; None without attention."""
        return self.sites[-1].id if self.sites else None

    def forward(
        self,
        ids: Int[Tensor, "row step"],
        keep: Bool[Tensor, "row step"],
        state: CoreState = (),
        hooks: Hooks = NO_HOOKS,
    ) -> LanguageModelOutput:
        """Run over texts, starting from a state; features at padding are meaningless."""
        x = self.embedding(ids)
        if self.training and self.word_dropout:  # all occurrences of a word at once (Gal 2016)
            x = x * kernels.dropout(x.new_ones(self.embedding.num_embeddings, 1), self.word_dropout, True)[ids]
        output: CoreOutput = self.core(self.dropout(x), keep, state, hooks)
        features = self.dropout(self.output_projection(output.hidden))
        return LanguageModelOutput(features, output.state, output.attentions)

    def logits(self, ids: Int[Tensor, "row step"]) -> Float[Tensor, "row step vocab"]:
        """Return the logits of every next word of texts without padding."""
        logits: Tensor = self.output(self(ids, torch.ones_like(ids, dtype=torch.bool)).features)
        return logits
