"""The encoder-decoder with attention, in update-look-generate order.

`s_t = GRU(emb(y_{t-1}), s_{t-1})`, `c_t = look(s_t)`, `p(y_t) = softmax(W_o [s_t; c_t] + b)`. Nothing of a
look is fed back, so in training all steps are computed at once; `step` does the same one by one.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.attention import PLAIN, Carry, Look, Watch, build_attention
from heedful.config import ModelConfig
from heedful.data.batch import TextBatch
from heedful.data.tokenizer import PAD
from heedful.layers.rnn import RNNDecoder, RNNEncoder
from heedful.models.writer import State, Stepped
from heedful.record import Site

CROSS = "cross"


class Seq2Seq(nn.Module):
    """Reads a sentence, then writes one, looking back at what it read."""

    def __init__(self, config: ModelConfig, source_size: int, target_size: int) -> None:
        super().__init__()
        self.source_embedding = nn.Embedding(source_size, config.embedding, padding_idx=PAD)
        self.target_embedding = nn.Embedding(target_size, config.embedding, padding_idx=PAD)
        self.encoder = RNNEncoder(config.encoder, config.embedding)
        self.decoder = RNNDecoder(config.decoder, config.embedding, start=config.encoder.hidden)
        self.attention = build_attention(
            config.attention, query=config.decoder.hidden, key=self.encoder.width, site=CROSS
        )
        context = config.decoder.hidden if config.attention.heads else self.encoder.width
        self.read_out = nn.Linear(config.decoder.hidden + context, target_size)
        self.dropout = nn.Dropout(config.dropout)

    @property
    def sites(self) -> tuple[Site, ...]:
        return (self.attention.site,)

    @property
    def alignment(self) -> str:
        return CROSS

    def encode(self, batch: TextBatch, watch: Watch = PLAIN) -> State:
        """Read the source; nothing is looked at yet."""
        source = batch.source
        read = self.encoder(self.dropout(self.source_embedding(source.ids)), source.keep)
        memory = self.attention.prepare(read.states, source.keep)
        at = torch.zeros(batch.size, dtype=torch.long, device=source.ids.device)
        cells = (self.decoder.first(read.last[-1]),)
        return State({CROSS: memory}, cells, {CROSS: self.attention.start(memory)}, at)

    def step(self, state: State, last: Int[Tensor, "row"], watch: Watch = PLAIN) -> Stepped:
        """One word further."""
        return self._write(state, last[:, None], watch)

    def score(self, batch: TextBatch, watch: Watch = PLAIN) -> Stepped:
        """The logits of every step when the words before it are given (teacher forcing)."""
        if batch.target is None:
            raise ValueError("a batch without targets cannot be scored")
        return self._write(self.encode(batch, watch), batch.target.ids[:, :-1], watch)

    def _write(self, state: State, words: Int[Tensor, "row query"], watch: Watch) -> Stepped:
        inputs = self.dropout(self.target_embedding(words))
        tops, cell = self.decoder(inputs, state.cells[0])
        at = state.at[:, None] + torch.arange(words.shape[1], device=words.device)
        context, look, carry = self._look(tops, state, at, watch)
        logits = self.read_out(self.dropout(torch.cat([tops, context], dim=-1)))
        after = State(state.memory, (cell,), {CROSS: carry}, state.at + words.shape[1])
        return Stepped(logits, after, {CROSS: look})

    def _look(
        self, tops: Float[Tensor, "row query width"], state: State, at: Int[Tensor, "row query"], watch: Watch
    ) -> tuple[Tensor, Look, Carry]:
        """All steps at once, or one after another where each look depends on those before it."""
        memory, carry = state.memory[CROSS], state.carry[CROSS]
        if not self.attention.sequential:
            return self.attention.look(tops, memory, at=at, carry=carry, watch=watch)
        contexts, looks = [], []
        for t in range(tops.shape[1]):
            context, look, carry = self.attention.look(
                tops[:, t : t + 1], memory, at=at[:, t : t + 1], carry=carry, watch=watch
            )
            contexts.append(context)
            looks.append(look)
        return torch.cat(contexts, dim=1), _side_by_side(looks), carry


def _side_by_side(looks: list[Look]) -> Look:
    """The looks of single steps as one look with all of them on the query axis."""

    def join(parts: list[Tensor | None]) -> Tensor | None:
        given = [part for part in parts if part is not None]
        return torch.cat(given, dim=1) if given else None

    extra = {name: torch.cat([look.extra[name] for look in looks], dim=1) for name in looks[0].extra}
    return Look(join([look.weights for look in looks]), join([look.scores for look in looks]), extra)
