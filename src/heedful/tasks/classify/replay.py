"""Replay of classifiers: pooling, features and label log-probabilities in plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from heedful.trace.plain_math import Rows, add, log_softmax, max_difference, tanh
from heedful.trace.replay import OutputErrors, Replay
from heedful.trace.schema import SENTENCE_ENDS, SiteRecord

POOL, WORDS = "pool", "enc.words"
RECURRENT = ("rnn", "gru", "lstm")


class ClassifierReplay(Replay):
    """The equations of every pooling, given the encoder's output at each word."""

    def module_name(self, record: SiteRecord) -> str:
        if record.site == WORDS:
            return "encoder.word_attention"
        return "pooling.attention" if record.site == POOL else super().module_name(record)

    def queries(self, record: SiteRecord) -> Rows:
        if record.site == WORDS:
            return [self.parameter("encoder.query")] * len(self.source)
        if record.site != POOL:
            return super().queries(record)
        return [self.parameter("pooling.query")] if self._setting("query") == "learned" else [self._last_states()]

    def keys(self, record: SiteRecord, queries: Rows) -> Rows:
        if record.site == WORDS:
            return self.recorded_values(record)
        if record.site != POOL:
            return super().keys(record, queries)
        return [tanh(row) for row in self._direction_sums()] if self._is_zhou() else self.source

    def values(self, record: SiteRecord, queries: Rows) -> Rows:
        if record.site == WORDS:
            return self.recorded_values(record)
        if record.site != POOL:
            return super().values(record, queries)
        return self._direction_sums() if self._is_zhou() else self._encoder_values()

    def output_errors(self) -> OutputErrors:
        features = self._features()
        recorded = np.asarray(self.intermediate("features")[0])
        logp = log_softmax(self.linear("output", features))
        return OutputErrors(max_difference(features, recorded), self.logp_error(0, logp))

    def _features(self) -> list[float]:
        """Return the vector of the text by attention, mean, maximum or the last states."""
        pooling = self._setting("pooling")
        if pooling == "attention":
            return self._attention_features()
        rows = self._readable_states()
        if pooling == "mean":
            return [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        if pooling == "max":
            return [max(column) for column in zip(*rows, strict=True)]
        return self._last_states()

    def _attention_features(self) -> list[float]:
        record = self.trace.site(POOL)
        if record.context is None:
            return list(self.intermediate("features")[0])
        context: list[float] = self.trace.by_head(record.context)[0].ravel().tolist()
        if "pooling.attention.heads.out.weight" in self.parameters:
            context = self.linear("pooling.attention.heads.out", context)
        return tanh(context) if self._is_zhou() else context

    def _is_zhou(self) -> bool:
        """Zhou 2016: the states of both directions are summed, and tanh is applied to keys and context."""
        return bool(self._setting("form") == "zhou")

    def _direction_sums(self) -> Rows:
        return [add(row[: len(row) // 2], row[len(row) // 2 :]) for row in self.source]

    def _encoder_values(self) -> Rows:
        """Return the encoder's values; only a convolutional encoder's are not its keys."""
        return self.trace.array("values").tolist() if "values" in self.trace.tensors else self.source

    def _readable_states(self) -> Rows:
        """Return the states that are pooled: with or without the end token, or those at sentence ends."""
        rows = self._encoder_values()
        if SENTENCE_ENDS in self.trace.tensors:
            return [row for row, is_end in zip(rows, self.trace.array(SENTENCE_ENDS), strict=True) if is_end]
        without_end = not self.settings["encoder"]["read_end"] and len(rows) > 1
        return rows[:-1] if without_end else rows

    def _last_states(self) -> list[float]:
        """Return `[h_T forward; h_1 backward]`."""
        encoder, rows = self.settings["encoder"], self._readable_states()
        half = len(rows[0]) // 2
        if encoder["kind"] in RECURRENT and encoder["bidirectional"]:
            return [*rows[-1][:half], *rows[0][half:]]
        return list(rows[-1])

    def _setting(self, name: str) -> Any:
        return self.settings["classifier"][name]
