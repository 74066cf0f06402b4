"""Copying (See 2017): a word is made from the vocabulary, or taken from the source where a pointer rests.

`p(y) = (1 - g) softmax(W_o t)_y + g sum_i a_i [x_i = y]`. Here `t` is what any decoder gives its output
matrix; it asks (`a = softmax(t' W h_i)`, a look of its own at the source, so that it serves every decoder and
all steps at once) and opens the gate, `g = sigmoid(w t + b)`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.attention import Attention, Detail, General, Look, Watch
from heedful.layers.state import COPY, IDS, Copied, Read, State, look_rows


class Pointed(NamedTuple):
    """What copying adds to steps."""

    copied: Copied
    looks: dict[str, Look]


class Copying(nn.Module):
    """The pointer and its gate."""

    def __init__(self, said: int, key: int) -> None:
        super().__init__()
        self.attention = Attention(General(query=said, key=key), site=COPY)
        self.gate = nn.Linear(said, 1)

    def begin(self, state: State, read: Read, ids: Int[Tensor, "batch key"]) -> State:
        """The state with what can be pointed at."""
        memory = {**state.memory, COPY: self.attention.prepare(read.keys, read.keep)}
        return state.moved(0, memory=memory, fixed={**state.fixed, IDS: ids})

    def point(self, said: Float[Tensor, "row query width"], state: State, watch: Watch) -> Pointed:
        """Where each step would copy from, and how willing it is; `state` is the one before the steps."""
        shown = watch.detail_at(COPY)
        if shown is Detail.NONE:
            watch = Watch(Detail.WEIGHTS, frozenset({COPY}), watch.edit)
        _, look, _ = look_rows(self.attention, said, state, COPY, watch)
        assert look.weights is not None
        ids = state.fixed[IDS].repeat_interleave(len(said) // max(1, len(state.fixed[IDS])), dim=0)
        copied = Copied(look.weights[:, :, 0], self.gate(said).squeeze(-1), ids)
        return Pointed(copied, {} if shown is Detail.NONE else {COPY: look})


def copy_entropy(
    scores: Float[Tensor, "n vocab"],
    weights: Float[Tensor, "n key"],
    gate: Float[Tensor, "n"],
    ids: Int[Tensor, "n key"],
    gold: Int[Tensor, "n"],
    smoothing: float = 0.0,
) -> tuple[Float[Tensor, ""], Float[Tensor, "n"]]:
    """The summed cross-entropy of the mixture, and -log p of each gold word; only made words are smoothed."""
    logp = scores.log_softmax(dim=-1)
    made = logp.gather(-1, gold[:, None]).squeeze(-1) + F.logsigmoid(-gate)
    found = (weights * (ids == gold[:, None])).sum(dim=-1)
    taken = found.clamp_min(torch.finfo(found.dtype).tiny).log() + F.logsigmoid(gate)
    plain = -torch.logaddexp(made, taken)
    return ((1 - smoothing) * plain - smoothing * logp.mean(dim=-1)).sum(), plain.detach()
