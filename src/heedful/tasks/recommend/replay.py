"""Replay of recommenders: from item embeddings and attention weights to item scores in plain loops."""

from __future__ import annotations

import math

import numpy as np

from heedful.trace.plain_math import Rows, dot, log_sigmoid, max_difference, weighted_sum
from heedful.trace.replay import OutputErrors, Replay
from heedful.trace.schema import SiteRecord


class RecommenderReplay(Replay):
    """The score of an item, `b_i + p_i . sum_j a_ij q_j` (He 2018, eq. 4), and popularity."""

    def module_name(self, record: SiteRecord) -> str:
        parts = record.site.split(".")
        return f"layers.{parts[1]}.self_attention" if parts[0] == "enc" else "attention"

    def values(self, record: SiteRecord, queries: Rows) -> Rows:
        return queries if record.kind == "self" else self.source

    def output_errors(self) -> OutputErrors:
        if "counts" in self.parameters:
            return self._popularity_errors()
        record, embeddings = self.trace.site(), self.parameter("target_embedding.weight")
        weights = self.trace.weights()
        output_error = 0.0
        for t, step in enumerate(self.trace.steps):
            context = weighted_sum(weights[t, 0].tolist(), self.source)
            if record.heads > 1 and record.context is not None:
                context = self.linear("attention.heads.out", self.trace.by_head(record.context)[t].ravel().tolist())
            item = self.token(t)
            score = self.parameter("bias")[item] + dot(embeddings[item], context)
            output_error = max(output_error, abs(log_sigmoid(score) - step.logp))
        return OutputErrors(self._history_error(), output_error)

    def _history_error(self) -> float:
        """Return the difference of the history's vectors from their embeddings; layers in between are not replayed."""
        if "layers.0.feed_forward.0.weight" in self.parameters:
            return 0.0
        table = self.parameter("history_embedding.weight")
        rows = [table[token.id] for token in self.trace.source.tokens if token.id is not None]
        return max(max_difference(a, np.asarray(b)) for a, b in zip(rows, self.source, strict=True))

    def _popularity_errors(self) -> OutputErrors:
        counts = self.parameter("counts")
        shares = (max(counts[self.token(t)] / sum(counts), 1e-12) for t in range(len(self.trace.steps)))
        errors = (abs(math.log(share) - step.logp) for share, step in zip(shares, self.trace.steps, strict=True))
        return OutputErrors(0.0, max(errors))
