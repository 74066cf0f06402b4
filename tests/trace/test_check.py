"""Checks that need the trace alone: each finds the number that is wrong, and nothing else."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from heedful.trace.check import allowed_keys, check, is_edited
from heedful.trace.plain_math import log_softmax, normalize, weighted_sum
from heedful.trace.plain_placement import weights_from_scores
from heedful.trace.plain_scores import score_keys
from heedful.trace.schema import Edit, PackedTensor, SiteRecord, Step, Trace

SCORES = np.array([[[2.0, 1.0, 0.0]], [[0.0, 0.0, 0.0]]])
VALUES = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]


def recorded(**changes: Any) -> Trace:
    """Two steps over three keys by softmax, with scores, values and contexts."""
    weights = np.array([[normalize(row, [True] * 3, "softmax") for row in step] for step in SCORES.tolist()])
    contexts = np.array([weighted_sum(step[0].tolist(), VALUES) for step in weights])
    trace = Trace.from_weights(["a", "b", "c"], ["x", "y"], weights[:, 0])
    record = trace.site().model_copy(update={"scores": "scores", "values": "values", "context": "context"})
    tensors = {
        "weights": PackedTensor.pack(weights, "T", "H", "S"),
        "scores": PackedTensor.pack(SCORES, "T", "H", "S"),
        "values": PackedTensor.pack(np.array(VALUES), "S", "d"),
        "context": PackedTensor.pack(contexts, "T", "d"),
    }
    return trace.model_copy(update={"sites": [record], "tensors": tensors, **changes})


def with_error(trace: Trace, name: str, at: int, by: float) -> Trace:
    packed = trace.tensors[name]
    array = packed.array().astype(np.float64).copy()
    array.flat[at] += by
    return trace.model_copy(update={"tensors": {**trace.tensors, name: PackedTensor.pack(array, *packed.dims)}})


def test_a_consistent_trace_has_no_differences() -> None:
    checks = check(recorded())
    assert checks.row_sum is not None
    assert checks.weights is not None
    assert checks.context is not None
    assert max(checks.row_sum, checks.weights, checks.context) < 1e-6
    assert (checks.scores, checks.features, checks.output) == (None, None, None), "these need the parameters"


@pytest.mark.parametrize(
    ("tensor", "at", "wrong"),
    [
        ("weights", 1, {"row_sum", "weights", "context"}),
        ("scores", 1, {"weights"}),
        ("values", 2, {"context"}),
        ("context", 3, {"context"}),
    ],
)
def test_one_wrong_number_is_found(tensor: str, at: int, wrong: set[str]) -> None:
    checks = check(with_error(recorded(), tensor, at, 0.25)).model_dump()
    assert {name for name in ("row_sum", "weights", "context") if checks[name] > 0.01} == wrong


def test_edited_rows_need_not_follow_from_their_scores() -> None:
    trace = with_error(with_error(recorded(), "weights", 0, -0.3), "weights", 1, 0.3)
    assert (check(trace).weights or 0) > 0.2
    edited = trace.model_copy(update={"edits": [Edit(op="set", step=0, position=1, value=0.5)]})
    assert (check(edited).weights or 0) < 1e-6
    elsewhere = trace.model_copy(update={"edits": [Edit(op="set", step=1, position=1, value=0.5)]})
    assert (check(elsewhere).weights or 0) > 0.2


def test_an_edit_without_a_site_is_one_of_the_alignment_site() -> None:
    trace = recorded(edits=[Edit(op="uniform")])
    other = trace.site().model_copy(update={"site": "dec.0.self"})
    assert is_edited(trace, trace.site(), 0)
    assert not is_edited(trace, other, 0)
    assert not is_edited(recorded(edits=[Edit(op="prefix", text="x")]), trace.site(), 0)


@pytest.mark.parametrize(
    ("mass", "row_sum"), [("one", pytest.approx(0.25)), ("at_most_one", pytest.approx(0.25)), ("free", None)]
)
def test_rows_sum_to_what_the_site_promises(mass: str, row_sum: Any) -> None:
    trace = with_error(recorded(), "weights", 0, 0.25)
    record = trace.site().model_copy(update={"mass": mass, "scores": None, "context": None})
    assert check(trace.model_copy(update={"sites": [record]})).row_sum == row_sum


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"kind": "self", "key_side": "target"}, [[True, False], [True, True]]),
        ({"kind": "tape", "key_side": "target"}, [[False, False], [True, False]]),
        ({"kind": "cross"}, [[True, True, True], [True, True, True]]),
        ({"kind": "cross", "keep": "keep"}, [[True, True, False], [True, True, False]]),
    ],
)
def test_a_query_may_read_only_allowed_keys(record: dict[str, Any], expected: list[list[bool]]) -> None:
    trace = recorded()
    weights = PackedTensor.pack(np.zeros((2, 1, len(expected[0]))), "T", "H", "S")
    keep = PackedTensor.pack(np.array([True, True, False]), "S")
    trace = trace.model_copy(update={"tensors": {**trace.tensors, "weights": weights, "keep": keep}})
    site = SiteRecord.model_validate({**trace.site().model_dump(), **record})
    assert [allowed_keys(trace, site, query) for query in range(2)] == expected


def test_no_item_of_a_history_is_evidence_for_itself() -> None:
    trace = recorded()
    history = [token.model_copy(update={"id": i}) for i, token in enumerate(trace.source.tokens)]
    items = [token.model_copy(update={"id": 2 - i}) for i, token in enumerate(trace.target.tokens)]
    trace = trace.model_copy(
        update={
            "source": trace.source.model_copy(update={"tokens": history}),
            "target": trace.target.model_copy(update={"tokens": items}),
        }
    )
    record = trace.site().model_copy(update={"kind": "history"})
    assert allowed_keys(trace, record, 0) == [True, True, False]
    assert allowed_keys(trace, record, 1) == [True, False, True]


def test_greedy_search_takes_the_most_likely_token() -> None:
    steps = [Step(logp=-0.1, rank=0), Step(logp=-2.0, rank=3)]
    assert check(recorded(decoding={"method": "greedy"}, steps=steps)).greedy_is_argmax is False
    forced = [steps[0], steps[1].model_copy(update={"forced": True})]
    assert check(recorded(decoding={"method": "greedy"}, steps=forced)).greedy_is_argmax is True
    assert check(recorded(decoding={"method": "beam"}, steps=steps)).greedy_is_argmax is None


def test_weights_that_never_change_are_noticed() -> None:
    assert check(recorded()).weights_vary is True
    constant = Trace.from_weights(["a", "b"], ["x", "y"], [[0.5, 0.5], [0.5, 0.5]])
    assert check(constant).weights_vary is False
    assert check(Trace.from_weights(["a"], ["x"], [[1.0]])).weights_vary is None


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"placement": "uniform"}, [0.25, 0.25, 0.25, 0.25, 0]),
        ({"placement": "local-m", "window": 1}, [1 / 3, 1 / 3, 1 / 3, 0, 0]),
        ({"placement": "hard", "hard_inference": "argmax"}, [0, 0, 1, 0, 0]),
        ({"placement": "hard", "hard_inference": "expectation"}, [0.25, 0.25, 0.25, 0.25, 0]),
        ({"normalizer": "sparsemax"}, [0.25, 0.25, 0.25, 0.25, 0]),
        ({"normalizer": "smoothed-softmax", "beta": 0.5}, [0.5, 0.5, 0.5, 0.5, 0]),
    ],
)
def test_equal_scores_give_the_weights_of_each_placement(settings: dict[str, Any], expected: list[float]) -> None:
    allowed = [True, True, True, True, False]
    weights = weights_from_scores([0.0] * 5, allowed, settings, 1, {"sample": 2.0, "center": 1.5})
    assert weights == pytest.approx(expected, abs=1e-9)


def test_local_p_is_a_gaussian_around_its_center() -> None:
    allowed = [True, True, True, True, False]
    settings = {"placement": "local-p", "window": 2}
    gaussian = [math.exp(-((i - 1.5) ** 2) / 2) for i in range(4)]
    weights = weights_from_scores([0.0] * 5, allowed, settings, 0, {"center": 1.5})
    assert weights == pytest.approx([*(g / 4 for g in gaussian), 0])
    renormalized = weights_from_scores([0.0] * 5, allowed, settings | {"renormalize": True}, 0, {"center": 1.5})
    assert renormalized == pytest.approx([*(g / sum(gaussian) for g in gaussian), 0])


@pytest.mark.parametrize("name", ["softmax", "smoothed-softmax", "sparsemax", "entmax15"])
def test_nothing_allowed_means_no_weights(name: str) -> None:
    assert normalize([1.0, 2.0], [False, False], name) == [0.0, 0.0]
    assert normalize([1.0, 2.0], [True, False], name)[1] == 0.0


def test_large_logits_stay_finite() -> None:
    assert log_softmax([1000.0, 999.0])[0] == pytest.approx(-math.log(1 + math.exp(-1)))


def test_additive_scores_use_coverage_where_the_model_does() -> None:
    """`v = 1`, all matrices the identity: `tanh(q + k + 2 C)`."""
    parameters: dict[str, Any] = {"v": [1.0], "query.weight": [[1.0]], "key.weight": [[1.0]]}
    plain = score_keys("additive", [0.5], [[0.25], [0.5]], parameters.get, [0.1, 0.2])
    assert plain == pytest.approx([math.tanh(0.75), math.tanh(1.0)])
    covered = score_keys("additive", [0.5], [[0.25], [0.5]], (parameters | {"w_c": [2.0]}).get, [0.1, 0.2])
    assert covered == pytest.approx([math.tanh(0.95), math.tanh(1.4)])


def test_an_unknown_score_is_an_error() -> None:
    with pytest.raises(ValueError, match="no plain score for cosine"):
        score_keys("cosine", [1.0], [[1.0]], lambda _: None, [0.0])
