"""The copy mechanism of the pointer-generator network (See 2017).

`p(y) = (1 - g) softmax(W_o f)_y + g sum_i a_i [x_i = y]` (eq. 9), where `f` are the features of any decoder. The
pointer has its own attention, `a = softmax(f' W h_i)`, and a gate `g = sigmoid(w f + b)`, so that it works
with every decoder and for all steps at once.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.attention import Attention, AttentionOutput, Detail, General, Hooks
from heedful.layers.state import COPY, SOURCE_IDS, EncoderOutput, PointerOutput, State, attend_rows
from heedful.optional import not_none


class CopyMechanism(nn.Module):
    """A pointer into the source, and the gate between generating and copying."""

    def __init__(self, feature_width: int, key_size: int) -> None:
        super().__init__()
        self.attention = Attention(General(query_size=feature_width, key_size=key_size), site=COPY)
        self.gate = nn.Linear(feature_width, 1)

    def extend_state(self, state: State, encoder_output: EncoderOutput, ids: Int[Tensor, "batch key"]) -> State:
        """Return the decoder's initial state with the source tokens and their memory."""
        memory = {**state.memory, COPY: self.attention.prepare(encoder_output.keys, encoder_output.keep)}
        return state.advance(0, memory=memory, per_sentence={**state.per_sentence, SOURCE_IDS: ids})

    def forward(
        self, features: Float[Tensor, "row query width"], state: State, hooks: Hooks
    ) -> tuple[PointerOutput, dict[str, AttentionOutput]]:
        """Return the copy distribution and gate for the features of each step; `state` is the state before the steps.

        The second result is the pointer's attention, if `hooks` record it.
        """
        record = hooks.detail_at(COPY) is not Detail.NONE
        if not record:  # the copy distribution needs the weights in any case
            hooks = Hooks(Detail.WEIGHTS, frozenset({COPY}), hooks.edit)
        _, attention, _ = attend_rows(self.attention, features, state, COPY, hooks)
        ids = state.per_sentence[SOURCE_IDS]
        ids = ids.repeat_interleave(len(features) // max(1, len(ids)), dim=0)
        output = PointerOutput(not_none(attention.weights)[:, :, 0], self.gate(features).squeeze(-1), ids)
        return output, {COPY: attention} if record else {}


def pointer_cross_entropy(
    logits: Float[Tensor, "n vocab"],
    pointer_weights: Float[Tensor, "n key"],
    gate: Float[Tensor, "n"],
    ids: Int[Tensor, "n key"],
    targets: Int[Tensor, "n"],
    smoothing: float = 0.0,
) -> tuple[Float[Tensor, ""], Float[Tensor, "n"]]:
    """Return the summed cross-entropy of the mixture, and -log p of each target.

    Label smoothing applies only to the generating distribution.
    """
    logp = logits.log_softmax(dim=-1)
    generated = logp.gather(-1, targets[:, None]).squeeze(-1) + F.logsigmoid(-gate)
    mass = (pointer_weights * (ids == targets[:, None])).sum(dim=-1)
    copied = mass.clamp_min(torch.finfo(mass.dtype).tiny).log() + F.logsigmoid(gate)
    nll = -torch.logaddexp(generated, copied)
    return ((1 - smoothing) * nll - smoothing * logp.mean(dim=-1)).sum(), nll.detach()
