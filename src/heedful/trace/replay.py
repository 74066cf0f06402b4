"""`replay`: scores, weights, contexts, read-out and output distribution once more, in plain Python loops.

It is given what a trace recorded (states, queries, words) and the parameters of the model folder, and shares
no code with the models: what it agrees with follows from the equations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.errors import TraceError
from heedful.record import Checks, Looks, Trace
from heedful.trace.check import allowed, attention_settings, check, edited
from heedful.trace.loops import (
    Rows,
    Vector,
    dot,
    log_softmax,
    mixture,
    norm,
    plus,
    relu,
    sigmoid,
    tanh,
    times,
)
from heedful.trace.place import placed
from heedful.trace.replay_reader import replay_reader

Parameters = Mapping[str, npt.NDArray[Any]]
PAD, START = 0, 2  # never written


def replay(trace: Trace, parameters: Parameters) -> Checks:
    """The largest differences between the trace and what its model's parameters give in plain loops."""
    if trace.detail == "weights":
        raise TraceError("a trace of weights alone cannot be replayed: make one with --detail steps or full")
    if trace.model.task == "read":
        return replay_reader(trace, parameters)
    replayer = _replayer(trace, parameters)
    found = check(trace)
    score, softmax, context = 0.0, 0.0, 0.0
    for looks in trace.sites:
        if looks.score is None or looks.query is None:
            continue
        for differences in replayer.looks(looks):
            score, softmax, context = (
                max(a, b) for a, b in zip((score, softmax, context), differences, strict=True)
            )
    said, output = replayer.output()
    return found.model_copy(
        update={
            "score": score if trace.sites else None,
            "softmax": max(softmax, found.softmax or 0.0) if trace.sites else None,
            "context": max(context, found.context or 0.0) if trace.sites else None,
            "said": said,
            "output": output,
        }
    )


def _replayer(trace: Trace, parameters: Parameters) -> Replay:
    """The one for its task; theirs are made from the class below."""
    if trace.model.task == "recommend":
        from heedful.trace.replay_history import HistoryReplay

        return HistoryReplay(trace, parameters)
    if trace.model.settings.get("classifier"):
        from heedful.trace.replay_label import LabelReplay

        return LabelReplay(trace, parameters)
    return Replay(trace, parameters)


class Replay:
    """The equations of encoder-decoders."""

    def __init__(self, trace: Trace, parameters: Parameters) -> None:
        self.trace, self.parameters = trace, parameters
        self.settings = trace.model.settings
        self.source: Rows = trace.array("source").tolist() if "source" in trace.tensors else []
        self._lists: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        """A parameter as lists; tied ones go by another name."""
        if name not in self._lists:
            if name not in self.parameters:
                raise TraceError(f"the model folder has no parameter {name}: is it another model's trace?")
            self._lists[name] = np.asarray(self.parameters[name], dtype=np.float64).tolist()
        return self._lists[name]

    def has(self, name: str) -> bool:
        return name in self.parameters

    # looks

    def looks(self, looks: Looks) -> Iterator[tuple[float, float, float]]:
        """For every query and head: differences of scores, of weights and of the context."""
        trace = self.trace
        assert looks.score is not None
        assert looks.query is not None
        assert looks.context is not None
        where = self._module(looks)
        settings = attention_settings(trace, looks)
        queries = self._queries(looks)
        keys = self._keys(looks, queries)
        values = self._values(looks, queries)
        recorded = [trace.array(looks.score), trace.array(looks.weight), trace.by_head(looks.context)]
        extras = {name: trace.array(tensor) for name, tensor in looks.extra.items()}
        covered = np.zeros((looks.heads, len(keys)))
        by_head = self._projected(where, keys, "to_key", looks.heads)
        mixed = self._projected(where, values, "to_value", looks.heads)
        asked = self._projected(where, queries, "to_query", looks.heads)
        for t in range(len(queries)):
            for head in range(looks.heads):
                count = self._there(looks, t, len(keys))
                made = self._scores(where, settings, asked[head][t], by_head[head][:count], covered[head])
                extra = {name: float(array[t, head]) for name, array in extras.items()}
                extra |= self._centre(where, settings, asked[head][t], looks)
                open_ = allowed(trace, looks, t)
                padded = made + [0.0] * (len(open_) - count)
                weights = placed(padded, open_, settings, t, extra)
                if edited(trace, looks, t):
                    weights = recorded[1][t, head].tolist()
                covered[head] += np.asarray(weights)
                context = mixture(weights, mixed[head])
                yield (
                    apart(made, recorded[0][t, head][:count]),
                    apart(weights, recorded[1][t, head]),
                    apart(context, recorded[2][t, head]),
                )

    def _there(self, looks: Looks, t: int, keys: int) -> int:
        """How many positions there are for query t: not those that are not written yet."""
        if looks.kind == "tape":
            return t if allowed(self.trace, looks, t).count(True) else 0
        return t + 1 if looks.kind == "self" and looks.asks == "target" else keys

    def _module(self, looks: Looks) -> str:
        """Where a site's parameters are in the model."""
        if looks.site == "copy":
            return "copying.attention"
        parts = looks.site.split(".")
        if looks.kind == "tape":
            return f"encoder.stack.cells.{parts[-1]}.tape.attention"
        if parts[0] in ("enc", "dec"):
            room = "encoder" if parts[0] == "enc" else "decoder"
            return f"{room}.layers.{parts[1]}.{parts[2]}_attention"
        if len(parts) == 2:  # cross.N of a convolutional decoder
            return f"decoder.looks.{parts[1]}"
        return "decoder.attention"

    def _queries(self, looks: Looks) -> Rows:
        assert looks.query is not None
        queries: Rows = self.trace.array(looks.query).tolist()
        return queries

    def _keys(self, looks: Looks, queries: Rows) -> Rows:
        if looks.kind == "tape":  # [h; m] stands there: states are compared, both are read
            return [row[: len(row) // 2] for row in self._values(looks, queries)]
        return queries if looks.kind == "self" else self.source

    def _values(self, looks: Looks, queries: Rows) -> Rows:
        if looks.kind == "tape":
            assert looks.value is not None
            rows: Rows = self.trace.by_head(looks.value)[:, 0].tolist()
            return rows
        if looks.kind == "self":
            return queries
        if self.settings["decoder"]["kind"] == "abs" and looks.site != "copy":
            return self._smoothed(int(self.settings["decoder"]["window"]))
        return self.source

    def _smoothed(self, window: int) -> Rows:
        """ABS: the mean of the vectors within the window on each side."""
        found = []
        for i in range(len(self.source)):
            near = self.source[max(0, i - window) : i + window + 1]
            found.append([sum(column) / len(near) for column in zip(*near, strict=True)])
        return found

    def _projected(self, where: str, rows: Rows, name: str, heads: int) -> list[list[list[float]]]:
        """For each head its rows: parts of a projection, or the rows as they are."""
        if not self.has(f"{where}.heads.{name}.weight"):
            return [[list(row) for row in rows]] * heads
        made = [
            times(self.get(f"{where}.heads.{name}.weight"), row, self.get(f"{where}.heads.{name}.bias"))
            for row in rows
        ]
        wide = len(made[0]) // heads if made else 0
        return [[row[head * wide : (head + 1) * wide] for row in made] for head in range(heads)]

    def _scores(
        self, where: str, settings: Mapping[str, Any], query: Vector, keys: Rows, covered: npt.NDArray[Any]
    ) -> list[float]:
        name, at = settings["score"], f"{where}.score"
        if name == "dot":
            return [dot(query, key) for key in keys]
        if name == "scaled-dot":
            return [dot(query, key) / math.sqrt(len(query)) for key in keys]
        if name == "general":
            return [dot(query, times(self.get(f"{at}.key.weight"), key)) for key in keys]
        if name == "location":
            rows = times(self.get(f"{at}.rows.weight"), query)
            return [rows[i] if i < len(rows) else 0.0 for i in range(len(keys))]
        if name == "additive":
            asked = times(self.get(f"{at}.query.weight"), query)
            bias = self.get(f"{at}.key.bias") if self.has(f"{at}.key.bias") else None
            v, w_c = self.get(f"{at}.v"), self.get(f"{at}.w_c") if self.has(f"{at}.w_c") else None
            made = []
            for i, key in enumerate(keys):
                inside = plus(asked, times(self.get(f"{at}.key.weight"), key, bias))
                if w_c is not None:
                    inside = plus(inside, [weight * covered[i] for weight in w_c])
                made.append(dot(v, tanh(inside)))
            return made
        if name == "concat":
            v, both = self.get(f"{at}.v"), self.get(f"{at}.both.weight")
            return [dot(v, tanh(times(both, [*query, *key]))) for key in keys]
        if name == "concat-relu":
            h, both, bias = self.get(f"{at}.h"), self.get(f"{at}.both.weight"), self.get(f"{at}.both.bias")
            return [dot(h, relu(times(both, [*query, *key], bias))) for key in keys]
        h, product, bias = (
            self.get(f"{at}.h"),
            self.get(f"{at}.product.weight"),
            self.get(f"{at}.product.bias"),
        )
        return [
            dot(h, relu(times(product, [q * k for q, k in zip(query, key, strict=True)], bias)))
            for key in keys
        ]

    def _centre(
        self, where: str, settings: Mapping[str, Any], query: Vector, looks: Looks
    ) -> dict[str, float]:
        """local-p: the centre from the query, in place of the recorded one."""
        if settings.get("placement") != "local-p":
            return {}
        inner = tanh(times(self.get(f"{where}.placement.inner.weight"), query))
        share = sigmoid(times(self.get(f"{where}.placement.outer.weight"), inner)[0])
        open_ = allowed(self.trace, looks, 0)
        length = max((i + 1 for i, value in enumerate(open_) if value), default=0)
        return {"centre": share * max(length - 1, 0)}

    # from contexts to words

    def output(self) -> tuple[float, float]:
        """Differences of what the read-out says, and of the likeliest words' log-probabilities."""
        trace = self.trace
        given = {name: trace.array(tensor).tolist() for name, tensor in trace.combine.items()}
        said_apart = output_apart = 0.0
        for t, step in enumerate(trace.steps):
            made = self._said({name: rows[t] for name, rows in given.items()}, t)
            if "said" in given:  # a linear read-out says state and context as they are
                said_apart = max(said_apart, apart(made, np.asarray(given["said"][t])))
            if "context" in given:
                said_apart = max(said_apart, self._gated(given["context"][t], t))
            logp = self._words(made, given, t)
            for top in step.top:
                assert top.id is not None
                output_apart = max(output_apart, abs(logp[top.id] - top.logp))
            output_apart = max(output_apart, abs(logp[self._token(t)] - step.logp))
        return said_apart, output_apart

    def _token(self, t: int) -> int:
        token = self.trace.target.tokens[t].id
        assert token is not None
        return token

    def _said(self, given: Mapping[str, Vector], t: int) -> list[float]:
        kind = self.settings["decoder"]["kind"]
        if kind == "transformer":
            return self._transformer(given)
        if kind == "conv":
            return self._convolutional(given)
        return self._abs(given, t) if kind == "abs" else self._read_out(given, t)

    def _read_out(self, given: Mapping[str, Vector], t: int) -> list[float]:
        """Six read-outs: `linear`, `tanh`, `affine`, `deep`, `added` and `maxout`."""
        kind = self.settings["decoder"]["read_out"]
        parts = [*given["state"], *given.get("context", [])]
        if kind == "linear":
            return parts
        at = "decoder.read_out.inner"
        bias = self.get(f"{at}.bias") if self.has(f"{at}.bias") else None
        if kind in ("deep", "maxout"):
            parts += self._word(self.trace.steps[t].input)
        made = times(self.get(f"{at}.weight"), parts, bias)
        if kind == "affine":
            return made
        if kind == "maxout":
            return [max(made[2 * i], made[2 * i + 1]) for i in range(len(made) // 2)]
        if kind == "added":
            made = plus(made, self._word(self.trace.steps[t].input))
        return tanh(made)

    def _gated(self, context: Vector, t: int) -> float:
        """Xu 2015: the read-out's context is what was read, times `sigmoid(w s_{t-1} + b)`."""
        if not self.settings["decoder"].get("gate"):
            return 0.0
        looks = self.trace.looks()
        assert looks.query is not None
        assert looks.context is not None
        asked = self.trace.array(looks.query)[t].tolist()
        open_ = sigmoid(times(self.get("decoder.gate.weight"), asked, self.get("decoder.gate.bias"))[0])
        read = self.trace.by_head(looks.context)[t].ravel()
        return apart(context, open_ * read)

    def _word(self, token: int | None, table: str = "decoder.embedding.weight") -> list[float]:
        assert token is not None
        row: list[float] = self.get(self._tied(table))[token]
        return row

    def _tied(self, name: str) -> str:
        """One set of vectors may serve several parts, and is stored once."""
        others = (
            "decoder.embedding.weight",
            "embedding.weight",
            "decoder.read_out.output.weight",
            "decoder.output.weight",
        )
        if self.has(name) or name not in others:
            return name
        return next((other for other in others if self.has(other) and self._may_be(name, other)), name)

    def _may_be(self, name: str, other: str) -> bool:
        tie = self.settings["tie"]
        return tie == "all" or (
            tie == "output" and other != "embedding.weight" and name != "embedding.weight"
        )

    def _transformer(self, given: Mapping[str, Vector]) -> list[float]:
        """The last layer from its look on: residual, feed-forward, the last norm."""
        decoder = self.settings["decoder"]
        at = f"decoder.layers.{decoder['layers'] - 1}"
        pre, epsilon = decoder["norm"] == "pre", decoder["epsilon"]

        def normed(x: Vector, name: str) -> list[float]:
            return norm(x, self.get(f"{name}.weight"), self.get(f"{name}.bias"), epsilon)

        x = plus(given["stream"], given["context"])
        x = x if pre else normed(x, f"{at}.around_cross.norm")
        inside = normed(x, f"{at}.around_feed.norm") if pre else x
        inside = relu(
            times(self.get(f"{at}.feed_forward.0.weight"), inside, self.get(f"{at}.feed_forward.0.bias"))
        )
        inside = times(self.get(f"{at}.feed_forward.3.weight"), inside, self.get(f"{at}.feed_forward.3.bias"))
        x = plus(x, inside)
        x = normed(x, "decoder.last_norm") if pre else normed(x, f"{at}.around_feed.norm")
        return times(self.get("decoder.out.weight"), x) if self.has("decoder.out.weight") else x

    def _convolutional(self, given: Mapping[str, Vector]) -> list[float]:
        """Gehring 2017: sums are halved in variance."""
        at = f"decoder.answers.{self.settings['decoder']['layers'] - 1}"
        answer = times(self.get(f"{at}.weight"), given["context"], self.get(f"{at}.bias"))
        half = math.sqrt(0.5)
        x = [
            ((g + a) * half + s) * half
            for g, a, s in zip(given["gated"], answer, given["stream"], strict=True)
        ]
        return times(self.get("decoder.out.weight"), x, self.get("decoder.out.bias"))

    def _abs(self, given: Mapping[str, Vector], t: int) -> list[float]:
        """Rush 2015: the last words by a feed-forward layer, beside the look."""
        count = int(self.settings["decoder"]["words"])
        inputs = [step.input for step in self.trace.steps[: t + 1]]
        recent = ([START] * count + inputs)[-count:]
        words = [value for token in recent for value in self._word(token)]
        hidden = tanh(times(self.get("decoder.hidden.weight"), words, self.get("decoder.hidden.bias")))
        both = [*hidden, *given["context"]]
        if not self.has("decoder.out.weight"):
            return both
        return times(self.get("decoder.out.weight"), both, self.get("decoder.out.bias"))

    def _words(self, said: Vector, given: Mapping[str, Sequence[Any]], t: int) -> list[float]:
        """log p of every word; padding and the start token are never written."""
        recurrent = self.settings["decoder"]["kind"] in ("rnn", "gru", "lstm")
        at = "decoder.read_out.output" if recurrent else "decoder.output"
        logits = times(self.get(self._tied(f"{at}.weight")), said, self.get(f"{at}.bias"))
        if "gate" in given:
            p = [math.exp(value) for value in log_softmax(logits)]
            gate = sigmoid(given["gate"][t])
            p = [value * (1 - gate) for value in p]
            weights = self.trace.weights("copy")[t, 0]
            for weight, token in zip(weights, self.trace.source.tokens, strict=True):
                assert token.id is not None
                p[token.id] += gate * float(weight)
            logits = [math.log(max(value, 1e-38)) for value in p]
        logits = list(logits)
        logits[PAD] = logits[START] = -math.inf
        return log_softmax(logits)


def apart(made: Vector, recorded: npt.NDArray[Any]) -> float:
    return float(np.abs(np.asarray(made) - recorded).max(initial=0.0))
