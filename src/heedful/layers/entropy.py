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
from torch.nn import functional as F

from heedful.errors import ShapeError
from heedful.layers.readout import Output, TwoStepOutput
from heedful.native import agreed, entropy
from heedful.native.once import given_away

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
        rows = max(1, min(len(said), PIECE // len(weight)))
        room = said.new_empty(rows, len(weight))
        for first in range(0, len(said), rows):
            piece = slice(first, first + rows)
            scores = torch.addmm(bias, said[piece], weight.T, out=room[: len(said) - first])
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
        return *given_away(ctx, grads[0]), None, None


def linear_entropy(
    said: Float[Tensor, "n width"], output: Output, gold: Int[Tensor, "n"], smoothing: float = 0.0
) -> tuple[Float[Tensor, ""], Float[Tensor, "n"]]:
    """The summed cross-entropy (smoothed, if asked) of `output(said)`, and -log p of each gold word."""
    if torch.is_autocast_enabled(said.device.type) or said.dtype not in (torch.float32, torch.float64):
        logp = output(said).log_softmax(dim=-1)
        plain = -logp.gather(-1, gold[:, None]).squeeze(-1)
        return ((1 - smoothing) * plain - smoothing * logp.mean(dim=-1)).sum(), plain.detach()
    if isinstance(output, TwoStepOutput):
        return _two_step_entropy(said, output, gold, smoothing)
    return _entropy_of(said, output.weight, output.bias, gold, smoothing)


def _entropy_of(
    said: Tensor, weight: Tensor, bias: Tensor, gold: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    total, plain = _LinearEntropy.apply(  # type: ignore[no-untyped-call]
        said.contiguous(), weight.contiguous(), bias.contiguous(), gold.contiguous(), smoothing
    )
    return total, plain


def _two_step_entropy(
    said: Tensor, output: TwoStepOutput, gold: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """The second step is asked of those positions alone whose word is none of the common ones."""
    if smoothing:
        raise ShapeError("an output in two steps has no smoothing over all words")
    first, second = output.steps()
    rare = gold >= output.common
    total, plain = _entropy_of(said, *first, gold.clamp(max=output.common), 0.0)
    if not rare.any():
        return total, plain
    more, which = _entropy_of(said[rare], *second, gold[rare] - output.common, 0.0)
    return total + more, plain.index_put((rare,), which, accumulate=True)


class _AgreedEntropy(Function):
    """Both readings of a batch at once; see `agreed_entropy`."""

    @staticmethod
    def forward(
        ctx: Any,
        one: Tensor,
        two: Tensor,
        weight: Tensor,
        bias: Tensor,
        gold: Tensor,
        smoothing: float,
        price: float,
    ) -> tuple[Tensor, Tensor]:
        loss, plain = one.new_empty(2, len(one))
        into_one, into_two = torch.empty_like(one), torch.empty_like(two)
        into_weight, into_bias = torch.zeros_like(weight), torch.zeros_like(bias)
        rows = max(1, min(len(one), PIECE // (2 * len(weight))))
        rooms = one.new_empty(2, rows, len(weight))
        for first in range(0, len(one), rows):
            piece = slice(first, first + rows)
            first_scores, other_scores = (
                torch.addmm(bias, said[piece], weight.T, out=room[: len(said) - first])
                for said, room in zip((one, two), rooms, strict=True)
            )
            loss[piece], plain[piece] = agreed(first_scores, other_scores, gold[piece], smoothing, price)
            for slope, into, said in (  # scores are now the gradient
                (first_scores, into_one, one),
                (other_scores, into_two, two),
            ):
                torch.mm(slope, weight, out=into[piece])
                into_weight.addmm_(slope.T, said[piece])
                into_bias += slope.sum(dim=0)
        ctx.slopes = into_one, into_two, into_weight, into_bias
        ctx.mark_non_differentiable(plain)
        return loss.sum(), plain

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        return *given_away(ctx, grads[0]), None, None, None


def agreed_entropy(
    one: Float[Tensor, "n width"],
    two: Float[Tensor, "n width"],
    output: Output,
    gold: Int[Tensor, "n"],
    smoothing: float = 0.0,
    price: float = 1.0,
) -> tuple[Float[Tensor, ""], Float[Tensor, "n"]]:
    """R-Drop (Liang 2021), summed: the mean cross-entropy of two readings and what their difference costs.

    `(H(p) + H(q)) / 2 + price / 4 (KL(p||q) + KL(q||p))`: the paper's loss, for one reading of the two.
    Also the mean -log p of each gold word.
    """
    if torch.is_autocast_enabled(one.device.type) or one.dtype not in (torch.float32, torch.float64):
        return plainly_agreed(output(one), output(two), gold, smoothing, price)
    total, plain = _AgreedEntropy.apply(  # type: ignore[no-untyped-call]
        one.contiguous(), two.contiguous(), output.weight, output.bias, gold.contiguous(), smoothing, price
    )
    return total, plain


def plainly_agreed(
    one: Float[Tensor, "n label"],
    two: Float[Tensor, "n label"],
    gold: Int[Tensor, "n"],
    smoothing: float,
    price: float,
    weights: Float[Tensor, "label"] | None = None,
) -> tuple[Float[Tensor, ""], Float[Tensor, "n"]]:
    """The same of scores that are already there: few labels, or another precision."""
    p, q = one.log_softmax(dim=-1), two.log_softmax(dim=-1)
    total = sum(
        F.cross_entropy(x, gold, weights, reduction="sum", label_smoothing=smoothing) for x in (one, two)
    )
    apart = ((p.exp() - q.exp()) * (p - q)).sum()
    plain = -(p + q).gather(-1, gold[:, None]).squeeze(-1) / 2
    return total / 2 + price / 4 * apart, plain.detach()
