"""The looks of all steps of a loop, each kind with its own way back."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.layers.step_cells import Steps
from heedful.native import additive, additive_back

Keys = Float[Tensor, "batch key score"]
Values = Float[Tensor, "batch key width"]
Keep = Bool[Tensor, "batch key"]


@runtime_checkable
class Looks(Protocol):
    """What the loop knows of its looks."""

    context: Steps
    weights: Steps
    asked: list[Tensor]  # the states, step by step

    def forth(self, t: int, s: Tensor) -> Tensor:
        """The context that state `s` reads at step t."""

    def begin_back(self) -> None: ...

    def back(self, t: int, g: Tensor, dw: Tensor | None) -> Tensor:
        """The gradient of the state that asked; `g` is the context's, `dw` what else reaches the weights."""

    def memory_gradients(self) -> tuple[Tensor, Tensor]:
        """Of the keys and of the values."""

    def weight_gradients(self) -> tuple[Tensor | None, Tensor | None]:
        """Of `ask` and of `v`."""


class AdditiveLooks:
    """`v' tanh(ask s + k)`."""

    def __init__(self, ask: Tensor, v: Tensor, keys: Keys, values: Values, keep: Keep, steps: int) -> None:
        batch, count, width = values.shape
        self.ask, self.v, self.keys, self.values, self.keep = ask, v, keys, values, keep
        self.query = keys.new_empty(steps, batch, keys.shape[2])
        self.weights = keys.new_empty(steps, batch, count)
        self.context = keys.new_empty(steps, batch, width)
        self.asked: list[Tensor] = []
        self.into: tuple[Tensor, ...] = ()

    def forth(self, t: int, s: Tensor) -> Tensor:
        self.asked.append(s)
        torch.mm(s, self.ask.T, out=self.query[t])
        additive(self.query[t], self.keys, self.v, self.keep, self.values, self.weights[t], self.context[t])
        return self.context[t]

    def begin_back(self) -> None:
        dv = self.keys.new_zeros(len(self.keys), self.keys.shape[2])
        self.into = (torch.zeros_like(self.keys), torch.zeros_like(self.values), dv)

    def back(self, t: int, g: Tensor, dw: Tensor | None) -> Tensor:
        """The query's gradient takes the query's place."""
        into_query = torch.empty_like(self.query[t])
        into_keys, into_values, into_v = self.into
        additive_back(
            self.query[t], self.keys, self.v, self.keep, self.values, self.weights[t], g.contiguous(),
            into_query, into_keys, into_values, into_v, None if dw is None else dw.contiguous(),
        )  # fmt: skip
        self.query[t].copy_(into_query)
        return into_query @ self.ask

    def memory_gradients(self) -> tuple[Tensor, Tensor]:
        return self.into[0], self.into[1]

    def weight_gradients(self) -> tuple[Tensor | None, Tensor | None]:
        into_ask = self.query.flatten(end_dim=1).T @ torch.cat(self.asked)
        return into_ask, self.into[2].sum(dim=0)


class DotLooks:
    """`scale s . k`; the memory's gradients are one product each over all steps."""

    def __init__(self, scale: float, keys: Keys, values: Values, keep: Keep, steps: int) -> None:
        batch, count, width = values.shape
        self.scale, self.keys, self.values = scale, keys, values
        self.closed = ~keep
        self.blind = self.closed.all(dim=1, keepdim=True)  # sentences with nothing to read: weights of zero
        self.weights = keys.new_empty(steps, batch, count)
        self.context = keys.new_empty(steps, batch, width)
        self.asked: list[Tensor] = []
        self.slopes = self.into = keys.new_empty(0)

    def forth(self, t: int, s: Tensor) -> Tensor:
        self.asked.append(s)
        scores = torch.bmm(self.keys, s[:, :, None]).squeeze(2).mul_(self.scale)
        weights = scores.masked_fill_(self.closed, float("-inf")).softmax(dim=-1)
        self.weights[t] = weights.masked_fill_(self.blind, 0.0)
        torch.bmm(self.weights[t][:, None], self.values, out=self.context[t][:, None])
        return self.context[t]

    def begin_back(self) -> None:
        self.slopes, self.into = torch.empty_like(self.weights), torch.empty_like(self.context)

    def back(self, t: int, g: Tensor, dw: Tensor | None) -> Tensor:
        self.into[t] = g
        w = self.weights[t]
        reaches = torch.bmm(self.values, g[:, :, None]).squeeze(2)
        reaches = reaches if dw is None else reaches + dw
        slopes = (reaches - (w * reaches).sum(dim=-1, keepdim=True)).mul_(w).mul_(self.scale)
        self.slopes[t] = slopes
        return torch.bmm(slopes[:, None], self.keys).squeeze(1)

    def memory_gradients(self) -> tuple[Tensor, Tensor]:
        over_keys = torch.bmm(self.slopes.permute(1, 2, 0), torch.stack(self.asked, dim=1))
        return over_keys, torch.bmm(self.weights.permute(1, 2, 0), self.into.transpose(0, 1))

    def weight_gradients(self) -> tuple[Tensor | None, Tensor | None]:
        return None, None
