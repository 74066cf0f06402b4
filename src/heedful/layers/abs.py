"""ABS (Rush 2015): a feed-forward decoder whose last words ask smoothed source words. No recurrence."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.attention import Watch, build_attention
from heedful.config import ModelConfig
from heedful.config.model import encoder_width
from heedful.data.tokenizer import START
from heedful.layers.dropout import Dropout
from heedful.layers.embedding import last_words, word_vectors
from heedful.layers.readout import Output
from heedful.layers.state import Read, State, Stepped, look_rows, one_by_one
from heedful.record import Site

CROSS = "cross"


class EmbeddingEncoder(nn.Module):
    """The source's word vectors as they are (`F x_i`)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.width = config.embedding

    def forward(self, inputs: Float[Tensor, "batch key input"], keep: Bool[Tensor, "batch key"]) -> Read:
        return Read(inputs, inputs, keep)


def smoothed(
    x: Float[Tensor, "batch key width"], keep: Bool[Tensor, "batch key"], window: int
) -> Float[Tensor, "batch key width"]:
    """`xbar_i`: the mean of the real vectors within `window` on each side of i."""
    filters = torch.ones(1, 1, 2 * window + 1, dtype=x.dtype, device=x.device)
    real = keep.to(x.dtype)
    flat = (x * real[..., None]).transpose(1, 2).reshape(-1, 1, x.shape[1])
    summed = F.conv1d(flat, filters, padding=window).view(len(x), x.shape[2], x.shape[1]).transpose(1, 2)
    count = F.conv1d(real[:, None], filters, padding=window).transpose(1, 2)
    return summed / count.clamp_min(1)


class AbsDecoder(nn.Module):
    """`p(y_{t+1}) = softmax(V h + W enc)`, `h = tanh(U [last C embeddings])`, `enc = sum_i p_i xbar_i`.

    `p_i = softmax(F x_i . P G ctx)`: the general score between the source's vectors and other vectors G of
    the last words.
    """

    def __init__(self, config: ModelConfig, embedding: nn.Embedding, tied: bool) -> None:
        super().__init__()
        decoder = config.decoder
        self.embedding = embedding
        self.words = decoder.words
        self.window = decoder.window
        query = decoder.words * config.embedding
        key = encoder_width(config)
        self.asking = word_vectors(embedding.num_embeddings, config.embedding)
        self.attention = build_attention(config.attention, query=query, key=key, site=CROSS)
        context = query if config.attention.heads else key
        self.hidden = nn.Linear(query, decoder.hidden)
        self.dropout = Dropout(config.dropout)
        width = config.embedding if tied else decoder.hidden + context
        self.out = nn.Linear(decoder.hidden + context, width) if tied else nn.Identity()
        self.output = Output(width, embedding.num_embeddings, embedding if tied else None)

    @property
    def sites(self) -> tuple[Site, ...]:
        return (self.attention.site,)

    @property
    def alignment(self) -> str:
        return CROSS

    @property
    def shift(self) -> int:
        return 1

    @property
    def parallel(self) -> bool:
        return not self.attention.sequential

    def begin(self, read: Read) -> State:
        values = smoothed(read.values, read.keep, self.window)
        memory = self.attention.prepare(read.keys, read.keep, values)
        before = torch.full((len(read.keys), self.words), START, device=read.keys.device)
        return State({CROSS: memory}, cells=(before,), carry={CROSS: self.attention.start(memory)})

    def write(self, state: State, ids: Int[Tensor, "row query"], watch: Watch) -> Stepped:
        if not self.parallel and ids.shape[1] > 1:
            return one_by_one(self.write, state, ids, watch)
        recent = last_words(ids, state.cells[0])
        h = torch.tanh(self.hidden(self.dropout(self.embedding(recent)).flatten(start_dim=2)))
        query = self.dropout(self.asking(recent)).flatten(start_dim=2)
        context, look, carry = look_rows(self.attention, query, state, CROSS, watch)
        said = self.out(self.dropout(torch.cat([h, context], dim=-1)))
        after = state.moved(ids.shape[1], cells=(recent[:, -1],), carry={CROSS: carry})
        return Stepped(said, after, {CROSS: look}, {"context": context}, self.output)
