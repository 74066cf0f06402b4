"""A GRU over packed sentences: no padding, each weight's gradient as one product over all steps.

The packing is torch's: sentences sorted by length, step by step the words of those that are not over yet. So
the rows of a step are the first rows of the step before, and nothing needs to be copied between steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import Function

from heedful.native import gru, gru_back

Product = Callable[[Tensor], Tensor]


class _Span:
    """Where each step's rows lie, and which step comes before it in the direction of reading."""

    def __init__(self, sizes: Sequence[int], reverse: bool) -> None:
        self.sizes = sizes
        self.starts = [0, *accumulate(sizes)]
        steps = range(len(sizes))
        self.order = list(reversed(steps)) if reverse else list(steps)
        self.reverse = reverse

    def rows(self, t: int) -> slice:
        return slice(self.starts[t], self.starts[t + 1])

    def both(self, t: int) -> tuple[slice, int] | None:
        """The rows, read just before, whose sentences t goes on with, and how many; None at the start."""
        other = t + 1 if self.reverse else t - 1
        if not 0 <= other < len(self.sizes):
            return None
        count = min(self.sizes[t], self.sizes[other])
        return slice(self.starts[other], self.starts[other] + count), count


def run(
    gi: Tensor,
    sizes: Sequence[int],
    product: Product,
    reverse: bool,
    before: Tensor,
    new: Tensor,
    kept: Tensor,
) -> Tensor:
    """All states; `before`, `new` and `kept` are filled for the way back. `product` is `h W_h' + b`.

    `new` is the last third of each product, the only one that is needed again.
    """
    span = _Span(sizes, reverse)
    out = torch.empty_like(before)
    for t in span.order:
        rows, given = span.rows(t), span.both(t)
        h = before[rows]
        if given is None:
            h.zero_()
        else:
            h[: given[1]] = out[given[0]]
            h[given[1] :] = 0.0
        gh = product(h)
        new[rows] = gh[:, 2 * h.shape[1] :]
        gru(gi[rows], gh, h, out[rows], kept[rows])
    return out


class _Packed(Function):
    @staticmethod
    def forward(
        ctx: Any, gi: Tensor, hidden: Tensor, bias: Tensor, sizes: Sequence[int], reverse: bool
    ) -> Tensor:
        gi = gi.contiguous()
        before, new = gi.new_empty(2, len(gi), hidden.shape[1])
        kept = torch.empty_like(gi)
        out = run(gi, sizes, lambda h: torch.addmm(bias, h, hidden.T), reverse, before, new, kept)
        ctx.hidden, ctx.kept = hidden, (before, new, kept)
        ctx.span = _Span(sizes, reverse)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        (before, new, kept), hidden = ctx.kept, ctx.hidden
        ctx.kept = None
        span: _Span = ctx.span
        into = grads[0].clone(memory_format=torch.contiguous_format)
        dgi, dgh = torch.empty_like(kept), kept  # step by step, gradients take the gates' place
        for t in reversed(span.order):
            rows, given = span.rows(t), span.both(t)
            dh = torch.empty_like(into[rows])
            gru_back(kept[rows], new[rows], before[rows], into[rows], dgi[rows], dgh[rows], dh)
            if given is not None:
                into[given[0]] += dh[: given[1]].addmm_(dgh[rows][: given[1]], hidden)
        return dgi, dgh.T @ before, dgh.sum(dim=0), None, None


def gru_packed(
    gi: Float[Tensor, "word gates"],
    hidden: Float[Tensor, "gates hidden"],
    bias: Float[Tensor, "gates"],
    sizes: Sequence[int],
    reverse: bool = False,
) -> Float[Tensor, "word hidden"]:
    """The states at every word; `gi` is what the words bring to the gates."""
    states: Tensor = _Packed.apply(gi, hidden, bias, sizes, reverse)  # type: ignore[no-untyped-call]
    return states


def last_states(
    states: Float[Tensor, "word hidden"], sizes: Sequence[int], reverse: bool
) -> Float[Tensor, "batch hidden"]:
    """The state in which each sentence's reading ended, in the packed order."""
    if reverse:
        return states[: sizes[0]]
    row = torch.arange(sizes[0])
    lengths = (torch.tensor(sizes)[:, None] > row).sum(dim=0)
    starts = torch.tensor([0, *accumulate(sizes)])
    return states[(starts[lengths - 1] + row).to(states.device)]
