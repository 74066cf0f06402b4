"""Many steps of a GRU decoder whose looks enter its next step, as one operation with its own way back.

Each step must wait for the one before, but not everything in it must: what words bring to the gates is
computed for all steps before, the read-out for all steps after, and on the way back each weight's gradient
is one product over all steps. `one_by_one` says the same a step at a time, and the tests hold the two equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd import Function

from heedful.native import additive, additive_back, gru, gru_back

Mode = Literal["look first", "feed context", "feed vector", "conditional"]
Steps = Float[Tensor, "step batch _"]


class Weights(NamedTuple):
    """What the loop multiplies with. Those a mode does not know are None.

    - `look first`: `c_t = look(s_{t-1})`, `s_t = GRU(words_t + fed c_t, s_{t-1})`
    - `feed context`: `s_t = GRU(words_t + fed c_{t-1}, s_{t-1})`, `c_t = look(s_t)`
    - `feed vector`: `s_t = GRU(words_t + fed a_{t-1}, s_{t-1})`, `c_t = look(s_t)`,
      `a_t = tanh(mix [s_t; c_t])`
    - `conditional`: `s' = GRU(words_t, s_{t-1})`, `c_t = look(s')`, `s_t = GRU2(fed c_t, s')`
    """

    hidden: Float[Tensor, "gates hidden"]
    hidden_bias: Float[Tensor, "gates"]
    ask: Float[Tensor, "score hidden"]
    v: Float[Tensor, "score"]
    fed: Float[Tensor, "gates fed"]
    mix: Float[Tensor, "vector both"] | None = None
    fed_bias: Float[Tensor, "gates"] | None = None
    hidden2: Float[Tensor, "gates hidden"] | None = None
    hidden2_bias: Float[Tensor, "gates"] | None = None


@dataclass
class Cell:
    """The states of one GRU over all steps, and what its way back needs."""

    weight: Tensor
    bias: Tensor
    gi: Steps
    gh: Steps
    kept: Steps
    out: Steps
    before: Steps  # the state each step began with
    dgh: Tensor  # made on the way back

    @classmethod
    def over(cls, weight: Tensor, bias: Tensor, gi: Steps) -> Cell:
        steps, batch, gates = gi.shape
        hidden = gates // 3
        gh, kept = gi.new_empty(2, steps, batch, gates)
        out, before = gi.new_empty(2, steps, batch, hidden)
        return cls(weight, bias, gi, gh, kept, out, before, gi.new_empty(0))

    def begin_back(self) -> None:
        self.dgh = torch.empty_like(self.gh)

    def forth(self, t: int, h: Tensor) -> Tensor:
        self.before[t].copy_(h)
        torch.addmm(self.bias, h, self.weight.T, out=self.gh[t])
        gru(self.gi[t], self.gh[t], h, self.out[t], self.kept[t])
        return self.out[t]

    def back(self, t: int, g: Tensor) -> Tensor:
        """The gradient of the state before; that of `gi` takes its place."""
        dh = torch.empty_like(g)
        new = self.gh[t, :, 2 * g.shape[-1] :]
        gru_back(self.kept[t], new, self.before[t], g, self.gi[t], self.dgh[t], dh)
        return dh.addmm_(self.dgh[t], self.weight)

    def weight_gradients(self) -> tuple[Tensor, Tensor]:
        dgh = self.dgh.flatten(end_dim=1)
        return dgh.T @ self.before.flatten(end_dim=1), dgh.sum(dim=0)


@dataclass
class Looks:
    """The looks of all steps, and the sums of what comes back to the memory."""

    ask: Tensor
    v: Tensor
    keys: Tensor
    values: Tensor
    keep: Tensor
    query: Steps
    weights: Steps
    context: Steps
    asked: Steps  # the states that asked
    into: tuple[Tensor, ...] = ()

    @classmethod
    def over(cls, w: Weights, keys: Tensor, values: Tensor, keep: Tensor, steps: int) -> Looks:
        batch, count, width = values.shape
        return cls(
            w.ask, w.v, keys, values, keep,
            keys.new_empty(steps, batch, keys.shape[2]),
            keys.new_empty(steps, batch, count),
            keys.new_empty(steps, batch, width),
            keys.new_empty(steps, batch, w.ask.shape[1]),
        )  # fmt: skip

    def forth(self, t: int, s: Tensor) -> Tensor:
        self.asked[t].copy_(s)
        torch.mm(s, self.ask.T, out=self.query[t])
        additive(self.query[t], self.keys, self.v, self.keep, self.values, self.weights[t], self.context[t])
        return self.context[t]

    def begin_back(self) -> None:
        dv = self.keys.new_zeros(len(self.keys), self.keys.shape[2])
        self.into = (torch.zeros_like(self.keys), torch.zeros_like(self.values), dv)

    def back(self, t: int, g: Tensor) -> Tensor:
        """The gradient of the state that asked; the query's gradient takes the query's place."""
        into_query = torch.empty_like(self.query[t])
        additive_back(
            self.query[t], self.keys, self.v, self.keep, self.values, self.weights[t], g.contiguous(),
            into_query, *self.into,
        )  # fmt: skip
        self.query[t].copy_(into_query)
        return into_query @ self.ask

    def weight_gradients(self) -> tuple[Tensor, Tensor]:
        into_ask = self.query.flatten(end_dim=1).T @ self.asked.flatten(end_dim=1)
        return into_ask, self.into[2].sum(dim=0)


class _Loop(Function):
    """Forth: states, contexts and vectors of all steps. Back: through the steps in reverse."""

    @staticmethod
    def forward(
        ctx: Any,
        mode: Mode,
        keep: Tensor,
        words: Tensor,
        start: Tensor,
        fed: Tensor,
        keys: Tensor,
        values: Tensor,
        *weights: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        w = Weights(*weights)  # type: ignore[arg-type]
        steps = len(words)
        looks = Looks.over(w, keys, values, keep, steps)
        gates = words.clone(memory_format=torch.contiguous_format)
        cell = Cell.over(w.hidden, w.hidden_bias, gates)
        second = None
        if mode == "conditional":
            assert w.hidden2 is not None
            assert w.hidden2_bias is not None
            second = Cell.over(w.hidden2, w.hidden2_bias, torch.empty_like(gates))
        vectors = words.new_empty(steps, len(start), 0 if w.mix is None else len(w.mix))
        s, a = start, fed
        for t in range(steps):
            if mode == "conditional":
                assert second is not None
                assert w.fed_bias is not None
                between = cell.forth(t, s)
                torch.addmm(w.fed_bias, looks.forth(t, between), w.fed.T, out=second.gi[t])
                s = second.forth(t, between)
                continue
            a = looks.forth(t, s) if mode == "look first" else a
            cell.gi[t].addmm_(a, w.fed.T)
            s = cell.forth(t, s)
            if mode != "look first":
                a = looks.forth(t, s)
            if mode == "feed vector":
                assert w.mix is not None
                torch.mm(torch.cat([s, a], dim=-1), w.mix.T, out=vectors[t])
                a = vectors[t].tanh_()
        ctx.mode, ctx.w, ctx.parts = mode, w, (looks, cell, second, vectors, fed)
        states = (cell if second is None else second).out
        # other handles on the same numbers: a node that held its own outputs would never be freed
        return states.detach(), looks.context.detach(), vectors.detach()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        mode: Mode = ctx.mode
        w: Weights = ctx.w
        looks, cell, second, vectors, fed = ctx.parts
        into_s, into_c, into_a = grads
        steps, batch, hidden = cell.out.shape
        for part in (looks, cell, second):
            if part is not None:
                part.begin_back()
        into_mix = vectors.new_empty(vectors.shape)
        g = into_s.new_zeros(batch, hidden)  # reaches the state after step t
        fg = torch.zeros_like(fed)  # reaches what was fed into step t + 1
        for t in reversed(range(steps)):
            if mode == "conditional":
                between = second.back(t, g + into_s[t])
                between += looks.back(t, torch.addmm(into_c[t], second.gi[t], w.fed))
                g = cell.back(t, between)
                continue
            g = g + into_s[t]
            c = into_c[t]
            if mode == "feed vector":
                into_mix[t] = (into_a[t] + fg) * (1 - vectors[t].square())
                both = into_mix[t] @ w.mix
                g += both[:, :hidden]
                c = c + both[:, hidden:]
            elif mode == "feed context":
                c = c + fg
            if mode != "look first":
                g += looks.back(t, c)
            g = cell.back(t, g)
            fg = cell.gi[t] @ w.fed
            if mode == "look first":
                g += looks.back(t, c + fg)
        into = [*cell.weight_gradients(), *looks.weight_gradients()]
        if mode == "conditional":
            dgi = second.gi.flatten(end_dim=1)
            into += [dgi.T @ looks.context.flatten(end_dim=1), None, dgi.sum(dim=0)]
            into += second.weight_gradients()
        else:
            given = {"look first": looks.context, "feed context": looks.context, "feed vector": vectors}[mode]
            if mode != "look first":
                given = torch.cat([fed[None], given[:-1]])
            into.append(cell.gi.flatten(end_dim=1).T @ given.flatten(end_dim=1))
            both = torch.cat([cell.out, looks.context], dim=-1) if mode == "feed vector" else None
            into.append(None if both is None else into_mix.flatten(end_dim=1).T @ both.flatten(end_dim=1))
            into += [None] * 3
        into_fed = fg if mode in ("feed context", "feed vector") else None
        return None, None, cell.gi, g, into_fed, *looks.into[:2], *into


class Written(NamedTuple):
    """All steps, sentence by sentence."""

    states: Float[Tensor, "batch step hidden"]
    contexts: Float[Tensor, "batch step width"]
    vectors: Float[Tensor, "batch step vector"]


def gru_steps(
    mode: Mode,
    words: Float[Tensor, "batch step gates"],
    start: Float[Tensor, "batch hidden"],
    fed: Float[Tensor, "batch fed"],
    keys: Float[Tensor, "batch key score"],
    values: Float[Tensor, "batch key width"],
    keep: Bool[Tensor, "batch key"],
    weights: Weights,
) -> Written:
    """Run the loop: `words` is what they bring to the gates, `fed` what enters the first step."""
    rows = (t.contiguous() for t in (start, fed, keys, values))
    found = _Loop.apply(  # type: ignore[no-untyped-call]
        mode, keep.contiguous(), words.transpose(0, 1), *rows, *weights
    )
    return Written(*(t.transpose(0, 1) for t in found))
