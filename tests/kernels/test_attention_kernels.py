"""Additive and dot-product attention: every C build against torch and autograd."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from heedful import kernels

pytestmark = pytest.mark.usefixtures("c_build")


def close(actual: Tensor, expected: Tensor, atol: float = 3e-6) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=atol)


@pytest.mark.parametrize(("batch", "beam", "count"), [(1, 1, 1), (3, 1, 7), (4, 5, 9)])
def test_additive_attention(batch: int, beam: int, count: int, use_torch: Callable[[], None]) -> None:
    query, keys = torch.randn(batch * beam, 33), 3 * torch.randn(batch, count, 33)
    values, v = torch.randn(batch, count, 21), torch.randn(33)
    keep = torch.arange(count) < torch.randint(1, count + 1, (batch, 1))
    keep[0] = count == 1  # one sentence without any readable key

    def run() -> list[Tensor]:
        weights, context = torch.empty(len(query), count), torch.empty(len(query), 21)
        kernels.additive_attention(query, keys, v, keep, values, weights, context)
        return [weights, context]

    from_c = run()
    use_torch()
    for actual, expected in zip(from_c, run(), strict=True):
        close(actual, expected)


@pytest.mark.parametrize("with_dweights", [False, True])
def test_additive_attention_backward(with_dweights: bool, use_torch: Callable[[], None]) -> None:
    batch, count, hidden, width = 4, 6, 19, 11
    query, keys = torch.randn(batch, hidden), torch.randn(batch, count, hidden)
    values, v, dcontext = torch.randn(batch, count, width), torch.randn(hidden), torch.randn(batch, width)
    keep = torch.arange(count) < torch.tensor([[6], [1], [3], [0]])
    weights, context = torch.empty(batch, count), torch.empty(batch, width)
    kernels.additive_attention(query, keys, v, keep, values, weights, context)
    dweights = torch.randn(batch, count) if with_dweights else None

    def run() -> list[Tensor]:
        dquery, dkeys, dvalues = (torch.ones_like(t) for t in (query, keys, values))
        dv = torch.ones(batch, hidden)
        inputs = (query, keys, v, keep, values, weights, dcontext)
        kernels.additive_attention_backward(*inputs, dquery, dkeys, dvalues, dv, dweights)
        return [dquery, dkeys, dvalues, dv]

    from_c = run()
    use_torch()
    for actual, expected in zip(from_c, run(), strict=True):
        close(actual, expected)
    leaves = [t.clone().requires_grad_() for t in (query, keys, values, v)]
    scores = torch.tanh(leaves[0][:, None] + leaves[1]) @ leaves[3]
    softmax = scores.masked_fill(~keep, -1e9).softmax(-1) * keep
    out = torch.einsum("bk,bkd->bd", softmax, leaves[2])
    through_weights = (softmax * dweights).sum() if dweights is not None else out.new_zeros(())
    gradients = torch.autograd.grad((out * dcontext).sum() + through_weights, leaves)
    close(from_c[0], gradients[0])
    close(from_c[1] - 1, gradients[1])  # accumulated onto ones
    close(from_c[2] - 1, gradients[2])
    close((from_c[3] - 1).sum(dim=0), gradients[3], 1e-5)


@pytest.mark.parametrize(("heads", "queries", "count"), [(1, 1, 1), (4, 3, 7), (2, 1, 9)])
def test_dot_attention(heads: int, queries: int, count: int, use_torch: Callable[[], None]) -> None:
    query, keys = torch.randn(3, queries, heads, 16), torch.randn(3, count, heads, 16)
    values = torch.randn(3, count, heads, 11)
    allowed = torch.rand(3, queries, count) < 0.7
    allowed[0] = False  # no readable key
    context, weights = kernels.dot_attention(query, keys, values, allowed, 0.3)
    use_torch()
    expected_context, expected_weights = kernels.dot_attention(query, keys, values, allowed, 0.3)
    close(context, expected_context)
    close(weights, expected_weights)
    assert not weights[0].any()
