"""Recurrent cells over all steps of a loop, each with its own way back.

A cell is given what enters its gates (`gi`) for all steps, or a step at a time; on the way back the gradients
take its place, and each weight's gradient is one product over all steps.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.layers.modules import must
from heedful.native import gru, gru_back, lstm, lstm_back

Steps = Float[Tensor, "step batch _"]
States = tuple[Tensor, ...]  # of one layer: a GRU's state, an LSTM's state and cell


class Layer(NamedTuple):
    """A layer's weights. The lowest has no `into`: what enters it is computed outside."""

    hidden: Float[Tensor, "gates hidden"]
    hidden_bias: Float[Tensor, "gates"]
    into: Float[Tensor, "gates below"] | None = None
    into_bias: Float[Tensor, "gates"] | None = None


@runtime_checkable
class Cell(Protocol):
    """What the loop knows of a cell."""

    gi: Steps
    out: Steps

    def enter(self, t: int, given: Tensor) -> None:
        """Put what the layer below gives into step t's gates."""

    def forth(self, t: int, state: States) -> States: ...

    def back(self, t: int, slopes: States) -> States:
        """From the gradients of the state after step t to those of the state before it."""

    def weight_gradients(self, given: Steps | None) -> list[Tensor | None]:
        """Of the four in `Layer`; `given` is what entered all steps from below."""


class GruCell:
    def __init__(self, weights: Layer, gi: Steps) -> None:
        steps, batch, gates = gi.shape
        hidden = gates // 3
        self.weights, self.gi = weights, gi
        self.gh, self.kept = gi.new_empty(batch, gates), torch.empty_like(gi)
        self.out, self.new = gi.new_empty(2, steps, batch, hidden)
        self.before: list[Tensor] = []

    def enter(self, t: int, given: Tensor) -> None:
        torch.addmm(must(self.weights.into_bias), given, must(self.weights.into).T, out=self.gi[t])

    def forth(self, t: int, state: States) -> States:
        (h,) = state
        self.before.append(h)
        torch.addmm(self.weights.hidden_bias, h, self.weights.hidden.T, out=self.gh)
        self.new[t] = self.gh[:, 2 * h.shape[1] :]  # the only third that is needed again
        gru(self.gi[t], self.gh, h, self.out[t], self.kept[t])
        return (self.out[t],)

    def back(self, t: int, slopes: States) -> States:
        (g,) = slopes
        dh, dgh = torch.empty_like(g), self.kept[t]  # gradients take the gates' place
        gru_back(self.kept[t], self.new[t], self.before[t], g, self.gi[t], dgh, dh)
        return (dh.addmm_(dgh, self.weights.hidden),)

    def weight_gradients(self, given: Steps | None) -> list[Tensor | None]:
        dgh, before = self.kept.flatten(end_dim=1), torch.cat(self.before)
        return [dgh.T @ before, dgh.sum(dim=0), *_entered(self.gi, given)]


class LstmCell:
    def __init__(self, weights: Layer, gi: Steps) -> None:
        steps, batch, gates = gi.shape
        self.weights, self.gi = weights, gi
        if weights.into is None:
            self.gi += weights.hidden_bias
            self.bias = weights.hidden_bias
        else:
            self.bias = weights.hidden_bias + must(weights.into_bias)
        self.out, self.cell, self.shown = gi.new_empty(3, steps, batch, gates // 4)
        self.before: list[States] = []

    def enter(self, t: int, given: Tensor) -> None:
        torch.addmm(self.bias, given, must(self.weights.into).T, out=self.gi[t])

    def forth(self, t: int, state: States) -> States:
        self.before.append(state)
        self.gi[t].addmm_(state[0], self.weights.hidden.T)
        lstm(self.gi[t], state[1], self.out[t], self.cell[t], self.shown[t])
        return self.out[t], self.cell[t]

    def back(self, t: int, slopes: States) -> States:
        dh, dc = slopes[0].contiguous(), slopes[1].clone(memory_format=torch.contiguous_format)
        lstm_back(self.gi[t], self.before[t][1], self.shown[t], dh, dc)
        return self.gi[t] @ self.weights.hidden, dc

    def weight_gradients(self, given: Steps | None) -> list[Tensor | None]:
        dg = self.gi.flatten(end_dim=1)
        before = torch.cat([h for h, _ in self.before])
        return [dg.T @ before, dg.sum(dim=0), *_entered(self.gi, given)]


CELLS: dict[str, type[GruCell] | type[LstmCell]] = {"gru": GruCell, "lstm": LstmCell}


def _entered(slopes: Steps, given: Steps | None) -> tuple[Tensor | None, Tensor | None]:
    """The gradients of `into` and its bias."""
    if given is None:
        return None, None
    flat = slopes.flatten(end_dim=1)
    return flat.T @ given.flatten(end_dim=1), flat.sum(dim=0)
