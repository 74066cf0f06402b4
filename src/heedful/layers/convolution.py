"""Convolutional encoder and decoder (Gehring 2017): gated linear convolutions with residual connections."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.attention import AttentionOutput, Carry, Hooks, build_attention
from heedful.config import ModelConfig
from heedful.layers.decoder import Decoder
from heedful.layers.dropout import Dropout
from heedful.layers.embedding import Positions
from heedful.layers.modules import TypedModuleList
from heedful.layers.readout import Output
from heedful.layers.state import DecoderOutput, EncoderOutput, State, attend_rows
from heedful.trace.schema import Site

SCALE = math.sqrt(0.5)  # keeps the variance of a sum of two terms at that of one (Gehring 2017, §3.5)


class ConvEncoder(nn.Module):
    """Stacked convolutions over word and position embeddings.

    The keys are the top layer, the values are the top layer plus the embeddings (eq. 2).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        encoder = config.encoder
        self.width = encoder.hidden
        self.positions = Positions(encoder.positions, config.embedding, encoder.max_positions)
        self.input_projection = nn.Linear(config.embedding, encoder.hidden)
        self.convolutions = TypedModuleList(
            nn.Conv1d(encoder.hidden, 2 * encoder.hidden, encoder.kernel_size, padding=encoder.kernel_size // 2)
            for _ in range(encoder.layers)
        )
        self.dropout = Dropout(config.dropout)

    def forward(self, inputs: Float[Tensor, "batch key input"], keep: Bool[Tensor, "batch key"]) -> EncoderOutput:
        """Encode a batch; padding is zeroed before every convolution, so that it does not affect words."""
        padding = ~keep[..., None]
        embedded = self.input_projection(self.dropout(self.positions(inputs)))
        x = embedded
        for convolution in self.convolutions:
            inputs = self.dropout(x).masked_fill(padding, 0.0)
            x = (_gated(convolution, inputs) + x) * SCALE
        x = x.masked_fill(padding, 0.0)
        return EncoderOutput(x, ((x + embedded) * SCALE).masked_fill(padding, 0.0), keep)


class ConvDecoder(Decoder):
    """Causal convolutions with attention after each; its query is the layer's output plus the word (eq. 1)."""

    def __init__(self, config: ModelConfig, embedding: nn.Embedding, tied: bool) -> None:
        super().__init__()
        decoder = config.decoder
        self.kernel_size = decoder.kernel_size
        self.embedding = embedding
        self.positions = Positions(decoder.positions, config.embedding, decoder.max_positions)
        self.input_projection = nn.Linear(config.embedding, decoder.hidden)
        self.convolutions = TypedModuleList(
            nn.Conv1d(decoder.hidden, 2 * decoder.hidden, decoder.kernel_size) for _ in range(decoder.layers)
        )
        key = config.encoder_width
        context = decoder.hidden if config.attention.heads else key
        self.query_projections = TypedModuleList(nn.Linear(decoder.hidden, decoder.hidden) for _ in self.convolutions)
        self.attentions = TypedModuleList(
            build_attention(config.attention, query_size=decoder.hidden, key_size=key, site=f"cross.{depth}")
            for depth in range(decoder.layers)
        )
        self.context_projections = TypedModuleList(nn.Linear(context, decoder.hidden) for _ in self.convolutions)
        self.dropout = Dropout(config.dropout)
        self.output_projection = nn.Linear(decoder.hidden, config.embedding)
        self.output = Output(config.embedding, embedding.num_embeddings, embedding if tied else None)

    @property
    def feature_width(self) -> int:
        return self.output.width

    @property
    def sites(self) -> tuple[Site, ...]:
        return tuple(attention.site for attention in self.attentions)

    @property
    def alignment_site(self) -> str:
        return f"cross.{len(self.attentions) - 1}"

    @property
    def parallel(self) -> bool:
        return not any(attention.sequential for attention in self.attentions)

    def initial_state(self, encoder_output: EncoderOutput) -> State:
        """Return the state before the first token: each layer has only zeros before its first input."""
        keys, values, keep = encoder_output.keys, encoder_output.values, encoder_output.keep
        memory = {attention.site.id: attention.prepare(keys, keep, values) for attention in self.attentions}
        carry = {attention.site.id: attention.initial_carry(memory[attention.site.id]) for attention in self.attentions}
        zeros = keys.new_zeros(len(keys), self.kernel_size - 1, self.input_projection.out_features)
        return State(memory, hidden=(zeros,) * len(self.convolutions), carry=carry)

    def decode(self, state: State, ids: Int[Tensor, "row query"], hooks: Hooks) -> DecoderOutput:
        """Feed these tokens; `state.hidden` holds the last `kernel_size - 1` inputs of every layer."""
        embedded = self.input_projection(self.dropout(self.positions(self.embedding(ids), state.position)))
        x = embedded
        last_inputs: list[Tensor] = []
        attentions: dict[str, AttentionOutput] = {}
        carry: dict[str, Carry] = {}
        intermediates: dict[str, Tensor] = {}  # of the last layer
        for depth, convolution in enumerate(self.convolutions):
            inputs = torch.cat([state.hidden[depth], self.dropout(x)], dim=1)
            last_inputs.append(inputs[:, inputs.shape[1] - (self.kernel_size - 1) :])
            gated = _gated(convolution, inputs)
            query = (self.query_projections[depth](gated) + embedded) * SCALE
            site = f"cross.{depth}"
            context, attentions[site], carry[site] = attend_rows(self.attentions[depth], query, state, site, hooks)
            intermediates = {"context": context, "glu": gated, "residual": x}
            x = ((gated + self.context_projections[depth](context)) * SCALE + x) * SCALE
        after = state.advance(ids.shape[1], hidden=tuple(last_inputs), carry=carry)
        return DecoderOutput(self.dropout(self.output_projection(x)), after, attentions, intermediates, self.output)


def _gated(convolution: nn.Conv1d, x: Float[Tensor, "batch key hidden"]) -> Float[Tensor, "batch out hidden"]:
    """Return the gated linear unit of a convolution over positions (Dauphin 2017)."""
    return F.glu(convolution(x.transpose(1, 2)).transpose(1, 2), dim=-1)
