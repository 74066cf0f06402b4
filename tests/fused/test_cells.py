"""Fused cells and attention against torch's own, over several steps."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from heedful.fused.attention_steps import FusedAdditive, FusedAttention, FusedDot
from heedful.fused.cells import FUSED_CELLS, CellWeights, FusedCell

STEPS, BATCH, INPUT, HIDDEN, KEYS = 4, 3, 2, 5, 7
STATES = {"gru": 1, "lstm": 2}


def randn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("kind", FUSED_CELLS)
@pytest.mark.parametrize("lowest", [True, False], ids=["lowest layer", "upper layer"])
def test_a_cell_equals_torchs_cell(kind: str, lowest: bool) -> None:
    torch.manual_seed(0)
    cell = (nn.GRUCell(INPUT, HIDDEN) if kind == "gru" else nn.LSTMCell(INPUT, HIDDEN)).double()
    inputs, grads = randn(STEPS, BATCH, INPUT).requires_grad_(), randn(STEPS, BATCH, HIDDEN)
    start = tuple(randn(BATCH, HIDDEN).requires_grad_() for _ in range(STATES[kind]))
    state: tuple[Tensor, ...] = start
    outputs = []
    for t in range(STEPS):
        after = cell(inputs[t], state if kind == "lstm" else state[0])
        state = after if kind == "lstm" else (after,)
        outputs.append(state[0])
    leaves = [inputs, *start, cell.weight_hh, cell.bias_hh, cell.weight_ih, cell.bias_ih]
    expected = torch.autograd.grad(sum((g * out).sum() for g, out in zip(grads, outputs, strict=True)), leaves)
    with torch.no_grad():
        fused, input_gates = make_cell(kind, cell, inputs, lowest)
        fused_state: tuple[Tensor, ...] = start
        for t in range(STEPS):
            if not lowest:
                fused.set_input(t, inputs[t])
            fused_state = fused.forward(t, fused_state)
            torch.testing.assert_close(fused.outputs[t], outputs[t], rtol=0, atol=1e-12)
        dstate = tuple(torch.zeros_like(h) for h in start)
        for t in reversed(range(STEPS)):
            dstate = fused.backward(t, (dstate[0] + grads[t], *dstate[1:]))
        gradients = fused.weight_gradients(None if lowest else inputs)
        dinputs = fused.input_gates @ cell.weight_ih
    actual = [dinputs, *dstate, *(gradients[:2] if lowest else gradients)]
    for gradient, other in zip(actual, expected[: len(actual)], strict=True):
        torch.testing.assert_close(gradient, other, rtol=0, atol=1e-12)
    assert fused.input_gates is input_gates
    assert (gradients.input is None) is lowest


def make_cell(kind: str, cell: nn.RNNCellBase, inputs: Tensor, lowest: bool) -> tuple[FusedCell, Tensor]:
    """The input gates of the lowest layer are computed for all steps at once."""
    gates = nn.functional.linear(inputs, cell.weight_ih, cell.bias_ih)
    if lowest:
        return FUSED_CELLS[kind](CellWeights(cell.weight_hh, cell.bias_hh), gates), gates
    empty = torch.empty_like(gates)
    return FUSED_CELLS[kind](CellWeights(cell.weight_hh, cell.bias_hh, cell.weight_ih, cell.bias_ih), empty), empty


@pytest.mark.parametrize("score", ["additive", "dot"])
@pytest.mark.parametrize("with_weights", [True, False], ids=["gradients of weights", "gradients of contexts alone"])
def test_attention_equals_autograd(score: str, with_weights: bool) -> None:
    """The last sentence has no key at all: its weights and contexts are zero."""
    torch.manual_seed(0)
    keep = torch.arange(KEYS) < torch.tensor([[KEYS], [3], [0]])
    query_weight, v = randn(HIDDEN, HIDDEN).requires_grad_(), randn(HIDDEN).requires_grad_()
    keys, values = randn(BATCH, KEYS, HIDDEN).requires_grad_(), randn(BATCH, KEYS, INPUT).requires_grad_()
    states = randn(STEPS, BATCH, HIDDEN).requires_grad_()
    projected = states if score == "dot" else states @ query_weight.T
    if score == "dot":
        scores = 0.3 * torch.einsum("sbh,bkh->sbk", projected, keys)
    else:
        scores = torch.tanh(projected[:, :, None] + keys) @ v
    weights = scores.masked_fill(~keep, -1e30).softmax(dim=-1) * keep
    contexts = torch.einsum("sbk,bkw->sbw", weights, values)
    dcontexts, dweights = randn(*contexts.shape), randn(*weights.shape) if with_weights else None
    loss = (contexts * dcontexts).sum() + (0.0 if dweights is None else (weights * dweights).sum())
    leaves = [states, keys, values, *([query_weight, v] if score == "additive" else [])]
    expected = torch.autograd.grad(loss, leaves)
    with torch.no_grad():
        memory = keys.detach(), values.detach(), keep
        fused: FusedAttention = (
            FusedDot(0.3, *memory, STEPS)
            if score == "dot"
            else FusedAdditive(query_weight.detach(), v.detach(), *memory, STEPS)
        )
        for t in range(STEPS):
            torch.testing.assert_close(fused.forward(t, states[t].detach()), contexts[t], rtol=0, atol=1e-12)
        torch.testing.assert_close(fused.weights, weights, rtol=0, atol=1e-12)
        fused.start_backward()
        dstates = torch.empty_like(states)
        for t in reversed(range(STEPS)):
            dstates[t] = fused.backward(t, dcontexts[t], None if dweights is None else dweights[t])
        actual = [dstates, *fused.memory_gradients(), *fused.weight_gradients()]
    for gradient, other in zip([g for g in actual if g is not None], expected, strict=True):
        torch.testing.assert_close(gradient, other, rtol=0, atol=1e-10)
