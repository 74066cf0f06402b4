"""Attention in the step loop of a decoder, with its own backward pass."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.fused.cells import Steps
from heedful.kernels import additive_attention, additive_attention_backward

Keys = Float[Tensor, "batch key score"]
Values = Float[Tensor, "batch key width"]
Keep = Bool[Tensor, "batch key"]


@runtime_checkable
class FusedAttention(Protocol):
    """Attention with one query per sentence and step: the state of the decoder."""

    contexts: Steps
    weights: Steps
    states: list[Tensor]  # the decoder's state of each step

    def forward(self, t: int, state: Tensor) -> Tensor:
        """Return the context of a state at step t."""

    def start_backward(self) -> None:
        """Allocate the gradients."""

    def backward(self, t: int, dcontext: Tensor, dweights: Tensor | None) -> Tensor:
        """Return the gradient of the state; `dweights` is the gradient of the returned weights."""

    def memory_gradients(self) -> tuple[Tensor, Tensor]:
        """Return the gradients of the keys and of the values."""

    def weight_gradients(self) -> tuple[Tensor | None, Tensor | None]:
        """Return the gradients of the query projection and of `v`."""


class FusedAdditive:
    """Additive attention: `softmax(v' tanh(W s + k_i))`, keys already projected."""

    def __init__(self, query_weight: Tensor, v: Tensor, keys: Keys, values: Values, keep: Keep, steps: int) -> None:
        batch, count, width = values.shape
        self.query_weight, self.v, self.keys, self.values, self.keep = query_weight, v, keys, values, keep
        self.queries = keys.new_empty(steps, batch, keys.shape[2])  # after the backward pass, their gradients
        self.weights = keys.new_empty(steps, batch, count)
        self.contexts = keys.new_empty(steps, batch, width)
        self.states: list[Tensor] = []
        self.dkeys = self.dvalues = self.dv = keys.new_empty(0)

    def forward(self, t: int, state: Tensor) -> Tensor:
        self.states.append(state)
        torch.mm(state, self.query_weight.T, out=self.queries[t])
        additive_attention(
            self.queries[t], self.keys, self.v, self.keep, self.values, self.weights[t], self.contexts[t]
        )
        return self.contexts[t]

    def start_backward(self) -> None:
        self.dkeys, self.dvalues = torch.zeros_like(self.keys), torch.zeros_like(self.values)
        self.dv = self.keys.new_zeros(len(self.keys), self.keys.shape[2])

    def backward(self, t: int, dcontext: Tensor, dweights: Tensor | None) -> Tensor:
        dquery = torch.empty_like(self.queries[t])
        additive_attention_backward(
            self.queries[t], self.keys, self.v, self.keep, self.values, self.weights[t], dcontext.contiguous(),
            dquery, self.dkeys, self.dvalues, self.dv, None if dweights is None else dweights.contiguous(),
        )  # fmt: skip
        self.queries[t].copy_(dquery)
        return dquery @ self.query_weight

    def memory_gradients(self) -> tuple[Tensor, Tensor]:
        return self.dkeys, self.dvalues

    def weight_gradients(self) -> tuple[Tensor | None, Tensor | None]:
        dquery_weight = self.queries.flatten(end_dim=1).T @ torch.cat(self.states)
        return dquery_weight, self.dv.sum(dim=0)


class FusedDot:
    """Dot-product attention: `softmax(scale s . k_i)`; the gradients of the memory are products over all steps."""

    def __init__(self, scale: float, keys: Keys, values: Values, keep: Keep, steps: int) -> None:
        batch, count, width = values.shape
        self.scale, self.keys, self.values = scale, keys, values
        self.masked = ~keep
        self.empty = self.masked.all(dim=1, keepdim=True)  # sentences without any key get weights of zero
        self.weights = keys.new_empty(steps, batch, count)
        self.contexts = keys.new_empty(steps, batch, width)
        self.states: list[Tensor] = []
        self.dscores = self.dcontexts = keys.new_empty(0)

    def forward(self, t: int, state: Tensor) -> Tensor:
        self.states.append(state)
        scores = torch.bmm(self.keys, state[:, :, None]).squeeze(2).mul_(self.scale)
        weights = scores.masked_fill_(self.masked, float("-inf")).softmax(dim=-1)
        self.weights[t] = weights.masked_fill_(self.empty, 0.0)
        torch.bmm(self.weights[t][:, None], self.values, out=self.contexts[t][:, None])
        return self.contexts[t]

    def start_backward(self) -> None:
        self.dscores, self.dcontexts = torch.empty_like(self.weights), torch.empty_like(self.contexts)

    def backward(self, t: int, dcontext: Tensor, dweights: Tensor | None) -> Tensor:
        self.dcontexts[t] = dcontext
        weights = self.weights[t]
        dw = torch.bmm(self.values, dcontext[:, :, None]).squeeze(2)
        dw = dw if dweights is None else dw + dweights
        dscores = (dw - (weights * dw).sum(dim=-1, keepdim=True)).mul_(weights).mul_(self.scale)
        self.dscores[t] = dscores
        return torch.bmm(dscores[:, None], self.keys).squeeze(1)

    def memory_gradients(self) -> tuple[Tensor, Tensor]:
        dkeys = torch.bmm(self.dscores.permute(1, 2, 0), torch.stack(self.states, dim=1))
        return dkeys, torch.bmm(self.weights.permute(1, 2, 0), self.dcontexts.transpose(0, 1))

    def weight_gradients(self) -> tuple[Tensor | None, Tensor | None]:
        return None, None
