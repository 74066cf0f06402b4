"""Replay: recompute scores, weights and contexts of a trace in plain Python loops from the model's parameters.

A replay starts from the recorded states, queries and tokens, and the parameters of the model folder. It shares no code
with the models: numbers that agree were computed by the documented equations. The computation after the attention
depends on the task: each task has a subclass of `Replay`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.errors import TraceError
from heedful.trace.check import EMPTY_SLOT, allowed_keys, attention_settings, check, is_edited
from heedful.trace.plain_math import Rows, Vector, affine, max_difference, sigmoid, tanh, weighted_sum
from heedful.trace.plain_placement import weights_from_scores
from heedful.trace.plain_scores import score_keys
from heedful.trace.schema import Checks, SiteRecord, Trace

Parameters = Mapping[str, npt.NDArray[Any]]


class SiteErrors(NamedTuple):
    """The largest differences between recorded and recomputed numbers of one query and head."""

    scores: float
    weights: float
    context: float


class OutputErrors(NamedTuple):
    """Largest differences of the features and of the log-probabilities; None: not recomputed."""

    features: float | None
    output: float


class Replay(ABC):
    """A trace and the parameters of its model. Parameter names are those of the model's state dict."""

    def __init__(self, trace: Trace, parameters: Parameters) -> None:
        if trace.detail == "weights":
            raise TraceError("replay needs scores and queries: record the trace with --detail steps or full")
        self.trace, self.parameters = trace, parameters
        self.settings = trace.model.settings
        self.source: Rows = trace.array("source").tolist() if "source" in trace.tensors else []
        self._lists: dict[str, Any] = {}

    def checks(self) -> Checks:
        """Return all checks of the trace, including those that need the parameters."""
        checks = check(self.trace)
        records = [record for record in self.trace.sites if record.scores is not None and record.query is not None]
        errors = [error for record in records for error in self.site_errors(record)]
        features, output = self.output_errors()
        return checks.model_copy(
            update={
                "scores": max((error.scores for error in errors), default=None),
                "weights": max([e.weights for e in errors] + [checks.weights or 0.0]) if errors else checks.weights,
                "context": max([e.context for e in errors] + [checks.context or 0.0]) if errors else checks.context,
                "features": features,
                "output": output,
            }
        )

    @abstractmethod
    def output_errors(self) -> OutputErrors:
        """Recompute what follows the attention, up to the log-probabilities of the output."""

    # parameters

    def parameter(self, name: str) -> Any:
        """Return a parameter as nested lists."""
        if name not in self._lists:
            if name not in self.parameters:
                raise TraceError(f"the model folder has no parameter {name}: the trace was recorded with another model")
            self._lists[name] = np.asarray(self.parameters[name], dtype=np.float64).tolist()
        return self._lists[name]

    def optional_parameter(self, name: str) -> Any:
        """Return a parameter as nested lists, or None if the model does not have it."""
        return self.parameter(name) if name in self.parameters else None

    def linear(self, name: str, x: Vector) -> list[float]:
        """Apply a linear layer by its name in the state dict, with its bias if it has one."""
        return affine(self.parameter(f"{name}.weight"), x, self.optional_parameter(f"{name}.bias"))

    # attention

    def site_errors(self, record: SiteRecord) -> Iterator[SiteErrors]:
        """Yield the differences of each query and head of a site."""
        assert record.scores is not None
        assert record.context is not None
        trace, module = self.trace, self.module_name(record)
        settings = attention_settings(trace, record)
        scores, weights = trace.array(record.scores), trace.array(record.weights)
        contexts = trace.by_head(record.context)
        extras = {name: trace.array(tensor) for name, tensor in record.extras.items()}
        inputs = self.queries(record)
        queries = self._project(module, inputs, "to_query", record.heads)
        keys = self._project(module, self.keys(record, inputs), "to_key", record.heads)
        values = self._project(module, self.values(record, inputs), "to_value", record.heads)
        coverage = np.zeros((record.heads, len(keys[0])))
        get_parameter = self._score_parameters(module)
        for t in range(len(inputs)):
            allowed = allowed_keys(trace, record, t)
            n_keys = self.n_keys(record, t, len(keys[0]))
            for head in range(record.heads):
                query, head_keys = queries[head][t], keys[head][:n_keys]
                row = score_keys(str(settings["score"]), query, head_keys, get_parameter, coverage[head].tolist())
                slots = self.empty_slot_scores(record, settings, query, get_parameter)
                extra = {name: float(array[t, head]) for name, array in extras.items()}
                if is_edited(trace, record, t):
                    recomputed = weights[t, head].tolist()
                else:
                    centered = extra | self._center(module, settings, query, allowed)
                    recomputed = _recompute_weights(row, slots, allowed, settings, t, centered)
                coverage[head] += np.asarray(recomputed)
                slot_error = max((abs(slot - extra[EMPTY_SLOT]) for slot in slots), default=0.0)
                yield SiteErrors(
                    scores=max(max_difference(row, scores[t, head][:n_keys]), slot_error),
                    weights=max_difference(recomputed, weights[t, head]),
                    context=max_difference(weighted_sum(recomputed, values[head]), contexts[t, head]),
                )

    def module_name(self, record: SiteRecord) -> str:
        """Return the state-dict prefix of a site's attention."""
        parts = record.site.split(".")
        if record.kind == "tape":
            return f"encoder.lstmn.cells.{parts[-1]}.tape.attention"
        if parts[0] in ("enc", "dec"):
            side = "encoder" if parts[0] == "enc" else "decoder"
            return f"{side}.layers.{parts[1]}.{parts[2]}_attention"
        return "decoder.attention"

    def queries(self, record: SiteRecord) -> Rows:
        assert record.query is not None
        queries: Rows = self.trace.array(record.query).tolist()
        return queries

    def keys(self, record: SiteRecord, queries: Rows) -> Rows:
        """Return the inputs of the keys, given those of the queries."""
        if record.kind == "tape":  # the tape holds [hidden; memory]: hidden states are the keys, both are values
            return [row[: len(row) // 2] for row in self.values(record, queries)]
        return queries if record.kind == "self" else self.source

    def values(self, record: SiteRecord, queries: Rows) -> Rows:
        """Return the inputs of the values, given those of the queries."""
        if record.kind == "tape":
            return self.recorded_values(record)
        return queries if record.kind == "self" else self.source

    def recorded_values(self, record: SiteRecord) -> Rows:
        """Return the recorded values of a site with a single head."""
        assert record.values is not None
        rows: Rows = self.trace.by_head(record.values)[:, 0].tolist()
        return rows

    def n_keys(self, record: SiteRecord, query: int, n_keys: int) -> int:
        """Return how many keys exist at a query; keys of later steps do not exist yet."""
        if record.kind == "tape":
            return query if any(allowed_keys(self.trace, record, query)) else 0
        return query + 1 if record.kind == "self" and record.query_side == "target" else n_keys

    def empty_slot_scores(
        self, record: SiteRecord, settings: Mapping[str, Any], query: Vector, get: Callable[[str], Any]
    ) -> list[float]:
        """Return the score of a tape's empty slot; an empty list where there is none."""
        return []

    def _score_parameters(self, module: str) -> Callable[[str], Any]:
        return lambda name: self.optional_parameter(f"{module}.score.{name}")

    def _project(self, module: str, rows: Rows, name: str, heads: int) -> list[list[list[float]]]:
        """Return the rows of each head: its part of a projection, or the rows themselves."""
        layer = f"{module}.heads.{name}"
        if f"{layer}.weight" not in self.parameters:
            return [[list(row) for row in rows]] * heads
        projected = [self.linear(layer, row) for row in rows]
        width = len(projected[0]) // heads if projected else 0
        return [[row[head * width : (head + 1) * width] for row in projected] for head in range(heads)]

    def _center(self, module: str, settings: Mapping[str, Any], query: Vector, allowed: list[bool]) -> dict[str, float]:
        """Recompute the center of local-p, `S sigmoid(v' tanh(W q))` (Luong 2015, eq. 9)."""
        if settings.get("placement") != "local-p":
            return {}
        inner = tanh(self.linear(f"{module}.placement.inner", query))
        share = sigmoid(self.linear(f"{module}.placement.outer", inner)[0])
        length = max((key + 1 for key, keep in enumerate(allowed) if keep), default=0)
        return {"center": share * max(length - 1, 0)}

    # output

    def token(self, step: int) -> int:
        """Return the output token of a step."""
        token = self.trace.target.tokens[step].id
        assert token is not None
        return token

    def intermediate(self, name: str) -> Rows:
        """Return a recorded intermediate, one row per step."""
        rows: Rows = self.trace.array(self.trace.intermediates[name]).tolist()
        return rows

    def logp_error(self, step: int, logp: Vector) -> float:
        """Return the largest difference between recorded and recomputed log-probabilities of a step."""
        record = self.trace.steps[step]
        recorded = [(self.token(step), record.logp), *((c.id, c.logp) for c in record.top if c.id is not None)]
        return max(abs(logp[token] - value) for token, value in recorded)


def _recompute_weights(
    scores: list[float],
    slots: list[float],
    allowed: list[bool],
    settings: Mapping[str, Any],
    query: int,
    extra: Mapping[str, float],
) -> list[float]:
    """Return the weights of all keys from the scores of those that exist, and of a tape's empty slot."""
    padded = scores + [0.0] * (len(allowed) - len(scores))
    weights = weights_from_scores(padded + slots, allowed + [True] * len(slots), settings, query, extra)
    return weights[: len(allowed)]
