"""Transformer encoder and decoder (Vaswani 2017): every attention a site that can be watched and edited."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.attention import Attention, Heads, Look, Memory, ScaledDot, Watch, causal
from heedful.config import DecoderConfig, EncoderConfig, ModelConfig, ReaderConfig
from heedful.config.model import encoder_width
from heedful.layers.dropout import Dropout
from heedful.layers.embedding import Positions
from heedful.layers.modules import Modules
from heedful.layers.readout import Output
from heedful.layers.state import Read, State, Stepped, look_rows
from heedful.record import Kind, Site

Wide = Float[Tensor, "row query width"]


def multi_head(heads: int, width: int, key: int, dropout: float, site: str, kind: Kind) -> Attention:
    parts = Heads(heads, width, query=width, key=key)
    return Attention(
        ScaledDot(parts.per_head, parts.per_head), heads=parts, dropout=dropout, site=site, kind=kind
    )


class FeedForward(nn.Sequential):
    """`W_2 relu(W_1 x)`, position by position."""

    def __init__(self, width: int, inner: int, dropout: float) -> None:
        super().__init__(nn.Linear(width, inner), nn.ReLU(), Dropout(dropout), nn.Linear(inner, width))


class Residual(nn.Module):
    """A part with its norm: `x + part(norm(x))` (pre) or `norm(x + part(x))` (post)."""

    def __init__(self, width: int, pre: bool, dropout: float, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, eps=epsilon)
        self.pre = pre
        self.dropout = Dropout(dropout)

    def before(self, x: Wide) -> Wide:
        normed: Tensor = self.norm(x) if self.pre else x
        return normed

    def after(self, x: Wide, part: Wide) -> Wide:
        summed = x + self.dropout(part)
        normed: Tensor = summed if self.pre else self.norm(summed)
        return normed


class Layer(nn.Module):
    """Self-attention and a feed-forward part."""

    def __init__(
        self, config: EncoderConfig | DecoderConfig | ReaderConfig, dropout: float, name: str
    ) -> None:
        super().__init__()
        width, pre, inner = config.hidden, config.norm == "pre", config.inner_dropout * dropout
        self.self_site = f"{name}.self"
        self.self_attention = multi_head(config.heads, width, width, inner, self.self_site, "self")
        self.around_self = Residual(width, pre, dropout, config.epsilon)
        self.feed_forward = FeedForward(width, config.feedforward, inner)
        self.around_feed = Residual(width, pre, dropout, config.epsilon)

    def read(
        self, x: Wide, keep: Bool[Tensor, "batch key"], watch: Watch, allow: Tensor | None = None
    ) -> tuple[Wide, Look]:
        """Positions read one another (those that `allow` lets each read), then the feed-forward part."""
        given = self.around_self.before(x)
        memory = self.self_attention.prepare(given, keep)
        part, look, _ = self.self_attention.look(given, memory, allow=allow, watch=watch)
        return self.feed(self.around_self.after(x, part)), look

    def feed(self, x: Wide) -> Wide:
        return self.around_feed.after(x, self.feed_forward(self.around_feed.before(x)))


class DecoderLayer(Layer):
    """A look at the source between the two."""

    def __init__(self, config: DecoderConfig, dropout: float, name: str, source: int) -> None:
        super().__init__(config, dropout, name)
        self.cross_site = f"{name}.cross"
        inner = config.inner_dropout * dropout
        self.cross_attention = multi_head(
            config.heads, config.hidden, source, inner, self.cross_site, "cross"
        )
        self.around_cross = Residual(config.hidden, config.norm == "pre", dropout, config.epsilon)


class TransformerEncoder(nn.Module):
    """Every position reads every other, layer by layer; pre-norm ends with a norm of its own."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        encoder = config.encoder
        self.width = encoder.hidden
        self.into = _entrance(config.embedding, encoder.hidden)
        self.positions = Positions(encoder.positions, encoder.hidden, encoder.max_positions)
        self.layers = Modules(
            Layer(encoder, config.dropout, f"enc.{depth}") for depth in range(encoder.layers)
        )
        self.last_norm = _last_norm(encoder)
        self.dropout = Dropout(config.dropout)

    @property
    def sites(self) -> tuple[Site, ...]:
        return tuple(layer.self_attention.site for layer in self.layers)

    def forward(
        self, inputs: Float[Tensor, "batch key input"], keep: Bool[Tensor, "batch key"], watch: Watch
    ) -> Read:
        x = self.dropout(self.positions(self.into(inputs) * math.sqrt(self.width)))
        looks: dict[str, Look] = {}
        for layer in self.layers:
            x, looks[layer.self_site] = layer.read(x, keep, watch)
        x = self.last_norm(x)
        return Read(x, x, keep, looks=looks)


class TransformerDecoder(nn.Module):
    """Writes any number of given words at once under a causal mask; keys and values are cached."""

    def __init__(self, config: ModelConfig, embedding: nn.Embedding, tied: bool) -> None:
        super().__init__()
        decoder = config.decoder
        self.width = decoder.hidden
        self.embedding = embedding
        self.into = _entrance(config.embedding, decoder.hidden)
        self.positions = Positions(decoder.positions, decoder.hidden, decoder.max_positions)
        source = encoder_width(config)
        self.layers = Modules(
            DecoderLayer(decoder, config.dropout, f"dec.{depth}", source) for depth in range(decoder.layers)
        )
        self.last_norm = _last_norm(decoder)
        self.dropout = Dropout(config.dropout)
        width = config.embedding if tied else decoder.hidden
        self.out = _entrance(decoder.hidden, config.embedding) if tied else nn.Identity()
        self.output = Output(width, embedding.num_embeddings, embedding if tied else None)

    @property
    def sites(self) -> tuple[Site, ...]:
        both = [(layer.self_attention.site, layer.cross_attention.site) for layer in self.layers]
        return tuple(site for pair in both for site in pair)

    @property
    def alignment(self) -> str:
        """The last layer but one aligns best in deep models (Garg 2019); of one or two, the last."""
        best = len(self.layers) - 1 if len(self.layers) <= 2 else len(self.layers) - 2
        return f"dec.{best}.cross"

    @property
    def shift(self) -> int:
        return 1

    @property
    def parallel(self) -> bool:
        return True

    def begin(self, read: Read) -> State:
        memory: dict[str, Memory] = {}
        cache: dict[str, Memory] = {}
        nothing = read.keys.new_zeros(len(read.keys), 0, self.width)
        for layer in self.layers:
            memory[layer.cross_site] = layer.cross_attention.prepare(read.keys, read.keep, read.values)
            none = torch.ones(len(nothing), 0, dtype=torch.bool, device=nothing.device)
            cache[layer.self_site] = layer.self_attention.prepare(nothing, none)
        return State(memory, cache)

    def write(self, state: State, ids: Int[Tensor, "row query"], watch: Watch) -> Stepped:
        rows, steps = ids.shape
        x = self.into(self.embedding(ids)) * math.sqrt(self.width)
        x = self.dropout(self.positions(x, state.at))
        keep = torch.ones(rows, steps, dtype=torch.bool, device=ids.device)
        allow = causal(state.at + steps, ids.device)[:, state.at :]
        looks: dict[str, Look] = {}
        cache: dict[str, Memory] = {}
        inner: dict[str, Tensor] = {}  # of the last layer
        for layer in self.layers:
            own, cross = layer.self_site, layer.cross_site
            given = layer.around_self.before(x)
            cache[own] = state.cache[own].append(layer.self_attention.prepare(given, keep))
            part, looks[own], _ = layer.self_attention.look(given, cache[own], allow=allow, watch=watch)
            x = layer.around_self.after(x, part)
            part, looks[cross], _ = look_rows(
                layer.cross_attention, layer.around_cross.before(x), state, cross, watch
            )
            inner = {"stream": x, "context": part}
            x = layer.feed(layer.around_cross.after(x, part))
        said = self.out(self.last_norm(x))
        return Stepped(said, state.moved(steps, cache=cache), looks, inner, self.output)


def _last_norm(config: EncoderConfig | DecoderConfig) -> nn.Module:
    """What ends a stack that is normalised before each part."""
    return nn.LayerNorm(config.hidden, eps=config.epsilon) if config.norm == "pre" else nn.Identity()


def _entrance(given: int, wanted: int) -> nn.Module:
    """A projection where widths differ."""
    return nn.Identity() if given == wanted else nn.Linear(given, wanted, bias=False)
