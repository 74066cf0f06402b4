"""Replay of classifiers: the one look, the one vector and the labels' probabilities, in plain loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from heedful.record import Looks
from heedful.trace.check import ENDS
from heedful.trace.loops import Rows, Vector, log_softmax, plus, tanh, times
from heedful.trace.replay import Replay

POOL, WORDS = "pool", "enc.words"
RECURRENT = ("rnn", "gru", "lstm")


class LabelReplay(Replay):
    """Given what the encoder made of each word."""

    def _module(self, looks: Looks) -> str:
        if looks.site == WORDS:
            return "encoder.look"
        return "pooling.attention" if looks.site == POOL else super()._module(looks)

    def _queries(self, looks: Looks) -> Rows:
        """What asks: the learned vector, or the final state."""
        if looks.site == WORDS:
            return [self.get("encoder.query")] * len(self.source)
        if looks.site != POOL:
            return super()._queries(looks)
        if self._says("query") == "learned":
            return [self.get("pooling.query")]
        return [self._last()]

    def _keys(self, looks: Looks, queries: Rows) -> Rows:
        if looks.site == WORDS:
            return self._values(looks, queries)
        if looks.site != POOL:
            return super()._keys(looks, queries)
        return [tanh(row) for row in self._values(looks, queries)] if self._added() else self.source

    def _values(self, looks: Looks, queries: Rows) -> Rows:
        if looks.site == WORDS:  # what the reader made of each word stands there
            assert looks.value is not None
            rows: Rows = self.trace.by_head(looks.value)[:, 0].tolist()
            return rows
        if looks.site != POOL:
            return super()._values(looks, queries)
        if self._added():
            return [plus(row[: len(row) // 2], row[len(row) // 2 :]) for row in self.source]
        return self._states()

    def _said(self, given: Mapping[str, Vector], t: int) -> list[float]:
        """The one vector from what was read, or by the mean, the maximum, the last states."""
        way = self._says("pooling")
        if way == "attention":
            return self._looked()
        rows = self._read()
        if way == "mean":
            return [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        if way == "max":
            return [max(column) for column in zip(*rows, strict=True)]
        return self._last()

    def _looked(self) -> list[float]:
        looks = self.trace.looks(POOL)
        if looks.context is None:
            return [float(value) for value in self.trace.array("said")[0]]
        context = [float(value) for value in self.trace.by_head(looks.context)[0].ravel()]
        if self.has("pooling.attention.heads.out.weight"):
            out = "pooling.attention.heads.out"
            context = times(self.get(f"{out}.weight"), context, self.get(f"{out}.bias"))
        return tanh(context) if self._added() else context

    def _added(self) -> bool:
        return bool(self._says("form") == "zhou")

    def _states(self) -> Rows:
        """What is read of each position; of convolutions, not what is compared."""
        return self.trace.array("values").tolist() if "values" in self.trace.tensors else self.source

    def _read(self) -> Rows:
        """The states of what was read: all, or all but the end; of sentences, those at their last words."""
        rows = self._states()
        if ENDS in self.trace.tensors:
            return [row for row, last in zip(rows, self.trace.array(ENDS), strict=True) if last]
        closed = not self.settings["encoder"]["read_end"] and len(rows) > 1
        return rows[:-1] if closed else rows

    def _last(self) -> list[float]:
        """`[h_T forward; h_1 backward]`."""
        encoder, rows = self.settings["encoder"], self._read()
        half = len(rows[0]) // 2
        if encoder["kind"] in RECURRENT and encoder["bidirectional"]:
            return [*rows[-1][:half], *rows[0][half:]]
        return list(rows[-1])

    def _words(self, said: Vector, given: Mapping[str, Sequence[Any]], t: int) -> list[float]:
        """log p of every label."""
        return log_softmax(times(self.get("output.weight"), said, self.get("output.bias")))

    def _says(self, setting: str) -> Any:
        return self.settings["classifier"][setting]
