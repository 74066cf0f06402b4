"""What traces of all kinds of transformers models have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from heedful.attention import AttentionOutput, Detail, Hooks
from heedful.attention import Edit as EditHook
from heedful.errors import TraceError
from heedful.integrations.transformers.encoder import EncoderAdapter
from heedful.integrations.transformers.inputs import Source
from heedful.integrations.transformers.loaded import LoadedTransformers
from heedful.integrations.transformers.records import SiteLayout, pack_sites
from heedful.integrations.transformers.seq2seq import Seq2SeqAdapter
from heedful.tasks.base import TraceRequest
from heedful.trace.check import check
from heedful.trace.edits import build_edit_hook, validate_edits
from heedful.trace.schema import Edit, Gold, PackedTensor, Side, Step, Trace
from heedful.trace.steps import record_step


class Run(NamedTuple):
    """What a model computed for one input."""

    source: Side
    target: Side
    steps: Sequence[Step]
    layouts: Sequence[SiteLayout]
    attentions: Mapping[str, AttentionOutput]
    decoding: Mapping[str, Any]
    shift: int = 0


def build_trace(loaded: LoadedTransformers, request: TraceRequest, run: Run) -> Trace:
    """Return the trace of a run, with its checks."""
    tensors: dict[str, PackedTensor] = {}
    known = {layout.site.id for layout in run.layouts}
    alignment = loaded.model.alignment_site if loaded.model.alignment_site in known else None
    trace = Trace.build(
        parent=request.parent.id if request.parent is not None else None,
        detail=request.detail,
        model=loaded.describe(),
        decoding=dict(run.decoding),
        source=run.source,
        target=run.target,
        gold=request.gold,
        steps=list(run.steps),
        sites=pack_sites(run.layouts, run.attentions, request.detail, alignment, tensors),
        alignment_site=alignment,
        shift=run.shift,
        tensors=tensors,
        edits=list(request.edits),
    ).with_id()
    validate_edits(trace)
    return trace.model_copy(update={"checks": check(trace)})


def predicted_steps(
    logits: Tensor, tokens: Sequence[int], inputs: Sequence[int], loaded: LoadedTransformers, n_forced: int
) -> list[Step]:
    """Return the steps of an output; the first `n_forced` tokens were not chosen by the model."""
    logp = logits.float().log_softmax(dim=-1)
    return [
        record_step(logp[t], token, loaded.text.piece, input=inputs[t], forced=t < n_forced)
        for t, token in enumerate(tokens)
    ]


def recording_hooks(request: TraceRequest, edit: EditHook | None) -> Hooks:
    """Return hooks that record what a trace of this detail contains."""
    return Hooks(Detail.WEIGHTS if request.detail == "weights" else Detail.FULL, edit=edit)


def edit_hook(
    request: TraceRequest, model: Seq2SeqAdapter | EncoderAdapter, source: Source, gold: Gold | None
) -> EditHook | None:
    """Return the hook of the edits, whose positions count what the trace shows."""
    first = 0 if source.shown is None else source.shown.start
    edits = [shift_edit(edit, first, model) for edit in request.edits]
    return build_edit_hook(edits, model.alignment_site, gold, request.seed)


def shift_edit(edit: Edit, first: int, model: Seq2SeqAdapter | EncoderAdapter) -> Edit:
    """Return an edit whose positions count all of the encoder's, from one that counts those from `first` on."""
    site = edit.site or model.alignment_site or ""
    if not first or (site.startswith("dec.") and site.endswith(".self")):
        return edit
    moved: dict[str, int] = {} if edit.position is None else {"position": edit.position + first}
    if site.startswith("enc.") and edit.step is not None:
        moved["step"] = edit.step + first
    return edit.model_copy(update=moved)


def refuse_prefix_edits(request: TraceRequest, what: str) -> None:
    """Raise TraceError for edits of the first words of an output that is not generated word by word."""
    for edit in request.edits:
        if edit.op == "prefix":
            raise TraceError(f"prefix: {what} has no output whose first words could be forced")
