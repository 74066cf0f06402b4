"""The memory tape of the LSTMN (Cheng, Dong & Lapata 2016): the hidden states and cells of all earlier steps."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.attention.attention import Attention
from heedful.attention.hooks import NO_HOOKS, Hooks
from heedful.attention.scores.additive import Additive
from heedful.attention.types import AttentionOutput, Memory

POSITION_UNIT = 10  # slots per unit of the position feature


class Tape(nn.Module):
    """Attention over the tape: one slot per earlier step i, with its hidden state h_i and its cell m_i.

    The summaries `h~_t = sum a_ti h_i` and `m~_t = sum a_ti m_i` share their weights (eq. 5-7):
    `a_ti = softmax_i v' tanh(W_h h_i + W_x x_t + W_s h~_{t-1})`, additive attention with the query `[x_t; h~_{t-1}]`.

    - `recall=False` omits the `W_s` term, as the released encoder does.
    - `zero_slot` starts the tape with a slot of zeros that receives weight at every step, as in the released code;
      without it the summaries of an empty tape are zeros.
    - `recency` (not in the paper) adds positions to keys and queries; an untrained tape then puts nearly all weight
      on the last slot, like an LSTM.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        score_width: int | None = None,
        recall: bool = True,
        zero_slot: bool = False,
        recency: bool = False,
        site: str = "tape",
    ) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.recall = recall
        self.zero_slot = zero_slot
        self.recency = recency
        query_size = input_size + hidden_size if recall else input_size
        score_width = hidden_size if score_width is None else score_width
        score = Additive(query_size + recency, hidden_size + recency, score_width)
        if recency:
            _attend_to_last_slot(score)
        self.attention = Attention(score, site=site, kind="tape")

    @property
    def initial_slots(self) -> int:
        """Return the number of slots before the first step."""
        return 1 if self.zero_slot else 0

    def initial_memory(self, x: Float[Tensor, "batch input"]) -> Memory:
        """Return an empty tape (or one zero slot), on the device and in the dtype of `x`."""
        empty = x.new_zeros(len(x), self.initial_slots, 2 * self.hidden_size)
        keep = torch.ones(len(x), self.initial_slots, dtype=torch.bool, device=x.device)
        keys = empty[..., : self.hidden_size]
        if self.recency:  # the zero slot precedes all others
            keys = torch.cat([keys, x.new_full((len(x), self.initial_slots, 1), key_position(-1))], dim=-1)
        return self.attention.prepare(keys, keep, empty)

    def forward(
        self,
        x: Float[Tensor, "batch input"],
        tape: Memory,
        summary: Float[Tensor, "batch hidden"],
        hooks: Hooks = NO_HOOKS,
    ) -> tuple[Float[Tensor, "batch hidden"], Float[Tensor, "batch hidden"], AttentionOutput]:
        """Return `h~_t`, `m~_t` and the attention output; `summary` is `h~_{t-1}`."""
        step = tape.keep.shape[1] - self.initial_slots
        query = torch.cat([x, summary], dim=-1) if self.recall else x
        if self.recency:
            query = torch.cat([query, x.new_full((len(x), 1), query_position(step))], dim=-1)
        positions = torch.full((len(x), 1), step, device=x.device)
        output, _ = self.attention(query[:, None], tape, positions=positions, hooks=hooks)
        assert output.context is not None
        hidden, cell = output.context[:, 0].chunk(2, dim=-1)
        return hidden, cell, output

    def write(
        self,
        tape: Memory,
        hidden: Float[Tensor, "batch hidden"],
        cell: Float[Tensor, "batch hidden"],
        keep: Bool[Tensor, "batch"] | None = None,
    ) -> Memory:
        """Return the tape with one more slot; `keep` False (a padded step) adds a slot that is never attended to."""
        if keep is None:
            keep = torch.ones(len(hidden), dtype=torch.bool, device=hidden.device)
        values, keys = torch.cat([hidden, cell], dim=-1), hidden
        if self.recency:
            position = key_position(tape.keep.shape[1] - self.initial_slots)
            keys = torch.cat([hidden, hidden.new_full((len(hidden), 1), position)], dim=-1)
        return tape.append(self.attention.prepare(keys[:, None], keep[:, None], values[:, None]))


def key_position(slot: int | float) -> float:
    """Return the position feature of a slot's key."""
    return slot / POSITION_UNIT


def query_position(step: int) -> float:
    """Return the position feature of a query: between the last slot and the one before it."""
    return key_position(step - 1.5)


@torch.no_grad()
def _attend_to_last_slot(score: Additive) -> None:
    """Initialize a score so that its first unit, and no other, depends on the positions.

    `3 tanh(4 (slot - query))` separates the last slot from those before it.
    """
    slope = 4.0 * POSITION_UNIT
    for weight, position_weight in ((score.key.weight, slope), (score.query.weight, -slope)):
        weight[:, -1] = 0.0
        weight[0] = 0.0
        weight[0, -1] = position_weight
    score.v[0] = 3.0
