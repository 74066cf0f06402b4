"""The terms of scores, read-outs and logits add up to the recorded numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import small_models
from heedful.config import DecodingOptions
from heedful.tasks.base import TraceRequest
from heedful.tasks.seq2seq.trace import trace_line
from heedful.trace.schema import PackedTensor, Trace
from heedful.trace.terms import OUTPUT_BIAS, OUTPUT_LOG_SUM, OUTPUT_TERMS, READ_OUT_SUM, READ_OUT_TERMS

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "additive": np.tanh,
    "concat": np.tanh,
    "concat-relu": lambda x: np.maximum(x, 0),
}
SCORES = ["additive", "concat", "concat-relu", "prod-relu", "general", "location", "scaled-dot"]


def record(folder: Path, preset: str, **changes: Any) -> Trace:
    loaded = small_models.random_model_folder(folder, small_models.small_preset(preset, **changes))
    return trace_line(loaded, TraceRequest("the black cat sees a dog"), DecodingOptions(method="greedy", max_length=5))


def recompute_scores(trace: Trace, score: str) -> np.ndarray:
    """Recompute the scores (query, head, key) from their terms."""
    query, keys = trace.array("cross/score_query"), trace.array("cross/score_keys")
    if score in ACTIVATIONS:
        inner = query[:, :, None] + keys.transpose(1, 0, 2)[None]
        return np.asarray(ACTIVATIONS[score](inner) @ trace.array("cross/score_vector"))
    if score == "prod-relu":
        inner = (query[:, :, None] * keys.transpose(1, 0, 2)[None]) @ trace.array("cross/score_matrix").T
        return np.asarray(np.maximum(inner + trace.array("cross/score_bias"), 0) @ trace.array("cross/score_vector"))
    scale = query.shape[-1] ** -0.5 if score == "scaled-dot" else 1.0
    return np.asarray(np.einsum("qhd,khd->qhk", query, keys) * scale)


@pytest.mark.parametrize("score", SCORES)
def test_scores_are_the_sum_of_their_terms(tmp_path: Path, score: str) -> None:
    heads = {"attention__heads": 3} if score == "scaled-dot" else {}
    trace = record(tmp_path, "bigru-gru", attention__score=score, **heads)
    np.testing.assert_allclose(recompute_scores(trace, score), trace.array("cross/scores"), atol=1e-5)


@pytest.mark.parametrize("read_out", ["linear", "tanh", "affine", "deep", "added", "maxout"])
def test_logits_and_features_are_the_sum_of_their_terms(tmp_path: Path, read_out: str) -> None:
    changes = {"decoder__input_feeding": "context"} if read_out == "maxout" else {}
    trace = record(tmp_path, "bigru-gru", decoder__read_out=read_out, **changes)
    terms, bias, log_sum = (trace.array(name) for name in (OUTPUT_TERMS, OUTPUT_BIAS, OUTPUT_LOG_SUM))
    if read_out == "linear":
        features = np.concatenate([trace.array("state"), trace.array("context")], axis=-1)
        assert READ_OUT_TERMS not in trace.tensors
    else:
        features = trace.array("features")
    for t, step in enumerate(trace.steps):
        shown = sum(weight * features[t, int(index)] for index, weight in terms[t])
        logit = step.logp + log_sum[t]
        assert np.isfinite(logit)
        assert abs(logit - bias[t] - shown) < np.abs(features[t]).sum()  # the rest is smaller than everything together
        assert all(
            abs(terms[t, 0, 1] * features[t, int(terms[t, 0, 0])]) >= abs(w * features[t, int(i)]) for i, w in terms[t]
        )
        if read_out != "linear":
            unit, total = int(terms[t, 0, 0]), trace.array(READ_OUT_SUM)[t]
            expected = total if read_out in ("affine", "maxout") else np.tanh(total)
            assert features[t, unit] == pytest.approx(expected, abs=1e-5)
            both = np.concatenate([trace.array("state")[t], trace.array("context")[t]])
            for index, _, value in trace.array(READ_OUT_TERMS)[t]:
                assert int(index) >= len(both) or value == pytest.approx(both[int(index)], abs=1e-5)


def test_traces_of_weights_have_no_terms(tmp_path: Path) -> None:
    loaded = small_models.random_model_folder(tmp_path, small_models.small_preset("bigru-gru"))
    options = DecodingOptions(method="greedy", max_length=5)
    trace = trace_line(loaded, TraceRequest("the black cat", "weights"), options)
    assert not [name for name in trace.tensors if "score_" in name or "terms" in name]


@pytest.mark.parametrize("name", ["cross/score_query", "cross/score_keys", "output/terms", "read_out/sum"])
def test_terms_of_a_wrong_shape_are_refused(tmp_path: Path, name: str) -> None:
    trace = record(tmp_path, "bigru-gru", decoder__read_out="deep")
    tensors = {**trace.tensors, name: PackedTensor.pack(np.zeros((1, 1, 1)), "a", "b", "c")}
    with pytest.raises(ValueError, match=name):
        Trace.model_validate(trace.model_copy(update={"tensors": tensors}).model_dump(by_alias=True))
