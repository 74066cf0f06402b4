"""Traces of classifiers."""

from __future__ import annotations

from heedful.data.batch import pad
from heedful.errors import DataError, TraceError
from heedful.tasks.base import TraceRequest
from heedful.tasks.classify.assets import LoadedClassifier
from heedful.tasks.generation_trace import apply_source_edits, gold_by_token, make_side
from heedful.tasks.limits import inference_limits, limit_lines
from heedful.trace.capture_classifier import capture_classifier
from heedful.trace.check import check
from heedful.trace.counterfactuals import classifier_counterfactuals
from heedful.trace.edits import build_edit_hook, validate_edits
from heedful.trace.schema import Side, Token, Trace


def trace_text(loaded: LoadedClassifier, request: TraceRequest) -> Trace:
    """Classify a text (or force the given label), and record how."""
    if any(edit.op == "prefix" for edit in request.edits):
        raise TraceError("prefix: a label is not generated word by word; --target forces a label")
    assets, model = loaded.assets, loaded.model
    max_tokens = inference_limits([loaded.recipe]).max_source
    (line,) = limit_lines([apply_source_edits(request)], assets.source, max_tokens)
    if not line.strip():
        raise DataError("there is nothing to trace in an empty text")
    ids = assets.source.encode(line)
    forced = None if request.target is None else assets.labels.index(request.target)
    gold = gold_by_token(request.gold, assets.source.word_ids(ids), [0])
    edit = build_edit_hook(request.edits, model.alignment_site, gold, request.seed)
    names = assets.labels.names
    label, captured = capture_classifier(model, pad([ids]), names, request.detail, edit, forced)
    trace = Trace.build(
        parent=request.parent.id if request.parent is not None else None,
        detail=request.detail,
        model=loaded.describe(),
        decoding={"method": "greedy" if forced is None else "forced"},
        source=make_side(ids, assets.source, line),
        target=Side(
            text=names[label],
            tokens=[Token(text=names[label], word=0, id=label)],
            words=[names[label]],
            reference=request.reference,
        ),
        gold=request.gold,
        steps=captured.steps,
        sites=captured.sites,
        alignment_site=model.alignment_site,
        shift=0,
        tensors=captured.tensors,
        intermediates=captured.intermediates,
        edits=list(request.edits),
    ).with_id()
    validate_edits(trace)
    wanted = request.wants_counterfactuals(trace.source, trace.target)
    counterfactuals = classifier_counterfactuals(model, pad([ids]), names, request.stop) if wanted else []
    return trace.model_copy(update={"checks": check(trace), "counterfactuals": counterfactuals})
