"""Checks that need the trace alone: row sums, and weights and contexts recomputed in plain loops."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from heedful.errors import TraceError
from heedful.trace.plain_math import max_difference, weighted_sum
from heedful.trace.plain_placement import is_known_mechanism, weights_from_scores
from heedful.trace.schema import SENTENCE_ENDS, Checks, SiteRecord, Trace

EMPTY_SLOT = "empty_slot"  # extra: the score of a tape's empty slot, which is not a position of the text
SAME_WEIGHTS = 1e-6  # total variation distance up to which the weights of two steps count as equal


def check(trace: Trace) -> Checks:
    """Return the largest differences between a trace's numbers and those recomputed from it alone."""
    sums = [_row_sum_error(trace, record) for record in trace.sites]
    weights = [d for record in trace.sites if record.scores for d in _weight_errors(trace, record)]
    contexts = [d for record in trace.sites if record.context for d in _context_errors(trace, record)]
    return Checks(
        row_sum=max((error for error in sums if error is not None), default=None),
        weights=max(weights, default=None),
        context=max(contexts, default=None),
        greedy_is_argmax=_greedy_is_argmax(trace),
        weights_vary=_weights_vary(trace),
    )


def is_edited(trace: Trace, record: SiteRecord, query: int) -> bool:
    """Return whether the weights of a site were edited at a query; edits without a site apply to the alignment site."""
    return any(
        edit.changes_weights and (edit.site or trace.alignment_site) == record.site and edit.step in (None, query)
        for edit in trace.edits
    )


def allowed_keys(trace: Trace, record: SiteRecord, query: int) -> list[bool]:
    """Return which keys a query of a site may read."""
    keep = [True] * trace.tensors[record.weights].shape[2]
    if record.keep is not None:
        keep = [bool(value) for value in trace.array(record.keep).ravel()]
    if record.kind == "pool" and record.query_side == "source":
        return _keys_of_sentence(trace, query, keep)
    if record.kind == "tape":
        return [value and key < query and keep[query] for key, value in enumerate(keep)]
    if record.kind == "self" and (record.query_side == "target" or trace.model.task == "read"):
        return [value and key <= query for key, value in enumerate(keep)]
    if record.kind == "history" and (item := trace.target.tokens[query].id) is not None:
        # An item of the history does not attend to itself (He 2018).
        return [value and token.id != item for value, token in zip(keep, trace.source.tokens, strict=True)]
    return keep


def attention_settings(trace: Trace, record: SiteRecord) -> dict[str, object]:
    """Return the recipe's [model.attention] settings of a site; Transformers, tapes and pointers have their own."""
    decoder = (trace.model.settings.get("decoder") or {}).get("kind")
    if record.kind == "tape":
        return {"score": "additive", "heads": 0, "read_end": True}
    if record.site == "copy":
        return {"score": "general", "heads": 0, "read_end": True}
    if record.kind == "self" or decoder == "transformer":
        return {"score": "scaled-dot", "heads": record.heads, "read_end": True}
    return dict(trace.model.settings.get("attention") or {})


def _keys_of_sentence(trace: Trace, query: int, keep: list[bool]) -> list[bool]:
    """The last word of a sentence is its query, and the sentence's words are the keys; other words have none."""
    is_end = trace.array(SENTENCE_ENDS).ravel().tolist()
    if not is_end[query]:
        return [False] * len(keep)
    first = max((key + 1 for key in range(query) if is_end[key]), default=0)
    return [value and first <= key <= query for key, value in enumerate(keep)]


def _row_sum_error(trace: Trace, record: SiteRecord) -> float | None:
    """Return the largest difference between a row sum and the sum required by `mass`; edited rows are left out."""
    weights = trace.weights(record.site)
    rows = [query for query in range(len(weights)) if not is_edited(trace, record, query)]
    if record.mass == "free" or not rows:
        return None
    sums = weights[rows].sum(axis=-1)
    if record.mass == "at_most_one":
        return float(np.maximum(sums - 1, 0).max(initial=0))
    sums = sums[sums > 0]  # a query without any key has zeros
    return float(np.abs(sums - 1).max(initial=0))


def _rows(trace: Trace, record: SiteRecord) -> Iterator[tuple[int, int]]:
    n_queries, n_heads, _ = trace.tensors[record.weights].shape
    for query in range(n_queries):
        for head in range(n_heads):
            yield query, head


def _weight_errors(trace: Trace, record: SiteRecord) -> Iterator[float]:
    assert record.scores is not None
    settings = attention_settings(trace, record)
    scores, weights = trace.array(record.scores), trace.weights(record.site)
    if not is_known_mechanism(settings, record.extras):
        return
    shape = weights.shape[:2]
    extras = {name: trace.array(tensor).reshape(shape) for name, tensor in record.extras.items()}
    for query, head in _rows(trace, record):
        if is_edited(trace, record, query):
            continue
        extra = {name: float(array[query, head]) for name, array in extras.items()}
        row, allowed = scores[query, head].tolist(), allowed_keys(trace, record, query)
        slots = [extra[EMPTY_SLOT]] if EMPTY_SLOT in extra else []
        try:
            recomputed = weights_from_scores(row + slots, allowed + [True] * len(slots), settings, query, extra)
        except (ArithmeticError, TypeError):  # too large, or settings that are no numbers
            raise TraceError(f"site {record.site}: weights cannot be recomputed from scores and settings") from None
        yield max_difference(recomputed[: len(row)], weights[query, head])


def _context_errors(trace: Trace, record: SiteRecord) -> Iterator[float]:
    assert record.context is not None
    if record.values is None:
        return
    weights = trace.weights(record.site)
    n_queries, n_heads, n_keys = weights.shape
    contexts = trace.array(record.context).reshape(n_queries, n_heads, -1)
    values = trace.array(record.values).reshape(n_keys, n_heads, -1)
    if contexts.shape[2] != values.shape[2]:
        raise TraceError(f"site {record.site}: contexts of {contexts.shape[2]} numbers, values of {values.shape[2]}")
    for query, head in _rows(trace, record):
        recomputed = weighted_sum(weights[query, head].tolist(), values[:, head].tolist())
        yield max_difference(recomputed, contexts[query, head])


def _greedy_is_argmax(trace: Trace) -> bool | None:
    """Return whether greedy search chose the most likely token at every step that was not forced."""
    if trace.decoding.get("method") != "greedy":
        return None
    ranks = [step.rank for step in trace.steps if step.rank is not None and not step.forced]
    return all(rank == 0 for rank in ranks) if ranks else None


def _weights_vary(trace: Trace) -> bool | None:
    """Return whether the weights of any step differ from those of the first."""
    if trace.alignment_site is None or len(trace.steps) < 2:
        return None
    matrix = trace.matrix()
    return bool((np.abs(matrix - matrix[0]).sum(axis=1) / 2).max() > SAME_WEIGHTS)
