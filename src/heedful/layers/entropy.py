"""The output matrix and the cross-entropy as one: scores exist for a piece of the positions at a time.

All scores of a batch would be its largest tensor by far, and be written and read many times over. Here each
piece becomes its own gradient in place, which goes into the gradients of the matrix and of what came before.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd import Function

from heedful.layers.readout import Output
from heedful.native import entropy

PIECE = 2**22  # scores at a time: 16 MB


class _LinearEntropy(Function):
    @staticmethod
    def forward(
        ctx: Any, said: Tensor, weight: Tensor, bias: Tensor, gold: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        loss, plain = said.new_empty(2, len(said))
        wanted = any(ctx.needs_input_grad[:3])
        into_said = torch.empty_like(said) if wanted else said
        into_weight, into_bias = torch.zeros_like(weight), torch.zeros_like(bias)
        rows = max(1, PIECE // len(weight))
        for first in range(0, len(said), rows):
            piece = slice(first, first + rows)
            scores = torch.addmm(bias, said[piece], weight.T)
            loss[piece], plain[piece] = entropy(scores, gold[piece], smoothing)
            if wanted:  # scores are now the gradient
                torch.mm(scores, weight, out=into_said[piece])
                into_weight.addmm_(scores.T, said[piece])
                into_bias += scores.sum(dim=0)
        ctx.slopes = (into_said, into_weight, into_bias) if wanted else None
        ctx.mark_non_differentiable(plain)
        return loss.sum(), plain

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        slopes, ctx.slopes = ctx.slopes, None  # large: given away, not copied
        if slopes is None:
            raise RuntimeError("the way back through this loss can be gone once")
        return *(slope.mul_(grads[0]) for slope in slopes), None, None


def linear_entropy(
    said: Float[Tensor, "n width"], output: Output, gold: Int[Tensor, "n"], smoothing: float = 0.0
) -> tuple[Float[Tensor, ""], Float[Tensor, "n"]]:
    """The summed cross-entropy (smoothed, if asked) of `output(said)`, and -log p of each gold word."""
    if torch.is_autocast_enabled(said.device.type) or said.dtype not in (torch.float32, torch.float64):
        logp = output(said).log_softmax(dim=-1)
        plain = -logp.gather(-1, gold[:, None]).squeeze(-1)
        return ((1 - smoothing) * plain - smoothing * logp.mean(dim=-1)).sum(), plain.detach()
    total, plain = _LinearEntropy.apply(  # type: ignore[no-untyped-call]
        said.contiguous(), output.weight, output.bias, gold.contiguous(), smoothing
    )
    return total, plain
