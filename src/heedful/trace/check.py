"""`check`: softmax and context once more, from the file alone."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from heedful.record import Checks, Looks, Trace
from heedful.trace.loops import mixture
from heedful.trace.place import placed

ENDS = "ends"  # which words are the last of their sentences
SLOT = "slot"  # the score of a tape's empty slot, which is no position
SAME = 1e-6  # weights of two steps that differ by less look at one place


def check(trace: Trace) -> Checks:
    """The largest differences between what the trace says and what follows from its own numbers."""
    sums = [_row_sums(trace, looks) for looks in trace.sites]
    return Checks(
        row_sum=_largest(s for s in sums if s is not None),
        softmax=_largest(d for looks in trace.sites if looks.score for d in _softmax(trace, looks)),
        context=_largest(d for looks in trace.sites if looks.context for d in _context(trace, looks)),
        top_first=_top_first(trace),
        moving=_moving(trace),
    )


def _largest(differences: Iterable[float]) -> float | None:
    return max(differences, default=None)


def _row_sums(trace: Trace, looks: Looks) -> float | None:
    """How far rows are from summing to what the site promises; edited rows promise nothing."""
    kept = [t for t in range(len(trace.steps)) if not edited(trace, looks, t)] or None
    weights = trace.weights(looks.site)
    if looks.mass == "free" or (kept is None and looks.asks == "target"):
        return None
    rows = weights if looks.asks == "source" else weights[kept]
    sums = rows.sum(axis=-1)
    if looks.mass == "at_most_one":
        return float(np.maximum(sums - 1, 0).max(initial=0))
    some = sums[sums > 0]  # a query that may read nothing has zeros
    return float(np.abs(some - 1).max(initial=0))


def edited(trace: Trace, looks: Looks, step: int) -> bool:
    """Were the weights of this site changed by hand at this step?"""
    by_hand = ("set", "onehot", "zero", "uniform", "permute", "gold", "mask-head")
    return any(
        edit.op in by_hand and edit.site in (None, looks.site) and edit.step in (None, step)
        for edit in trace.edits
    )


def _rows(trace: Trace, looks: Looks) -> Iterable[tuple[int, int]]:
    weights = trace.weights(looks.site)
    for query in range(weights.shape[0]):
        for head in range(weights.shape[1]):
            yield query, head


def allowed(trace: Trace, looks: Looks, query: int) -> list[bool]:
    """What a query of this site may read."""
    count = trace.tensors[looks.weight].shape[2]
    open_ = [True] * count
    if looks.mask is not None:
        open_ = [bool(value) for value in trace.tensors[looks.mask].array()]
    if looks.kind == "pool" and looks.asks == "source":
        return _own_sentence(trace, query, open_)
    if looks.kind == "tape":
        return [value and key < query and open_[query] for key, value in enumerate(open_)]
    if looks.kind == "self" and (looks.asks == "target" or trace.model.task == "read"):
        open_ = [value and key <= query for key, value in enumerate(open_)]
    if looks.kind == "history" and (own := trace.target.tokens[query].id) is not None:  # no item reads itself
        open_ = [value and token.id != own for value, token in zip(open_, trace.source.tokens, strict=True)]
    return open_


def _own_sentence(trace: Trace, query: int, open_: list[bool]) -> list[bool]:
    """The last word of a sentence reads from behind the one before it to itself; no other asks."""
    last = trace.array(ENDS).tolist()
    if not last[query]:
        return [False] * len(open_)
    first = max((key + 1 for key in range(query) if last[key]), default=0)
    return [value and first <= key <= query for key, value in enumerate(open_)]


def _softmax(trace: Trace, looks: Looks) -> Iterable[float]:
    assert looks.score is not None
    settings = attention_settings(trace, looks)
    scores, weights = trace.array(looks.score), trace.weights(looks.site)
    extras = {name: trace.array(tensor) for name, tensor in looks.extra.items()}
    for query, head in _rows(trace, looks):
        if edited(trace, looks, query):
            continue
        extra = {name: float(array[query, head]) for name, array in extras.items()}
        row, open_ = scores[query, head].tolist(), allowed(trace, looks, query)
        slots = [extra[SLOT]] if SLOT in extra else []
        made = placed(row + slots, open_ + [True] * len(slots), settings, query, extra)[: len(row)]
        yield float(np.abs(np.asarray(made) - weights[query, head]).max(initial=0))


def attention_settings(trace: Trace, looks: Looks) -> dict[str, object]:
    """The recipe's words for this site: Transformers and pointers look by plain softmax."""
    decoder = trace.model.settings.get("decoder", {}).get("kind")
    if looks.kind == "tape":
        return {"score": "additive", "heads": 0, "read_end": True}
    if looks.site == "copy":
        return {"score": "general", "heads": 0, "read_end": True}
    if looks.kind == "self" or decoder == "transformer":
        return {"score": "scaled-dot", "heads": looks.heads, "read_end": True}
    return dict(trace.model.settings.get("attention", {}))


def _context(trace: Trace, looks: Looks) -> Iterable[float]:
    assert looks.context is not None
    if looks.value is None:
        return
    weights = trace.weights(looks.site)
    contexts, values = trace.by_head(looks.context), trace.by_head(looks.value)
    for query, head in _rows(trace, looks):
        made = mixture(weights[query, head].tolist(), values[:, head].tolist())
        yield float(np.abs(np.asarray(made) - contexts[query, head]).max(initial=0))


def _top_first(trace: Trace) -> bool | None:
    """Is the word that was written the likeliest, where the search was greedy and nothing was forced?"""
    if trace.decode.get("method") != "greedy":
        return None
    ranks = [step.rank for step in trace.steps if step.rank is not None and not step.forced]
    return all(rank == 0 for rank in ranks) if ranks else None


def _moving(trace: Trace) -> bool | None:
    if trace.alignment is None or len(trace.steps) < 2:
        return None
    matrix = trace.matrix()
    return bool((np.abs(matrix - matrix[0]).sum(axis=1) / 2).max() > SAME)
