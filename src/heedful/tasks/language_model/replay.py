"""Replay of language models: tapes or causal self-attention, the LSTMN's states and log-probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from heedful.trace.check import EMPTY_SLOT
from heedful.trace.plain_math import Rows, Vector, affine, dot, log_softmax, max_difference, sigmoid, tanh
from heedful.trace.plain_scores import score_keys
from heedful.trace.replay import OutputErrors, Parameters, Replay
from heedful.trace.schema import SiteRecord, Trace


class LanguageModelReplay(Replay):
    """The LSTMN (Cheng 2016) and the causal Transformer (Vaswani 2017)."""

    def __init__(self, trace: Trace, parameters: Parameters) -> None:
        super().__init__(trace, parameters)
        self.config: Mapping[str, Any] = self.settings["language_model"]

    def module_name(self, record: SiteRecord) -> str:
        layer = record.site.split(".")[1]
        if record.kind == "tape":
            return f"core.lstmn.cells.{layer}.tape.attention"
        return f"core.layers.{layer}.self_attention"

    def keys(self, record: SiteRecord, queries: Rows) -> Rows:
        """Return hidden states; with `recency` each is followed by its position, in tens."""
        if record.kind != "tape":
            return queries
        hidden = [row[: self.config["hidden"]] for row in self.recorded_values(record)]
        return [[*row, i / 10] for i, row in enumerate(hidden)] if self.config.get("recency") else hidden

    def n_keys(self, record: SiteRecord, query: int, n_keys: int) -> int:
        return query if record.kind == "tape" else n_keys

    def empty_slot_scores(
        self, record: SiteRecord, settings: Mapping[str, Any], query: Vector, get: Callable[[str], Any]
    ) -> list[float]:
        if EMPTY_SLOT not in record.extras:
            return []
        slot = [0.0] * self.config["hidden"] + ([-0.1] if self.config.get("recency") else [])
        return score_keys(str(settings["score"]), query, [slot], get, [0.0])

    def output_errors(self) -> OutputErrors:
        features = self.intermediate("features")
        errors = [self.logp_error(t, self._log_probabilities(row)) for t, row in enumerate(features)]
        record = None if self.trace.alignment_site is None else self.trace.site()
        if record is None or record.kind != "tape":
            return OutputErrors(None, max(errors))
        states = zip(self._lstmn_states(record), features, strict=True)
        return OutputErrors(max(max_difference(a, np.asarray(b)) for a, b in states), max(errors))

    def _log_probabilities(self, features: Vector) -> Vector:
        """Return the log-probability of every word; with a shortlist in two steps (Goodman 2001)."""
        matrix = "output.weight" if "output.weight" in self.parameters else "embedding.weight"  # tied
        logits = affine(self.parameter(matrix), features, self.parameter("output.bias"))
        shortlist = self.config.get("shortlist", 0)
        if not 0 < shortlist < len(logits):
            return log_softmax(logits)
        tail = dot(self.parameter("output.tail_weight")[0], features) + self.parameter("output.tail_bias")[0]
        *first, rest = log_softmax([*logits[:shortlist], tail])
        return [*first, *(rest + value for value in log_softmax(logits[shortlist:]))]

    def _lstmn_states(self, record: SiteRecord) -> Iterator[list[float]]:
        """Yield the top layer's states from its gates and what it read from the tape (Cheng 2016, eq. 7-10)."""
        assert record.query is not None
        assert record.context is not None
        gates = f"core.lstmn.cells.{record.site.split('.')[1]}.gates"
        hidden = self.config["hidden"]
        input_width = len(self.parameter(f"{gates}.weight")[0]) - hidden
        queries = self.trace.array(record.query).tolist()
        contexts = self.trace.by_head(record.context)[:, 0].tolist()  # [hidden; memory]
        for query, context in zip(queries, contexts, strict=True):
            z = self.linear(gates, [*context[:hidden], *query[:input_width]])
            i, f, o = ([sigmoid(value) for value in z[k * hidden : (k + 1) * hidden]] for k in range(3))
            g = tanh(z[3 * hidden :])
            memory = [f[d] * context[hidden + d] + i[d] * g[d] for d in range(hidden)]
            state = [o[d] * math.tanh(memory[d]) for d in range(hidden)]
            projected = "output_projection.weight" in self.parameters
            yield self.linear("output_projection", state) if projected else state
