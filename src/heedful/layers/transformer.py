"""Transformer encoder and decoder (Vaswani 2017); hooks can record and edit each of their attentions."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.attention import Attention, AttentionOutput, Heads, Hooks, Memory, ScaledDot, causal
from heedful.config import DecoderConfig, EncoderConfig, LanguageModelConfig, ModelConfig
from heedful.layers.decoder import Decoder
from heedful.layers.dropout import Dropout
from heedful.layers.embedding import Positions
from heedful.layers.modules import TypedModuleList
from heedful.layers.readout import Output
from heedful.layers.state import DecoderOutput, EncoderOutput, State, attend_rows
from heedful.optional import not_none
from heedful.trace.schema import Site, SiteKind

Vectors = Float[Tensor, "row query width"]


def multi_head_attention(heads: int, width: int, key_size: int, dropout: float, site: str, kind: SiteKind) -> Attention:
    """Build scaled dot-product attention with several heads (Vaswani 2017, §3.2)."""
    projections = Heads(heads, width, query_size=width, key_size=key_size)
    score = ScaledDot(projections.head_width, projections.head_width)
    return Attention(score, heads=projections, dropout=dropout, site=site, kind=kind)


class FeedForward(nn.Sequential):
    """`W_2 relu(W_1 x)` at every position (Vaswani 2017, eq. 2)."""

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__(nn.Linear(width, hidden), nn.ReLU(), Dropout(dropout), nn.Linear(hidden, width))


class Residual(nn.Module):
    """The residual connection around a sublayer: `x + f(norm(x))` (pre-norm) or `norm(x + f(x))` (post-norm).

    The sublayer is applied between `normalize_input` and `add`.
    """

    def __init__(self, width: int, pre_norm: bool, dropout: float, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, eps=epsilon)
        self.pre_norm = pre_norm
        self.dropout = Dropout(dropout)

    def normalize_input(self, x: Vectors) -> Vectors:
        normalized: Tensor = self.norm(x) if self.pre_norm else x
        return normalized

    def add(self, x: Vectors, sublayer_output: Vectors) -> Vectors:
        total = x + self.dropout(sublayer_output)
        normalized: Tensor = total if self.pre_norm else self.norm(total)
        return normalized


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward network."""

    def __init__(self, config: EncoderConfig | DecoderConfig | LanguageModelConfig, dropout: float, name: str) -> None:
        super().__init__()
        width, pre_norm, inner_dropout = config.hidden, config.norm == "pre", config.inner_dropout * dropout
        self.self_site = f"{name}.self"
        self.self_attention = multi_head_attention(config.heads, width, width, inner_dropout, self.self_site, "self")
        self.self_residual = Residual(width, pre_norm, dropout, config.norm_epsilon)
        self.feed_forward = FeedForward(width, config.feedforward, inner_dropout)
        self.feed_forward_residual = Residual(width, pre_norm, dropout, config.norm_epsilon)

    def forward(
        self,
        x: Vectors,
        keep: Bool[Tensor, "batch key"],
        hooks: Hooks,
        allowed: Bool[Tensor, "#batch #query key"] | None = None,
    ) -> tuple[Vectors, AttentionOutput]:
        """Attend from every position to those of `keep` (and of `allowed`, such as a causal mask)."""
        queries = self.self_residual.normalize_input(x)
        memory = self.self_attention.prepare(queries, keep)
        output, _ = self.self_attention(queries, memory, allowed=allowed, hooks=hooks)
        return self.apply_feed_forward(self.self_residual.add(x, not_none(output.context))), output

    def apply_feed_forward(self, x: Vectors) -> Vectors:
        residual = self.feed_forward_residual
        return residual.add(x, self.feed_forward(residual.normalize_input(x)))


class DecoderLayer(EncoderLayer):
    """Self-attention, attention to the source, and a feed-forward network."""

    def __init__(self, config: DecoderConfig, dropout: float, name: str, source_width: int) -> None:
        super().__init__(config, dropout, name)
        width, inner_dropout = config.hidden, config.inner_dropout * dropout
        self.cross_site = f"{name}.cross"
        self.cross_attention = multi_head_attention(
            config.heads, width, source_width, inner_dropout, self.cross_site, "cross"
        )
        self.cross_residual = Residual(width, config.norm == "pre", dropout, config.norm_epsilon)


class TransformerEncoder(nn.Module):
    """A stack of `EncoderLayer`s; with pre-norm a final layer norm follows."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        encoder = config.encoder
        self.width = encoder.hidden
        self.input_projection = linear_or_identity(config.embedding, encoder.hidden)
        self.positions = Positions(encoder.positions, encoder.hidden, encoder.max_positions)
        self.layers = TypedModuleList(
            EncoderLayer(encoder, config.dropout, f"enc.{depth}") for depth in range(encoder.layers)
        )
        self.final_norm = final_norm(encoder)
        self.dropout = Dropout(config.dropout)

    @property
    def sites(self) -> tuple[Site, ...]:
        return tuple(layer.self_attention.site for layer in self.layers)

    def forward(
        self, inputs: Float[Tensor, "batch key input"], keep: Bool[Tensor, "batch key"], hooks: Hooks
    ) -> EncoderOutput:
        x = self.dropout(self.positions(self.input_projection(inputs) * math.sqrt(self.width)))
        attentions: dict[str, AttentionOutput] = {}
        for layer in self.layers:
            x, attentions[layer.self_site] = layer(x, keep, hooks)
        x = self.final_norm(x)
        return EncoderOutput(x, x, keep, attentions=attentions)


class TransformerDecoder(Decoder):
    """A stack of `DecoderLayer`s under a causal mask; keys and values of earlier tokens are cached."""

    def __init__(self, config: ModelConfig, embedding: nn.Embedding, tied: bool) -> None:
        super().__init__()
        decoder = config.decoder
        self.width = decoder.hidden
        self.embedding = embedding
        self.input_projection = linear_or_identity(config.embedding, decoder.hidden)
        self.positions = Positions(decoder.positions, decoder.hidden, decoder.max_positions)
        self.layers = TypedModuleList(
            DecoderLayer(decoder, config.dropout, f"dec.{depth}", config.encoder_width)
            for depth in range(decoder.layers)
        )
        self.final_norm = final_norm(decoder)
        self.dropout = Dropout(config.dropout)
        width = config.embedding if tied else decoder.hidden
        self.output_projection = linear_or_identity(decoder.hidden, config.embedding) if tied else nn.Identity()
        self.output = Output(width, embedding.num_embeddings, embedding if tied else None)

    @property
    def feature_width(self) -> int:
        return self.output.width

    @property
    def sites(self) -> tuple[Site, ...]:
        pairs = [(layer.self_attention.site, layer.cross_attention.site) for layer in self.layers]
        return tuple(site for pair in pairs for site in pair)

    @property
    def alignment_site(self) -> str:
        """The penultimate layer's cross-attention, which aligns best (Garg 2019); of one or two layers, the last."""
        depth = len(self.layers) - 1 if len(self.layers) <= 2 else len(self.layers) - 2
        return f"dec.{depth}.cross"

    @property
    def parallel(self) -> bool:
        return True

    def initial_state(self, encoder_output: EncoderOutput) -> State:
        """Return the state before the first token: the source's keys and values per layer, and empty caches."""
        keys, values, keep = encoder_output.keys, encoder_output.values, encoder_output.keep
        no_tokens, no_keep = keys.new_zeros(keys.shape[0], 0, self.width), keep[:, :0]
        memory: dict[str, Memory] = {}
        cache: dict[str, Memory] = {}
        for layer in self.layers:
            memory[layer.cross_site] = layer.cross_attention.prepare(keys, keep, values)
            cache[layer.self_site] = layer.self_attention.prepare(no_tokens, no_keep)
        return State(memory, cache)

    def decode(self, state: State, ids: Int[Tensor, "row query"], hooks: Hooks) -> DecoderOutput:
        allowed = causal(state.position + ids.shape[1], ids.device)[:, state.position :]
        return self._decode(state, ids, allowed, hooks)

    def decode_full_context(
        self, state: State, ids: Int[Tensor, "row query"], keep: Bool[Tensor, "row query"], hooks: Hooks
    ) -> DecoderOutput:
        """Feed a whole target whose self-attention is not causal: every step sees all tokens of `keep`."""
        return self._decode(state, ids, keep[:, None], hooks)

    def _decode(
        self, state: State, ids: Int[Tensor, "row query"], allowed: Bool[Tensor, "#row #query key"], hooks: Hooks
    ) -> DecoderOutput:
        rows, steps = ids.shape
        x = self.input_projection(self.embedding(ids)) * math.sqrt(self.width)
        x = self.dropout(self.positions(x, state.position))
        keep = torch.ones(rows, steps, dtype=torch.bool, device=ids.device)
        attentions: dict[str, AttentionOutput] = {}
        cache: dict[str, Memory] = {}
        intermediates: dict[str, Tensor] = {}  # of the last layer
        for layer in self.layers:
            self_site, cross_site = layer.self_site, layer.cross_site
            queries = layer.self_residual.normalize_input(x)
            cache[self_site] = state.cache[self_site].append(layer.self_attention.prepare(queries, keep))
            attentions[self_site], _ = layer.self_attention(queries, cache[self_site], allowed=allowed, hooks=hooks)
            x = layer.self_residual.add(x, not_none(attentions[self_site].context))
            queries = layer.cross_residual.normalize_input(x)
            context, attentions[cross_site], _ = attend_rows(layer.cross_attention, queries, state, cross_site, hooks)
            intermediates = {"residual": x, "context": context}
            x = layer.apply_feed_forward(layer.cross_residual.add(x, context))
        features = self.output_projection(self.final_norm(x))
        return DecoderOutput(features, state.advance(steps, cache=cache), attentions, intermediates, self.output)


def final_norm(config: EncoderConfig | DecoderConfig | LanguageModelConfig) -> nn.Module:
    """Return the layer norm that follows a pre-norm stack; the identity for post-norm."""
    return nn.LayerNorm(config.hidden, eps=config.norm_epsilon) if config.norm == "pre" else nn.Identity()


def linear_or_identity(input_size: int, output_size: int) -> nn.Module:
    """Return a linear layer without bias, or the identity if the sizes are equal."""
    return nn.Identity() if input_size == output_size else nn.Linear(input_size, output_size, bias=False)
