"""A GRU over packed sentences: no padding, and each weight's gradient as one matrix product over all steps.

Sentences are packed as in a `PackedSequence` sorted by length: for each step, the words of the sentences that have not
ended. The rows of a step continue the first rows of the step before, so nothing needs to be reordered between steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import Function

from heedful import kernels
from heedful.fused.buffers import take_buffers
from heedful.kernels import gru_cell, gru_cell_backward


def supports(x: Tensor) -> bool:
    """Return whether `packed_gru` may replace torch's GRU on this input."""
    return kernels.supports(x)


class _PackedSteps:
    """The rows of each step, and the order in which a direction runs through the steps."""

    def __init__(self, sizes: Sequence[int], reverse: bool) -> None:
        self.sizes = sizes
        self.starts = [0, *accumulate(sizes)]
        steps = range(len(sizes))
        self.order = list(reversed(steps)) if reverse else list(steps)
        self.reverse = reverse

    def rows(self, t: int) -> slice:
        return slice(self.starts[t], self.starts[t + 1])

    def previous(self, t: int) -> tuple[slice, int] | None:
        """Return the rows of the step before that continue at step t, and their number; None at the start."""
        other = t + 1 if self.reverse else t - 1
        if not 0 <= other < len(self.sizes):
            return None
        count = min(self.sizes[t], self.sizes[other])
        return slice(self.starts[other], self.starts[other] + count), count


def run_packed_gru(
    input_gates: Float[Tensor, "word gates"],
    sizes: Sequence[int],
    hidden_gates: Callable[[Tensor], Tensor],
    reverse: bool,
    previous: Float[Tensor, "word hidden"],
    candidates: Float[Tensor, "word hidden"],
    gates: Float[Tensor, "word gates"],
) -> Float[Tensor, "word hidden"]:
    """Return the hidden state at every word; `hidden_gates(h)` is `W_h h + b_h`.

    `previous` (the states before each step), `candidates` (the last third of the hidden gates) and `gates` (activated)
    are filled for the backward pass.
    """
    steps = _PackedSteps(sizes, reverse)
    outputs = torch.empty_like(previous)
    for t in steps.order:
        rows, continued = steps.rows(t), steps.previous(t)
        h = previous[rows]
        if continued is None:
            h.zero_()
        else:
            previous_rows, count = continued
            h[:count] = outputs[previous_rows]
            h[count:] = 0.0
        gh = hidden_gates(h)
        candidates[rows] = gh[:, 2 * h.shape[1] :]
        gru_cell(input_gates[rows], gh, h, outputs[rows], gates[rows])
    return outputs


class _PackedGRU(Function):
    @staticmethod
    def forward(
        ctx: Any, input_gates: Tensor, weight: Tensor, bias: Tensor, sizes: Sequence[int], reverse: bool
    ) -> Tensor:
        input_gates = input_gates.contiguous()
        previous, candidates = input_gates.new_empty(2, len(input_gates), weight.shape[1])
        gates = torch.empty_like(input_gates)
        outputs = run_packed_gru(
            input_gates, sizes, lambda h: torch.addmm(bias, h, weight.T), reverse, previous, candidates, gates
        )
        ctx.weight, ctx.buffers = weight, (previous, candidates, gates)
        ctx.steps = _PackedSteps(sizes, reverse)
        return outputs

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        (previous, candidates, gates), weight = take_buffers(ctx), ctx.weight
        steps: _PackedSteps = ctx.steps
        douts = grads[0].clone(memory_format=torch.contiguous_format)
        dinput_gates, dhidden_gates = torch.empty_like(gates), gates  # step by step, gradients replace the gates
        for t in reversed(steps.order):
            rows, continued = steps.rows(t), steps.previous(t)
            dh = torch.empty_like(douts[rows])
            gru_cell_backward(
                gates[rows], candidates[rows], previous[rows], douts[rows],
                dinput_gates[rows], dhidden_gates[rows], dh,
            )  # fmt: skip
            if continued is not None:
                previous_rows, count = continued
                douts[previous_rows] += dh[:count].addmm_(dhidden_gates[rows][:count], weight)
        return dinput_gates, dhidden_gates.T @ previous, dhidden_gates.sum(dim=0), None, None


def packed_gru(
    input_gates: Float[Tensor, "word gates"],
    weight: Float[Tensor, "gates hidden"],
    bias: Float[Tensor, "gates"],
    sizes: Sequence[int],
    reverse: bool = False,
) -> Float[Tensor, "word hidden"]:
    """Return the hidden state at every word of packed sentences.

    `input_gates` is `W_i x + b_i`, `weight` and `bias` are `W_h` and `b_h`, `sizes` the number of rows of each step.
    """
    outputs: Tensor = _PackedGRU.apply(input_gates, weight, bias, sizes, reverse)  # type: ignore[no-untyped-call]
    return outputs


def final_states(
    states: Float[Tensor, "word hidden"], sizes: Sequence[int], reverse: bool
) -> Float[Tensor, "batch hidden"]:
    """Return the last state of each sentence, in the packed order."""
    if reverse:
        return states[: sizes[0]]
    row = torch.arange(sizes[0])
    lengths = (torch.tensor(sizes)[:, None] > row).sum(dim=0)
    starts = torch.tensor([0, *accumulate(sizes)])
    return states[(starts[lengths - 1] + row).to(states.device)]
