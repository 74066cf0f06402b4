"""The reading of a text once more, in plain Python loops: scores, weights, what was read, said and foreseen.

It is given what a trace recorded and the parameters of the model folder, and shares no code with the models.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.record import Checks, Looks, Trace
from heedful.trace.check import SLOT, allowed, check, edited
from heedful.trace.loops import Rows, Vector, dot, log_softmax, mixture, normalise, plus, sigmoid, tanh, times

Parameters = Mapping[str, npt.NDArray[Any]]
Differences = tuple[float, float, float]


def replay_reader(trace: Trace, parameters: Parameters) -> Checks:
    """The largest differences between the trace and what its model's parameters give in plain loops."""
    found, replayer = check(trace), _Replay(trace, parameters)
    watched = [looks for looks in trace.sites if looks.score is not None]
    rows = [row for looks in watched for row in replayer.looks(looks)]
    score, softmax, context = (max((row[i] for row in rows), default=None) for i in range(3))
    said, output = replayer.output()
    return found.model_copy(
        update={"score": score, "softmax": softmax, "context": context, "said": said, "output": output}
    )


class _Replay:
    def __init__(self, trace: Trace, parameters: Parameters) -> None:
        self.trace, self.parameters = trace, parameters
        self.reader = trace.model.settings["reader"]
        self._lists: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        if name not in self._lists:
            self._lists[name] = np.asarray(self.parameters[name], dtype=np.float64).tolist()
        return self._lists[name]

    def looks(self, looks: Looks) -> Iterator[Differences]:
        """For every word and head: differences of scores, of weights and of what was read."""
        assert looks.score is not None
        assert looks.query is not None
        assert looks.value is not None
        assert looks.context is not None
        trace, heads = self.trace, looks.heads
        score, weight = trace.array(looks.score), trace.array(looks.weight)
        context, value = trace.by_head(looks.context), trace.by_head(looks.value)
        query = trace.array(looks.query).tolist()
        slots = trace.array(looks.extra[SLOT]) if SLOT in looks.extra else None
        depth = int(looks.site.split(".")[1])
        for head in range(heads):
            values = value[:, head].tolist()
            tape = looks.kind == "tape"
            made = self._tape(depth, query, values) if tape else self._head(depth, head, heads, query)
            for t, (row, empty) in enumerate(made):
                open_ = allowed(trace, looks, t)
                more = [] if slots is None else [empty]
                weights = normalise(row + more, open_ + [True] * len(more), "softmax")[: len(row)]
                if edited(trace, looks, t):
                    weights = weight[t, head].tolist()
                scored = [_apart([row[i]], score[t, head, i : i + 1]) for i, o in enumerate(open_) if o]
                if slots is not None:
                    scored.append(abs(empty - float(slots[t, head])))
                read = mixture(weights, values)
                yield (
                    max(scored, default=0.0),
                    _apart(weights, weight[t, head]),
                    _apart(read, context[t, head]),
                )

    def _tape(self, depth: int, query: Rows, values: Rows) -> Iterator[tuple[list[float], float]]:
        """Cheng 2016, eq. 5: `v' tanh(W_h h_i + W_x x_t + W_s h~_{t-1})`, and the score of an empty slot."""
        at = f"core.stack.cells.{depth}.tape.attention.score"
        v, hidden = self.get(f"{at}.v"), self.reader["hidden"]
        place = [[i / 10] if self.reader.get("recency") else [] for i in range(len(values))]
        weight = self.get(f"{at}.key.weight")
        empty = times(weight, [0.0] * hidden + ([-0.1] if self.reader.get("recency") else []))
        keys = [times(weight, [*row[:hidden], *own]) for row, own in zip(values, place, strict=True)]
        for asked in query:
            inside = times(self.get(f"{at}.query.weight"), asked)
            yield [dot(v, tanh(plus(inside, key))) for key in keys], dot(v, tanh(plus(inside, empty)))

    def _head(self, depth: int, head: int, heads: int, query: Rows) -> Iterator[tuple[list[float], float]]:
        """Vaswani 2017, eq. 1, one head of a layer."""
        at = f"core.layers.{depth}.self_attention.heads"
        wide = self.reader["hidden"] // heads
        part = slice(head * wide, (head + 1) * wide)

        def projected(name: str) -> list[list[float]]:
            weight, bias = self.get(f"{at}.{name}.weight")[part], self.get(f"{at}.{name}.bias")[part]
            return [times(weight, row, bias) for row in query]

        keys = projected("to_key")
        for asked in projected("to_query"):
            yield [dot(asked, key) / math.sqrt(wide) for key in keys], 0.0

    def output(self) -> tuple[float | None, float]:
        """Differences of what is said (where a tape tells the states), and of words' log-probabilities."""
        said = self.trace.array("said").tolist()
        tied = "output.weight" if "output.weight" in self.parameters else "embedding.weight"
        apart = 0.0
        for row, step, token in zip(said, self.trace.steps, self.trace.target.tokens, strict=True):
            logp = self._foreseen(times(self.get(tied), row, self.get("output.bias")), row)
            assert token.id is not None
            known = [(token.id, step.logp), *((top.id, top.logp) for top in step.top)]
            apart = max([apart, *(abs(logp[i] - value) for i, value in known if i is not None)])
        top = self.trace.alignment
        looks = None if top is None else self.trace.looks(top)
        if looks is None or looks.kind != "tape":
            return None, apart
        return max(
            _apart(mine, np.asarray(its)) for mine, its in zip(self._said(looks), said, strict=True)
        ), apart

    def _foreseen(self, scores: Vector, row: Vector) -> Vector:
        """Goodman 2001, where the output has two steps: a common word, or the rest and which of it."""
        common = self.reader.get("common", 0)
        if not 0 < common < len(scores):
            return log_softmax(scores)
        rest = dot(self.get("output.rest")[0], row) + self.get("output.rest_bias")[0]
        *first, none = log_softmax([*scores[:common], rest])
        return [*first, *(none + value for value in log_softmax(scores[common:]))]

    def _said(self, looks: Looks) -> Iterator[list[float]]:
        """Cheng 2016, eq. 7-10, of the top layer: gates from what was read and came in, then the state."""
        assert looks.query is not None
        assert looks.context is not None
        at, hidden = f"core.stack.cells.{looks.site.split('.')[1]}.gates", self.reader["hidden"]
        narrow = "out.weight" in self.parameters
        inputs = len(self.get(f"{at}.weight")[0]) - hidden
        query, read = self.trace.array(looks.query).tolist(), self.trace.by_head(looks.context)[:, 0].tolist()
        for asked, both in zip(query, read, strict=True):
            z = times(self.get(f"{at}.weight"), [*both[:hidden], *asked[:inputs]], self.get(f"{at}.bias"))
            i, f, o = ([sigmoid(value) for value in z[k * hidden : (k + 1) * hidden]] for k in range(3))
            g = tanh(z[3 * hidden :])
            cell = [f[d] * both[hidden + d] + i[d] * g[d] for d in range(hidden)]
            state = [o[d] * math.tanh(cell[d]) for d in range(hidden)]
            yield times(self.get("out.weight"), state) if narrow else state


def _apart(made: Vector, recorded: npt.NDArray[Any]) -> float:
    return float(np.abs(np.asarray(made) - recorded).max(initial=0.0))
