"""Attention over histories in plain PyTorch, for comparison with the C kernel."""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.kernels.history_attention import CONCAT, DOT, HistoryEntries, HistoryScore


def torch_logits(entries: HistoryEntries, score: HistoryScore, keys: Tensor, queries: Tensor, bias: Tensor) -> Tensor:
    """Return the logits of all targets, entry by entry in plain PyTorch."""
    logits = []
    for e in range(len(entries.item_offsets) - 1):
        own_keys = slice(int(entries.item_offsets[e]), int(entries.item_offsets[e + 1]))
        for row in range(int(entries.target_offsets[e]), int(entries.target_offsets[e + 1])):
            p, q = queries[row], keys[own_keys]
            if score.kind == DOT:
                f = score.scale * (q @ p)
            else:
                inputs = torch.cat([p.expand_as(q), q], dim=-1) if score.kind == CONCAT else p * q
                f = torch.relu(inputs @ score.w.T + score.b) @ score.h
            allowed = entries.items[own_keys] != entries.targets[row]
            f, q = f[allowed], q[allowed]
            product = torch.exp(f - score.beta * f.logsumexp(0)) @ (q @ p) if len(q) else torch.zeros(())
            logits.append(bias[row] + product)
    return torch.stack(logits)
