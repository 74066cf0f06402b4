"""Masks: True means that a position may be attended to (torch's `key_padding_mask` means the opposite)."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.errors import ShapeError


def lengths_to_keep(lengths: Int[Tensor, "batch"], count: int | None = None) -> Bool[Tensor, "batch key"]:
    """Return the mask of right-padded sentences.

    >>> lengths_to_keep(torch.tensor([2, 0]), 3)
    tensor([[ True,  True, False],
            [False, False, False]])
    """
    total = int(lengths.max()) if count is None else count
    return torch.arange(total, device=lengths.device) < lengths[:, None]


def without_last(keep: Bool[Tensor, "batch key"]) -> Bool[Tensor, "batch key"]:
    """Return `keep` without the last True of each sentence: the source's end token.

    >>> without_last(torch.tensor([[True, True, False], [True, False, False]]))
    tensor([[ True, False, False],
            [False, False, False]])
    """
    remaining = keep.flip(-1).cumsum(-1).flip(-1)  # number of True values from this position on
    return keep & (remaining > 1)


def extent(keep: Bool[Tensor, "batch key"]) -> Int[Tensor, "batch"]:
    """Return the length T of each source: the index of its last True plus 1, or 0 if there is none."""
    if keep.shape[-1] == 0:
        return torch.zeros(keep.shape[0], dtype=torch.long, device=keep.device)
    positions = torch.arange(1, keep.shape[-1] + 1, device=keep.device)
    return (keep * positions).amax(dim=-1)


def causal(count: int, device: torch.device | None = None) -> Bool[Tensor, "1 query key"]:
    """Return the mask that lets each position attend to itself and to those before it.

    >>> causal(3)[0].int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    return torch.ones(1, count, count, dtype=torch.bool, device=device).tril()


def allowed_keys(
    keep: Bool[Tensor, "batch key"], queries: int, allowed: Tensor | None
) -> Bool[Tensor, "batch query 1 key"]:
    """Return which keys each query may attend to: `keep`, and a further mask such as a causal one."""
    batch, count = keep.shape
    if allowed is None:
        return keep[:, None, None, :].expand(-1, queries, -1, -1)
    check_bool("allowed", allowed)
    broadcasts = allowed.ndim == 3 and allowed.shape[0] in (1, batch) and allowed.shape[1] in (1, queries)
    if not broadcasts or allowed.shape[2] != count:
        raise ShapeError(
            f"allowed has shape {tuple(allowed.shape)}, but {batch} sentences with {queries} queries and"
            f" {count} keys need ({batch} or 1, {queries} or 1, {count})"
        )
    return (keep[:, None, None, :] & allowed[:, :, None, :]).expand(batch, queries, 1, count)


def check_bool(name: str, mask: Tensor) -> None:
    """Raise unless the dtype of a mask is torch.bool."""
    if mask.dtype != torch.bool:
        raise ShapeError(f"{name} is a mask of {mask.dtype}, but must be of torch.bool: True means readable")
