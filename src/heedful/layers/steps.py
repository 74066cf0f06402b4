"""Many steps of a recurrent decoder whose looks enter its next step, as one operation with its own way back.

Each step must wait for the one before, but not everything in it must: what words bring to the gates is
computed for all steps before, the read-out for all steps after, and on the way back each weight's gradient
is one product over all steps. `one_by_one` says the same a step at a time, and the tests hold the two equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd import Function

from heedful.layers.modules import must
from heedful.layers.step_cells import CELLS, Cell, Layer, States
from heedful.layers.step_looks import AdditiveLooks, DotLooks, Looks

Mode = Literal["look first", "feed context", "feed vector", "conditional"]
OWN = 6  # weights that belong to no layer


@dataclass(frozen=True)
class Plan:
    """What is done in a step, `s` being the top state of a stack of RNNs.

    - `look first`: `c_t = look(s_{t-1})`, `s_t = RNN(words_t + fed c_t, s_{t-1})`; with a gate c_t is
      `sigmoid(gate s_{t-1}) look(s_{t-1})`
    - `feed context`: `s_t = RNN(words_t + fed c_{t-1}, s_{t-1})`, `c_t = look(s_t)`
    - `feed vector`: `s_t = RNN(words_t + fed a_{t-1}, s_{t-1})`, `c_t = look(s_t)`,
      `a_t = tanh(mix [s_t; c_t])`
    - `conditional`: `s' = GRU(words_t, s_{t-1})`, `c_t = look(s')`, `s_t = GRU2(fed c_t, s')`; one layer
    """

    mode: Mode
    kind: Literal["gru", "lstm"]
    depth: int
    scale: float | None  # of dot products; None: additive scores
    watched: bool = False  # are the weights wanted?
    dropped: tuple[
        Tensor, ...
    ] = ()  # (step, batch, hidden) for each layer but the lowest: 0, or what is left

    @property
    def per_layer(self) -> int:
        return 2 if self.kind == "lstm" else 1


class Weights(NamedTuple):
    """What the loop multiplies with. Those a plan does not know are None."""

    layers: tuple[Layer, ...]
    fed: Float[Tensor, "gates fed"] | None = None
    ask: Float[Tensor, "score hidden"] | None = None
    v: Float[Tensor, "score"] | None = None
    mix: Float[Tensor, "vector both"] | None = None
    gate: Float[Tensor, "1 hidden"] | None = None
    gate_bias: Float[Tensor, "1"] | None = None
    second: Layer | None = None  # conditional: its `into` is fed the context

    def flat(self) -> list[Tensor | None]:
        second = [None] * 4 if self.second is None else list(self.second)
        own = [self.fed, self.ask, self.v, self.mix, self.gate, self.gate_bias]
        return [*own, *second, *(t for layer in self.layers for t in layer)]

    @classmethod
    def of(cls, flat: Sequence[Any]) -> Weights:
        second = None if flat[OWN] is None else Layer(*flat[OWN : OWN + 4])
        layers = tuple(Layer(*flat[at : at + 4]) for at in range(OWN + 4, len(flat), 4))
        fed, ask, v, mix, gate, gate_bias = flat[:OWN]
        return cls(layers, fed, ask, v, mix, gate, gate_bias, second)


@dataclass
class _Parts:
    """What the way back needs of the way forth."""

    plan: Plan
    w: Weights
    looks: Looks
    cells: list[Cell]
    second: Cell | None
    given: list[Tensor]  # what entered the layers above the lowest
    vectors: Tensor
    fed: Tensor
    open: Tensor  # how far the gate is open: (step, batch, 1)
    read: Tensor  # what passed it; without a gate, the looks' own contexts


class _Loop(Function):
    """Forth: states, contexts, vectors and weights of all steps, and the last states. Back: in reverse."""

    @staticmethod
    def forward(
        ctx: Any,
        plan: Plan,
        keep: Tensor,
        words: Tensor,
        fed: Tensor,
        keys: Tensor,
        values: Tensor,
        *rest: Any,
    ) -> tuple[Tensor, ...]:
        count = plan.depth * plan.per_layer
        state = [rest[at : at + plan.per_layer] for at in range(0, count, plan.per_layer)]
        w = Weights.of(rest[count:])
        steps, hidden = len(words), state[0][0].shape[-1]
        looks: Looks = (
            AdditiveLooks(must(w.ask), must(w.v), keys, values, keep, steps)
            if plan.scale is None
            else DotLooks(plan.scale, keys, values, keep, steps)
        )
        gates = words.clone(memory_format=torch.contiguous_format)
        made = CELLS[plan.kind]
        cells: list[Cell] = [
            made(layer, torch.empty_like(gates) if above else gates) for above, layer in enumerate(w.layers)
        ]
        second = None if w.second is None else made(w.second, torch.empty_like(gates))
        given = [words.new_empty(steps, len(fed), hidden) for _ in w.layers[1:]]
        vectors = words.new_empty(steps, len(fed), 0 if w.mix is None else len(w.mix))
        gated = w.gate is not None
        opened = words.new_empty(steps, len(fed), 1 if gated else 0)
        read = torch.empty_like(looks.context) if gated else looks.context
        parts = _Parts(plan, w, looks, cells, second, given, vectors, fed, opened, read)
        a = fed
        for t in range(steps):
            a = _step(parts, t, state, a)
        ctx.parts = parts
        states = (cells[-1] if second is None else second).out
        last = [t.clone() for layer in state for t in layer]
        # other handles on the same numbers: a node that held its own outputs would never be freed
        weights = looks.weights if plan.watched else words.new_empty(0)
        return states.detach(), read.detach(), vectors.detach(), weights.detach(), *last

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        parts: _Parts = ctx.parts
        plan, w, looks, cells, second = parts.plan, parts.w, parts.looks, parts.cells, parts.second
        into_s, into_c, into_a, into_w, *into_last = grads
        looks.begin_back()
        slopes = [
            tuple(g.clone() for g in into_last[at : at + plan.per_layer])
            for at in range(0, len(into_last), plan.per_layer)
        ]
        into_mix = torch.empty_like(parts.vectors)
        fg = torch.zeros_like(parts.fed)  # reaches what was fed into step t + 1
        for t in reversed(range(len(into_s))):
            dw = into_w[t] if plan.watched else None
            fg = _step_back(parts, t, slopes, (into_s[t], into_c[t], into_a[t], dw), fg, into_mix)
        flat: list[Tensor | None] = [None] * OWN
        flat[1:3] = looks.weight_gradients()
        if second is not None:
            flat += second.weight_gradients(looks.context)
        else:
            flat += [None] * 4
            fed = parts.vectors if plan.mode == "feed vector" else parts.read
            if plan.mode != "look first":
                fed = torch.cat([parts.fed[None], fed[:-1]])
            flat[0] = cells[0].gi.flatten(end_dim=1).T @ fed.flatten(end_dim=1)
            if w.mix is not None:
                both = torch.cat([cells[-1].out, looks.context], dim=-1)
                flat[3] = into_mix.flatten(end_dim=1).T @ both.flatten(end_dim=1)
        if w.gate is not None:
            asked = torch.cat(looks.asked)
            flat[4] = parts.open.flatten()[None] @ asked
            flat[5] = parts.open.sum().view(1)
        for cell, below in zip(cells, [None, *parts.given], strict=True):
            flat += cell.weight_gradients(below)
        into_fed = fg if plan.mode in ("feed context", "feed vector") else None
        into_state = [g for layer in slopes for g in layer]
        return None, None, cells[0].gi, into_fed, *looks.memory_gradients(), *into_state, *flat


def _step(parts: _Parts, t: int, state: list[States], a: Tensor) -> Tensor:
    """Step t: moves `state`, and gives what is fed into the next step."""
    plan, w, looks, cells = parts.plan, parts.w, parts.looks, parts.cells
    if plan.mode == "conditional":
        assert parts.second is not None
        between = cells[0].forth(t, state[0])
        parts.second.enter(t, looks.forth(t, between[0]))
        state[0] = parts.second.forth(t, between)
        return a
    if plan.mode == "look first":
        a = looks.forth(t, state[-1][0])
        if w.gate is not None:
            torch.sigmoid(torch.addmm(must(w.gate_bias), state[-1][0], w.gate.T), out=parts.open[t])
            a = torch.mul(a, parts.open[t], out=parts.read[t])
    cells[0].gi[t].addmm_(a, must(w.fed).T)
    state[0] = cells[0].forth(t, state[0])
    for above in range(1, plan.depth):
        below, enters = state[above - 1][0], parts.given[above - 1][t]
        torch.mul(below, plan.dropped[above - 1][t], out=enters) if plan.dropped else enters.copy_(below)
        cells[above].enter(t, enters)
        state[above] = cells[above].forth(t, state[above])
    if plan.mode == "look first":
        return a
    s = state[-1][0]
    a = looks.forth(t, s)
    if plan.mode == "feed vector":
        torch.mm(torch.cat([s, a], dim=-1), must(w.mix).T, out=parts.vectors[t])
        a = parts.vectors[t].tanh_()
    return a


def _step_back(
    parts: _Parts,
    t: int,
    slopes: list[States],
    given: tuple[Tensor, Tensor, Tensor, Tensor | None],
    fg: Tensor,
    into_mix: Tensor,
) -> Tensor:
    """Back through step t: moves `slopes`, the states' gradients, and gives that of what was fed into it."""
    plan, w, looks, cells = parts.plan, parts.w, parts.looks, parts.cells
    into_s, c, into_a, dw = given
    if plan.mode == "conditional":
        second = parts.second
        assert second is not None
        (between,) = second.back(t, (slopes[0][0] + into_s,))
        between = between + looks.back(t, torch.addmm(c, second.gi[t], must(must(w.second).into)), dw)
        slopes[0] = cells[0].back(t, (between,))
        return fg
    g = slopes[-1][0] + into_s
    if plan.mode == "feed vector":
        into_mix[t] = (into_a + fg) * (1 - parts.vectors[t].square())
        both = into_mix[t] @ must(w.mix)
        g += both[:, : g.shape[-1]]
        c = c + both[:, g.shape[-1] :]
    elif plan.mode == "feed context":
        c = c + fg
    if plan.mode != "look first":
        g += looks.back(t, c, dw)
    slopes[-1] = (g, *slopes[-1][1:])
    for above in reversed(range(1, plan.depth)):
        slopes[above] = cells[above].back(t, slopes[above])
        down = cells[above].gi[t] @ must(w.layers[above].into)
        down = down.mul_(plan.dropped[above - 1][t]) if plan.dropped else down
        below = slopes[above - 1]
        slopes[above - 1] = (below[0] + down, *below[1:])
    slopes[0] = cells[0].back(t, slopes[0])
    fg = cells[0].gi[t] @ must(w.fed)
    if plan.mode == "look first":
        top = slopes[-1]
        slopes[-1] = (top[0] + _read_back(parts, t, c + fg, dw), *top[1:])
    return fg


def _read_back(parts: _Parts, t: int, g: Tensor, dw: Tensor | None) -> Tensor:
    """From the gradient of what was read to that of the state that asked, through the gate if there is one.

    The gate's gradient takes the gate's place.
    """
    gate = parts.w.gate
    if gate is None:
        return parts.looks.back(t, g, dw)
    opened = parts.open[t]
    slope = (g * parts.looks.context[t]).sum(dim=1, keepdim=True) * opened * (1 - opened)
    through = parts.looks.back(t, g * opened, dw)
    parts.open[t] = slope
    return through.addmm_(slope, gate)


class Written(NamedTuple):
    """All steps, sentence by sentence, and the state after them."""

    states: Float[Tensor, "batch step hidden"]
    contexts: Float[Tensor, "batch step width"]
    vectors: Float[Tensor, "batch step vector"]
    weights: Float[Tensor, "batch step key"] | None  # where they were wanted
    last: tuple[Float[Tensor, "batch hidden"], ...]


def many_steps(
    plan: Plan,
    words: Float[Tensor, "batch step gates"],
    start: Sequence[Float[Tensor, "batch hidden"]],
    fed: Float[Tensor, "batch fed"],
    keys: Float[Tensor, "batch key score"],
    values: Float[Tensor, "batch key width"],
    keep: Bool[Tensor, "batch key"],
    weights: Weights,
) -> Written:
    """Run the loop: `words` is what they bring to the gates, `fed` what enters the first step."""
    rows = [t.contiguous() for t in (fed, keys, values, *start)]
    states, contexts, vectors, looked, *last = _Loop.apply(  # type: ignore[no-untyped-call]
        plan, keep.contiguous(), words.transpose(0, 1), *rows, *weights.flat()
    )
    states, contexts, vectors = (t.transpose(0, 1) for t in (states, contexts, vectors))
    return Written(states, contexts, vectors, looked.transpose(0, 1) if plan.watched else None, tuple(last))
