"""Cross-entropy with its gradient, and the most likely words: one pass over the logits each.

The functions run in C if the kernels are loaded and accept the tensors, else in torch; the tests compare both.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.errors import ShapeError
from heedful.kernels import loader
from heedful.kernels.guards import admits, check_indices


def cross_entropy(
    logits: Float[Tensor, "n vocab"], targets: Int[Tensor, "n"], smoothing: float
) -> tuple[Float[Tensor, "n"], Float[Tensor, "n"]]:
    """Return `F.cross_entropy(logits, targets, label_smoothing=smoothing)` per row, and the same without smoothing.

    In place, `logits` becomes the gradient of the sum of the (smoothed) losses.
    """
    library = loader.library()
    n, vocab = logits.shape
    if targets.is_cpu:
        check_indices(targets, (n,), vocab, "token")
    if library is not None and admits((n, vocab), logits):
        loss, nll = logits.new_empty(2, len(logits))
        library.heed_cross_entropy(
            logits.data_ptr(), targets.data_ptr(), n, vocab, smoothing, loss.data_ptr(), nll.data_ptr()
        )
        return loss, nll
    logp = logits.log_softmax(dim=-1)
    nll = -logp.gather(-1, targets[:, None]).squeeze(-1)
    loss = (1.0 - smoothing) * nll
    if smoothing != 0.0:
        loss -= smoothing * logp.mean(dim=-1)  # which may be infinite
    torch.exp(logp, out=logits).sub_(smoothing / logits.shape[-1])
    logits[torch.arange(len(targets)), targets] -= 1.0 - smoothing
    return loss, nll


def rdrop_cross_entropy(
    first: Float[Tensor, "n vocab"],
    second: Float[Tensor, "n vocab"],
    targets: Int[Tensor, "n"],
    smoothing: float,
    rdrop: float,
) -> tuple[Float[Tensor, "n"], Float[Tensor, "n"]]:
    """Return the R-Drop loss of two forward passes per row, and the mean negative log-likelihood of the targets.

    The loss is the mean of both `cross_entropy` plus `rdrop / 4 (KL(p|q) + KL(q|p))` (Liang 2021, eq. 4, halved).
    In place, both logits become the gradients of the sum of the losses.
    """
    library = loader.library()
    n, vocab = first.shape
    if targets.is_cpu:
        check_indices(targets, (n,), vocab, "token")
    if library is not None and admits((n, vocab), first, second):
        loss, nll = first.new_empty(2, len(first))
        library.heed_rdrop_cross_entropy(
            first.data_ptr(), second.data_ptr(), targets.data_ptr(), n, vocab, smoothing, rdrop, loss.data_ptr(),
            nll.data_ptr(),
        )  # fmt: skip
        return loss, nll
    p, q = first.log_softmax(dim=-1), second.log_softmax(dim=-1)
    log_ratio = p - q
    p.exp_()
    q.exp_()
    losses, nlls = zip(*(cross_entropy(logits, targets, smoothing) for logits in (first, second)), strict=True)
    kl_pq, negative_kl_qp = ((x * log_ratio).sum(dim=-1, keepdim=True) for x in (p, q))
    first.mul_(0.5).add_(p * (log_ratio - kl_pq) + p - q, alpha=rdrop / 4)
    second.mul_(0.5).add_(q * (negative_kl_qp - log_ratio) + q - p, alpha=rdrop / 4)
    loss = (losses[0] + losses[1]) / 2 + rdrop / 4 * (kl_pq - negative_kl_qp).squeeze(-1)
    return loss, (nlls[0] + nlls[1]) / 2


def top_k(logits: Float[Tensor, "row vocab"], k: int) -> tuple[Float[Tensor, "row k"], Int[Tensor, "row k"]]:
    """Return `logits.log_softmax(-1).topk(k)`: most likely first; of equal logits the lower index comes first."""
    library = loader.library()
    rows, vocab = logits.shape
    if not 1 <= k <= vocab:
        raise ShapeError(f"the {k} most likely of {vocab} words do not exist: k must be from 1 to {vocab}")
    logits = logits.contiguous()
    if library is not None and admits((rows, vocab), logits):
        words = torch.empty(rows, k, dtype=torch.long)
        logp = logits.new_empty(rows, k)
        library.heed_top_k(logits.data_ptr(), rows, vocab, k, words.data_ptr(), logp.data_ptr())
        return logp, words
    return logits.log_softmax(dim=-1).topk(k)
