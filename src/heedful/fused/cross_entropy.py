"""The output layer and the cross-entropy as one operation: logits exist for one chunk of positions at a time.

The logits of a whole batch would be its largest tensor by far. Here each chunk of logits is replaced in place by its
gradient, from which the gradients of the weight, the bias and the features are computed. Gradients are thus computed in
the forward pass, and `backward()` may run only once.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd import Function

from heedful.kernels import cross_entropy, is_full_precision, rdrop_cross_entropy
from heedful.kernels.precomputed_grad import take_precomputed

CHUNK = 2**22  # logits per chunk: 16 MB

Loss = tuple[Float[Tensor, ""], Float[Tensor, "n"]]
"""The loss summed over rows, with gradients; and the negative log-likelihood of each row, without."""


def supports(features: Tensor) -> bool:
    """Return whether the fused operations may run on these features."""
    return is_full_precision(features)


class _LinearCrossEntropy(Function):
    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        losses, nll = features.new_empty(2, len(features))
        needs_grad = any(ctx.needs_input_grad[:3])
        dfeatures = torch.empty_like(features) if needs_grad else features
        dweight, dbias = torch.zeros_like(weight), torch.zeros_like(bias)
        rows = max(1, min(len(features), CHUNK // len(weight)))
        buffer = features.new_empty(rows, len(weight))
        for start in range(0, len(features), rows):
            chunk = slice(start, start + rows)
            logits = torch.addmm(bias, features[chunk], weight.T, out=buffer[: len(features) - start])
            losses[chunk], nll[chunk] = cross_entropy(logits, targets[chunk], smoothing)
            if needs_grad:
                dlogits = logits  # the kernel has replaced the logits by their gradient
                torch.mm(dlogits, weight, out=dfeatures[chunk])
                dweight.addmm_(dlogits.T, features[chunk])
                dbias += dlogits.sum(dim=0)
        ctx.gradients = (dfeatures, dweight, dbias) if needs_grad else None
        ctx.mark_non_differentiable(nll)
        return losses.sum(), nll

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        return *take_precomputed(ctx, grads[0]), None, None


def linear_cross_entropy(
    features: Float[Tensor, "n width"],
    weight: Float[Tensor, "vocab width"],
    bias: Float[Tensor, "vocab"],
    targets: Int[Tensor, "n"],
    smoothing: float = 0.0,
) -> Loss:
    """Return the summed `F.cross_entropy(F.linear(features, weight, bias), targets, label_smoothing=smoothing)`.

    The second result is the negative log-likelihood of each target.
    """
    if not supports(features):
        logp = F.linear(features, weight, bias).log_softmax(dim=-1)
        nll = -logp.gather(-1, targets[:, None]).squeeze(-1)
        return ((1 - smoothing) * nll - smoothing * logp.mean(dim=-1)).sum(), nll.detach()
    total, nll = _LinearCrossEntropy.apply(  # type: ignore[no-untyped-call]
        features.contiguous(), weight.contiguous(), bias.contiguous(), targets.contiguous(), smoothing
    )
    return total, nll


class _LinearRDrop(Function):
    """Both forward passes of a batch at once; see `linear_rdrop_loss`."""

    @staticmethod
    def forward(
        ctx: Any,
        first: Tensor,
        second: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        smoothing: float,
        rdrop: float,
    ) -> tuple[Tensor, Tensor]:
        losses, nll = first.new_empty(2, len(first))
        dfirst, dsecond = torch.empty_like(first), torch.empty_like(second)
        dweight, dbias = torch.zeros_like(weight), torch.zeros_like(bias)
        rows = max(1, min(len(first), CHUNK // (2 * len(weight))))
        buffers = first.new_empty(2, rows, len(weight))
        for start in range(0, len(first), rows):
            chunk = slice(start, start + rows)
            logits = [
                torch.addmm(bias, features[chunk], weight.T, out=buffer[: len(features) - start])
                for features, buffer in zip((first, second), buffers, strict=True)
            ]
            losses[chunk], nll[chunk] = rdrop_cross_entropy(logits[0], logits[1], targets[chunk], smoothing, rdrop)
            # the kernel has replaced the logits by their gradients
            for dlogits, dfeatures, features in ((logits[0], dfirst, first), (logits[1], dsecond, second)):
                torch.mm(dlogits, weight, out=dfeatures[chunk])
                dweight.addmm_(dlogits.T, features[chunk])
                dbias += dlogits.sum(dim=0)
        ctx.gradients = dfirst, dsecond, dweight, dbias
        ctx.mark_non_differentiable(nll)
        return losses.sum(), nll

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        return *take_precomputed(ctx, grads[0]), None, None, None


def linear_rdrop_loss(
    first: Float[Tensor, "n width"],
    second: Float[Tensor, "n width"],
    weight: Float[Tensor, "vocab width"],
    bias: Float[Tensor, "vocab"],
    targets: Int[Tensor, "n"],
    smoothing: float = 0.0,
    rdrop: float = 1.0,
) -> Loss:
    """Return `rdrop_loss` of the logits that the output layer gives for the features of two forward passes."""
    if not supports(first):
        return rdrop_loss(F.linear(first, weight, bias), F.linear(second, weight, bias), targets, smoothing, rdrop)
    total, nll = _LinearRDrop.apply(  # type: ignore[no-untyped-call]
        first.contiguous(), second.contiguous(), weight, bias, targets.contiguous(), smoothing, rdrop
    )
    return total, nll


def rdrop_loss(
    first: Float[Tensor, "n label"],
    second: Float[Tensor, "n label"],
    targets: Int[Tensor, "n"],
    smoothing: float,
    rdrop: float,
    label_weights: Float[Tensor, "label"] | None = None,
) -> Loss:
    """Return the R-Drop loss of the logits of two forward passes, summed, and the mean negative log-likelihood.

    `(H(p) + H(q)) / 2 + rdrop / 4 (KL(p||q) + KL(q||p))`: half of Liang 2021, eq. 4, so that it is comparable to the
    loss of one forward pass.
    """
    p, q = first.log_softmax(dim=-1), second.log_softmax(dim=-1)
    total = sum(
        F.cross_entropy(logits, targets, label_weights, reduction="sum", label_smoothing=smoothing)
        for logits in (first, second)
    )
    divergence = ((p.exp() - q.exp()) * (p - q)).sum()
    nll = -(p + q).gather(-1, targets[:, None]).squeeze(-1) / 2
    return total / 2 + rdrop / 4 * divergence, nll.detach()
