"""The tape of the LSTMN (Cheng, Dong & Lapata 2016): a memory of every earlier hidden state and cell."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.attention.attention import Attention
from heedful.attention.scores import Additive
from heedful.attention.types import PLAIN, Look, Memory, Watch


class Tape(nn.Module):
    """Reads `h~_t = sum a_ti h_i` and `m~_t = sum a_ti m_i` with one set of weights over i < t (eq. 5-7).

    `a_ti = softmax_i v' tanh(W_h h_i + W_x x_t + W_s h~_{t-1})`: additive attention whose query is
    `[x_t; h~_{t-1}]`. `recall=False` leaves the `W_s` term out, as the released encoder does. `zero_slot`
    opens the tape with an empty slot that takes mass at every step, as the released code does; without
    it an empty tape reads zeros. `recency` (ours): slots know their place and questions theirs, and before
    anything is learnt nearly all weight is on the last slot, as if this were an LSTM.
    """

    def __init__(
        self,
        input: int,
        hidden: int,
        *,
        width: int | None = None,
        recall: bool = True,
        zero_slot: bool = False,
        recency: bool = False,
        site: str = "tape",
    ) -> None:
        super().__init__()
        self.hidden = hidden
        self.recall = recall
        self.zero_slot = zero_slot
        self.recency = recency
        query = input + hidden if recall else input
        score = Additive(query + recency, hidden + recency, hidden if width is None else width)
        if recency:
            _look_back(score)
        self.attention = Attention(score, site=site, kind="tape")

    @property
    def slots(self) -> int:
        """Of a tape on which nothing is written yet."""
        return 1 if self.zero_slot else 0

    def start(self, x: Float[Tensor, "batch input"]) -> Memory:
        """A tape with nothing on it (or one zero slot), on the device and in the dtype of `x`."""
        empty = x.new_zeros(len(x), self.slots, 2 * self.hidden)
        keep = torch.ones(len(x), self.slots, dtype=torch.bool, device=x.device)
        keys = empty[..., : self.hidden]
        if self.recency:  # it stands before all others
            keys = torch.cat([keys, x.new_full((len(x), self.slots, 1), stands_at(-1))], dim=-1)
        return self.attention.prepare(keys, keep, empty)

    def read(
        self,
        x: Float[Tensor, "batch input"],
        tape: Memory,
        summary: Float[Tensor, "batch hidden"],
        watch: Watch = PLAIN,
    ) -> tuple[Float[Tensor, "batch hidden"], Float[Tensor, "batch hidden"], Look]:
        """`h~_t` and `m~_t`, given the input and the previous `h~`; the weights run over the slots."""
        count = tape.keep.shape[1] - self.slots
        query = torch.cat([x, summary], dim=-1) if self.recall else x
        if self.recency:
            query = torch.cat([query, x.new_full((len(x), 1), asked_from(count))], dim=-1)
        at = torch.full((len(x), 1), count, device=x.device)
        context, look, _ = self.attention.look(query[:, None], tape, at=at, watch=watch)
        hidden, cell = context[:, 0].chunk(2, dim=-1)
        return hidden, cell, look

    def write(
        self,
        tape: Memory,
        hidden: Float[Tensor, "batch hidden"],
        cell: Float[Tensor, "batch hidden"],
        keep: Bool[Tensor, "batch"] | None = None,
    ) -> Memory:
        """The tape with one more slot; `keep` False (a padded step) writes a slot nobody may read."""
        if keep is None:
            keep = torch.ones(len(hidden), dtype=torch.bool, device=hidden.device)
        values, keys = torch.cat([hidden, cell], dim=-1), hidden
        if self.recency:
            place = stands_at(tape.keep.shape[1] - self.slots)
            keys = torch.cat([hidden, hidden.new_full((len(hidden), 1), place)], dim=-1)
        return tape.append(self.attention.prepare(keys[:, None], keep[:, None], values[:, None]))


def stands_at(slot: int | float) -> float:
    """What a slot is told of its place."""
    return slot / 10


def asked_from(step: int) -> float:
    """What a question is told: between the last slot and the one before it."""
    return stands_at(step - 1.5)


@torch.no_grad()
def _look_back(score: Additive) -> None:
    """One unit tells the last slot from all before it: `3 tanh(4 (slot - asked from))`; none else does."""
    for weight, steep in ((score.key.weight, 40.0), (score.query.weight, -40.0)):
        weight[:, -1] = 0.0
        weight[0] = 0.0
        weight[0, -1] = steep
    score.v[0] = 3.0
