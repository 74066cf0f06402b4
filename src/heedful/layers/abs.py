"""ABS (Rush 2015): a feed-forward decoder whose query is the last C words and whose values are a smoothed source."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.attention import Hooks, build_attention
from heedful.config import ModelConfig
from heedful.data.tokenizer import START
from heedful.layers.decoder import Decoder
from heedful.layers.dropout import Dropout
from heedful.layers.embedding import token_embedding, token_windows
from heedful.layers.readout import Output
from heedful.layers.state import DecoderOutput, EncoderOutput, State, attend_rows
from heedful.trace.schema import Site

CROSS = "cross"


class EmbeddingEncoder(nn.Module):
    """Return the word vectors of the source unchanged (`F x_i` in Rush 2015, eq. 7)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.width = config.embedding

    def forward(self, inputs: Float[Tensor, "batch key input"], keep: Bool[Tensor, "batch key"]) -> EncoderOutput:
        return EncoderOutput(inputs, inputs, keep)


def moving_average(
    x: Float[Tensor, "batch key width"], keep: Bool[Tensor, "batch key"], window: int
) -> Float[Tensor, "batch key width"]:
    """Return `xbar_i`, the mean of the vectors within `window` positions on each side of i (Rush 2015, §3.2).

    Positions outside `keep` are not counted.
    """
    ones = torch.ones(1, 1, 2 * window + 1, dtype=x.dtype, device=x.device)
    mask = keep.to(x.dtype)
    channels = (x * mask[..., None]).transpose(1, 2).reshape(-1, 1, x.shape[1])  # (batch * width, 1, key)
    sums = F.conv1d(channels, ones, padding=window).view(len(x), x.shape[2], x.shape[1]).transpose(1, 2)
    counts = F.conv1d(mask[:, None], ones, padding=window).transpose(1, 2)
    return sums / counts.clamp_min(1)


class AbsDecoder(Decoder):
    """`p(y_{t+1}) = softmax(V h + W enc)`, `h = tanh(U [last C embeddings])`, `enc = sum_i p_i xbar_i` (eq. 4-8).

    `p_i = softmax(F x_i . P G y_c)`: the general score between the source's word vectors and a second embedding G of
    the last C words.
    """

    def __init__(self, config: ModelConfig, embedding: nn.Embedding, tied: bool) -> None:
        super().__init__()
        decoder = config.decoder
        self.embedding = embedding
        self.context_words = decoder.context_words
        self.smoothing_window = decoder.smoothing_window
        query = decoder.context_words * config.embedding
        key = config.encoder_width
        self.context_embedding = token_embedding(embedding.num_embeddings, config.embedding)
        self.attention = build_attention(config.attention, query_size=query, key_size=key, site=CROSS)
        context = query if config.attention.heads else key
        self.hidden = nn.Linear(query, decoder.hidden)
        self.dropout = Dropout(config.dropout)
        width = config.embedding if tied else decoder.hidden + context
        self.output_projection = nn.Linear(decoder.hidden + context, width) if tied else nn.Identity()
        self.output = Output(width, embedding.num_embeddings, embedding if tied else None)

    @property
    def feature_width(self) -> int:
        return self.output.width

    @property
    def sites(self) -> tuple[Site, ...]:
        return (self.attention.site,)

    @property
    def alignment_site(self) -> str:
        return CROSS

    @property
    def parallel(self) -> bool:
        return not self.attention.sequential

    def initial_state(self, encoder_output: EncoderOutput) -> State:
        keys, keep = encoder_output.keys, encoder_output.keep
        memory = self.attention.prepare(keys, keep, moving_average(encoder_output.values, keep, self.smoothing_window))
        last_words = torch.full((len(keys), self.context_words), START, device=keys.device)
        return State({CROSS: memory}, hidden=(last_words,), carry={CROSS: self.attention.initial_carry(memory)})

    def decode(self, state: State, ids: Int[Tensor, "row query"], hooks: Hooks) -> DecoderOutput:
        windows = token_windows(ids, state.hidden[0])  # (row, query, context_words)
        h = torch.tanh(self.hidden(self.dropout(self.embedding(windows)).flatten(start_dim=2)))
        query = self.dropout(self.context_embedding(windows)).flatten(start_dim=2)
        context, attention, carry = attend_rows(self.attention, query, state, CROSS, hooks)
        features = self.output_projection(self.dropout(torch.cat([h, context], dim=-1)))
        after = state.advance(ids.shape[1], hidden=(windows[:, -1],), carry={CROSS: carry})
        return DecoderOutput(features, after, {CROSS: attention}, {"context": context}, self.output)
