"""A model whose numbers are not finite cannot be traced, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import small_classifiers
import small_models
from heedful.data.batch import pad
from heedful.errors import ShapeError, TraceError
from heedful.tasks.base import TraceRequest
from heedful.tasks.classify.trace import trace_text
from heedful.trace.capture import CaptureRequest, capture
from heedful.trace.counterfactuals import seq2seq_counterfactuals
from heedful.trace.steps import check_log_probabilities, record_step

MESSAGE = "the model's log-probabilities are not finite"


def test_steps_without_finite_log_probabilities_are_refused() -> None:
    logp = torch.tensor([0.5, 0.5]).log()
    assert record_step(logp, 0, str).rank == 0
    with pytest.raises(TraceError, match=MESSAGE):
        record_step(torch.tensor([float("nan"), 0.0]), 1, str)
    with pytest.raises(TraceError, match=MESSAGE):
        record_step(torch.tensor([float("-inf"), 0.0]), 0, str)
    check_log_probabilities(torch.tensor([float("-inf"), 0.0]), torch.tensor(0.0))  # a masked token


def test_models_with_damaged_weights_are_not_traced(tmp_path: Path) -> None:
    model = small_models.attention_model()
    request = CaptureRequest(pad([[4, 5, 6]]), [4, 5])
    capture(model, request, str)
    for parameter in model.decoder.get_submodule("state_init").parameters():
        parameter.data.fill_(float("nan"))
    with pytest.raises(TraceError, match=MESSAGE):
        capture(model, request, str)
    with pytest.raises(ShapeError, match="weights that are not finite"):
        seq2seq_counterfactuals(model, request.source, request.tokens, str)
    loaded = small_classifiers.random_model_folder(tmp_path / "m", small_classifiers.small_preset("classify-learned"))
    for parameter in loaded.model.parameters():
        parameter.data.fill_(float("nan"))
    with pytest.raises(TraceError, match=MESSAGE):
        trace_text(loaded, TraceRequest("soup dull", "full"))
