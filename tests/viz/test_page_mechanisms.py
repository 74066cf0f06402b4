"""The page knows every mechanism: it recomputes weights and contexts and shows the formulas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import small_models
from heedful.config import DecodingOptions
from heedful.tasks.base import TraceRequest
from heedful.tasks.seq2seq.trace import trace_line
from heedful.trace.schema import Trace
from viz.conftest import Opener

pytestmark = pytest.mark.browser
CASES: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "additive": ("bigru-gru", {"attention__bias": True}, ["ei=v·tanh(Wq+Uki+b)", "x=[s;c]"]),
    "coverage": ("bigru-gru", {"attention__coverage": True}, ["ei=v·tanh(Wq+Uki+wCi)"]),
    "concat": ("bigru-gru", {"attention__score": "concat"}, ["ei=v·tanh(W[q;ki])"]),
    "dot": ("luong", {"attention__score": "dot"}, ["ei=q·ki", "x=tanh(W[s;c])"]),
    "scaled dot": ("bigru-gru", {"attention__score": "scaled-dot"}, ["ei=q·kid"]),
    "heads": ("bigru-gru", {"attention__score": "scaled-dot", "attention__heads": 3}, ["ei=Qq·Kkid"]),
    "general, local-p": (
        "bigru-gru",
        {"attention__placement": "local-p", "attention__score": "general"},
        ["ei=q·Wki", "exp(−(i−p)22σ2)"],
    ),
    "renormalised local-p": (
        "bigru-gru",
        {"attention__placement": "local-p", "attention__renormalize": True},
        ["exp(−(i−p)22σ2)"],
    ),
    "local-m": ("bigru-gru", {"attention__placement": "local-m", "attention__read_end": False}, []),
    "location, sparsemax": (
        "bigru-gru",
        {"attention__score": "location", "attention__normalizer": "sparsemax"},
        ["ei=(Wq)i", "αi=max(0,ei−τ)"],
    ),
    "entmax": ("bigru-gru", {"attention__normalizer": "entmax15"}, ["αi=max(0,ei2−τ)2"]),
    "smoothed": ("bigru-gru", {"attention__normalizer": "smoothed-softmax"}, ["αi=exp(ei)(∑jexp(ej))β"]),
    "hard": ("bigru-gru", {"attention__placement": "hard", "attention__hard_inference": "argmax"}, []),
    "uniform": ("bigru-gru", {"attention__placement": "uniform"}, ["αi=1n"]),
    "prod-relu": ("bigru-gru", {"attention__score": "prod-relu"}, ["ei=h·relu(W(q⊙ki)+b)"]),
    "concat-relu": ("bigru-gru", {"attention__score": "concat-relu"}, ["ei=h·relu(W[q;ki]+b)"]),
    "deep": ("bigru-gru", {"decoder__read_out": "deep", "tie_embeddings": "all"}, ["x=tanh(L[s;c;y]+b)"]),
    "maxout": ("bigru-gru", {"decoder__input_feeding": "context", "decoder__read_out": "maxout"}, ["x=max(L[s;c;y]"]),
    "affine, copying": ("luong", {"decoder__read_out": "affine", "copying": True}, ["x=W[s;c]+b"]),
    "transformer": ("transformer", {}, ["u=r+c", "z=u+feed(norm(u))", "x=norm(z)"]),
    "transformer, post": (
        "transformer",
        {"encoder__norm": "post", "decoder__norm": "post"},
        ["u=norm(r+c)", "z=u+feed(u)"],
    ),
    "transformer, tied": ("transformer", {"embedding": 4, "tie_embeddings": "all"}, ["x=Pnorm(z)"]),
    "conv": ("conv-conv", {}, ["u=(g+Ac+a)½", "x=W(u+r)½+b"]),
    "abs": ("abs", {}, ["x=[tanh(Hy+b);c]"]),
    "no attention": ("seq2seq", {}, ["z=Ox+b", "p=softmax(z)"]),
}


TERMS = {  # what the numbers of a score look like
    "additive": "·tanh(",
    "coverage": "·tanh(",
    "concat": "·tanh(",
    "concat-relu": "·relu(",
    "prod-relu": "·relu(",
    "dot": "·",
    "heads": "·",
    "general, local-p": "·",
    "location, sparsemax": "·",
    "transformer": "·",
}


def record_trace(folder: Path, preset: str, changes: dict[str, Any]) -> Trace:
    loaded = small_models.random_model_folder(folder, small_models.small_preset(preset, **changes))
    options = DecodingOptions(method="greedy", max_length=5)
    return trace_line(loaded, TraceRequest("the black cat sees a dog", "full"), options)


@pytest.mark.parametrize("name", CASES)
def test_every_mechanism_is_recomputed_and_explained(show: Opener, tmp_path: Path, name: str) -> None:
    preset, changes, formulas = CASES[name]
    trace = record_trace(tmp_path / "model", preset, changes)
    step = min(2, len(trace.steps) - 1)
    shown = show(trace, f"#/walk?tick={5 * step + 4}" if trace.sites else f"#/walk?tick={step}")
    state = shown.page.get_attribute("#recomputed", "data-state")
    assert state == ("good" if trace.sites else "plain"), shown.texts("#recomputed")
    if trace.sites:
        assert max(shown.numbers("#recomputed b")) < 1e-6
    if name in TERMS:
        numbers = shown.texts("[data-stage=score] .rule-numbers")[0]
        assert TERMS[name] in numbers
        assert "scores from their terms" in shown.texts("#recomputed")[0]
        position = int(shown.page.get_attribute("[data-grid=scores] .chosen [data-r]", "data-r") or 0)
        score = trace.array(trace.site().scores or "")[step, 0, position]
        assert shown.numbers("[data-stage=score] .rule-numbers mn")[-1] == pytest.approx(score, abs=1e-6)
    if "output/log_sum" in trace.tensors:
        logits = [candidate.logp + trace.array("output/log_sum")[step] for candidate in trace.steps[step].top]
        assert shown.numbers("[data-grid=words] .logit")[: len(logits)] == pytest.approx(logits, abs=1e-5)
    if "output/log_sum" in trace.tensors and trace.sites:
        assert shown.texts("[data-stage=combine] .rule-numbers .formula")[0].startswith(("x", "u"))
        assert "bias" in shown.texts("[data-stage=word] .rule-numbers")[0]
    shown_formulas = shown.texts(".rule .formula")
    assert all(any(formula in text for text in shown_formulas) for formula in formulas), shown_formulas
    overflowing = shown.page.evaluate(
        "() => [...document.querySelectorAll('.lane .formula')].filter(one =>"
        " one.getBoundingClientRect().right > one.closest('.lane').getBoundingClientRect().right - 8)"
        ".map(one => one.textContent)"
    )
    assert overflowing == []
    assert shown.errors == []
