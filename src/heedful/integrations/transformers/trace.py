"""Traces of transformers models: an output is found by the model's own `generate`, then computed once more with hooks.

The numbers are those of the model in its own precision, and ids are those of its own vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from heedful.attention import Edit as EditHook
from heedful.attention import Hooks
from heedful.config import DecodingOptions
from heedful.data.batch import TextBatch, pad
from heedful.data.tokenizer import START
from heedful.errors import DataError, TraceError
from heedful.integrations.transformers.decoder import DecoderAdapter
from heedful.integrations.transformers.encoder import EncoderAdapter
from heedful.integrations.transformers.generation import generate
from heedful.integrations.transformers.inputs import Source, read_source
from heedful.integrations.transformers.loaded import LoadedTransformers
from heedful.integrations.transformers.records import SiteLayout
from heedful.integrations.transformers.seq2seq import Seq2SeqAdapter, first_outputs
from heedful.integrations.transformers.trace_parts import (
    Run,
    build_trace,
    edit_hook,
    predicted_steps,
    recording_hooks,
    refuse_prefix_edits,
)
from heedful.integrations.transformers.what_if import classifier_what_if, decoder_what_if, seq2seq_what_if
from heedful.tasks.base import TraceRequest
from heedful.tasks.generation_trace import apply_source_edits, gold_by_token
from heedful.trace.edits import build_edit_hook
from heedful.trace.schema import Edit, Gold, Side, Step, Token, Trace
from heedful.trace.steps import record_step


def trace_input(loaded: LoadedTransformers, item: Any, request: TraceRequest, options: DecodingOptions) -> Trace:
    """Record every step of a model on one input."""
    if isinstance(item, str) and loaded.family.modality == "text":
        item = apply_source_edits(replace(request, input=item))
    elif any(edit.op == "source" for edit in request.edits):
        raise TraceError("source: only texts have words to replace; use onehot, zero or uniform")
    source = read_source(loaded, item)
    if isinstance(loaded.model, Seq2SeqAdapter):
        return _trace_seq2seq(loaded, loaded.model, source, request, options)
    if isinstance(loaded.model, DecoderAdapter):
        return _trace_decoder(loaded, loaded.model, source, request, options)
    return _trace_encoder(loaded, loaded.model, source, request)


@torch.no_grad()
def _trace_seq2seq(
    loaded: LoadedTransformers,
    model: Seq2SeqAdapter,
    source: Source,
    request: TraceRequest,
    options: DecodingOptions,
) -> Trace:
    gold = _gold_by_token(loaded, request, source)
    edit = edit_hook(request, model, source, gold)
    start = int(model.ids.table[START])
    if request.target is not None:
        tokens, forced, settings = target_ids(loaded, model, request.target), None, {"method": "forced"}
    else:
        prefix = _prefix(request, loaded, model)
        hooks = Hooks(edit=edit)
        generated = generate(model, source.tensors, options, hooks=hooks, prefix=prefix, start=start, stop=request.stop)
        tokens, forced, settings = generated.ids[0], len(prefix), dict(generated.settings)
    if not tokens:
        raise TraceError(f"{loaded.name} generates nothing for this input")
    batch = source.batch(model)
    batch = TextBatch(batch.source, pad([[START, *model.ids.to_ours(tokens)]]))
    with model.record(recording_hooks(request, edit)) as outputs:
        hidden, mask = model.encode(batch)
        logits = model.decode(hidden, mask, torch.tensor([[start, *tokens[:-1]]])).logits[0]
    n_forced = len(tokens) if forced is None else forced
    layouts = [
        SiteLayout(
            site.site,
            ("source", "source")
            if site.stack == "enc"
            else ("target", "source" if site.site.kind == "cross" else "target"),
            causal=site.stack == "dec" and site.site.kind == "self",
            shown=source.shown if site.stack == "enc" or site.site.kind == "cross" else None,
        )
        for site in model.model_sites
    ]
    target = loaded.text.output_side(tokens, request.reference)
    steps = predicted_steps(logits, tokens, [start, *tokens[:-1]], loaded, n_forced)
    attentions = first_outputs(outputs)
    trace = build_trace(loaded, request, Run(source.side, target, steps, layouts, attentions, settings, shift=1))
    if request.wants_counterfactuals(trace.source, trace.target):
        found = seq2seq_what_if(loaded, model, source, batch, tokens, request.stop)
        trace = trace.model_copy(update={"counterfactuals": found})
    return trace


@torch.no_grad()
def _trace_encoder(loaded: LoadedTransformers, model: EncoderAdapter, source: Source, request: TraceRequest) -> Trace:
    refuse_prefix_edits(request, "a model without a decoder")
    head = loaded.family.head
    if request.target is not None and head != "classify":
        raise TraceError("--target: only a classifier has labels that can be forced")
    positions = read_positions(loaded, model, source)
    gold = gold_by_token(request.gold, [token.word for token in source.side.tokens], [0])
    edit = edit_hook(request, model, source, gold)
    result = model.run(source.tensors, recording_hooks(request, edit), positions)
    if result.logits is None:
        target, steps = _no_output(loaded, source, positions)
    else:
        names = loaded.labels if head in ("classify", "tag") else None
        logits = result.logits[0].float()
        chosen = logits.argmax(dim=-1).tolist()
        if request.target is not None:
            chosen = [loaded.label_index(request.target)]
        texts = [names[i] if names is not None else loaded.text.piece(i) for i in chosen]
        target = _label_side(texts, chosen, request.reference)
        steps = [
            record_step(logits[t].log_softmax(-1), i, _token_text(loaded, names), forced=request.target is not None)
            for t, i in enumerate(chosen)
        ]
    shown = source.shown
    layouts = [SiteLayout(site.site, ("source", "source"), shown=shown) for site in model.model_sites]
    if positions is not None:
        layouts.append(SiteLayout(model.sites[-1], ("target", "source"), shown=shown))
    method = {"method": "greedy" if request.target is None else "forced"}
    trace = build_trace(loaded, request, Run(source.side, target, steps, layouts, result.attentions, method))
    wanted = result.logits is not None and positions is not None and head == "classify"
    if wanted and request.wants_counterfactuals(trace.source, trace.target):
        found = classifier_what_if(loaded, model, source, request.stop)
        trace = trace.model_copy(update={"counterfactuals": found})
    return trace


@torch.no_grad()
def _trace_decoder(
    loaded: LoadedTransformers,
    model: DecoderAdapter,
    source: Source,
    request: TraceRequest,
    options: DecodingOptions,
) -> Trace:
    refuse_prefix_edits(request, "a model without an encoder")
    if request.gold is not None:
        raise TraceError("--gold: a model without an encoder has no input to link its output to")
    ids, settings = list(source.ids), {"method": "forced"}
    n_prompt = len(ids)
    if request.target is not None:
        ids += loaded.text.encode(request.target)
        n_prompt = len(ids)
    else:
        parent = _parent_ids(request)
        if parent:
            ids = parent
        else:
            generated = generate(model, source.tensors, options, stop=request.stop)
            ids, settings = ids + generated.ids[0], dict(generated.settings)
    if len(ids) < 2:
        raise DataError("a trace needs at least two tokens; give a longer text")
    hook = _causal_edit(request, model, source)
    result = model.run(torch.tensor([ids[:-1]]), recording_hooks(request, hook))
    layouts = [SiteLayout(site.site, ("source", "source"), causal=True) for site in model.model_sites]
    text = loaded.text
    sides = text.output_side(ids[:-1]), text.output_side(ids[1:], request.reference)
    steps = predicted_steps(result.logits[0], ids[1:], ids[:-1], loaded, n_prompt - 1)
    trace = build_trace(loaded, request, Run(*sides, steps, layouts, result.attentions, settings))
    if request.wants_counterfactuals(trace.source, trace.target):
        found = decoder_what_if(loaded, model, ids, request.stop)
        trace = trace.model_copy(update={"counterfactuals": found})
    return trace


def _parent_ids(request: TraceRequest) -> list[int]:
    """Return the text of the trace without the edits: the edited run reads the same text."""
    if request.parent is None or any(edit.op == "source" for edit in request.edits):
        return []
    parent = [*request.parent.source.tokens[:1], *request.parent.target.tokens]
    return [token.id for token in parent if token.id is not None]


def target_ids(loaded: LoadedTransformers, model: Seq2SeqAdapter, text: str) -> list[int]:
    """Return a given output as the model would generate it: without the start token, with the end token."""
    ids = loaded.text.encode_target(text)
    start, end = int(model.ids.table[START]), int(model.ids.table[3])
    if len(ids) > 1 and ids[0] == start:
        ids = ids[1:]
    return ids if end < 0 or (ids and end in ids[-2:]) else [*ids, end]


def read_positions(loaded: LoadedTransformers, model: EncoderAdapter, source: Source) -> Tensor | None:
    """Return the positions of the last layer that the head reads; None if it reads all of them."""
    head, ids = loaded.family.head, list(source.ids)
    if head == "classify":
        model.find_read_position(source.tensors)
        return None if model.reads_position is None else torch.tensor([model.reads_position])
    if head == "none":
        return torch.tensor([0])
    if head == "fill-mask":
        mask = loaded.text.inner.mask_token_id
        found = [position for position, i in enumerate(ids) if i == mask]
        if not found:
            raise DataError(f"{loaded.name} fills in {loaded.text.inner.mask_token}; the text has none")
        return torch.tensor(found)
    words = [position for position, token in enumerate(source.side.tokens) if token.role == "normal"]
    return torch.tensor(words or [0])


def _no_output(loaded: LoadedTransformers, source: Source, positions: Tensor | None) -> tuple[Side, list[Step]]:
    """Return the target of a model without a head: the position whose vector stands for the text."""
    position = 0 if positions is None else int(positions[0])
    text = loaded.text.piece(source.ids[position]) if source.ids else "[CLS]"
    return Side(text=text, tokens=[Token(text=text, word=0)], words=[text]), [Step(logp=0.0)]


def _label_side(texts: Sequence[str], ids: Sequence[int], reference: str | None) -> Side:
    tokens = [Token(text=text, word=index, id=i) for index, (text, i) in enumerate(zip(texts, ids, strict=True))]
    return Side(text=" ".join(texts), tokens=tokens, words=list(texts), reference=reference)


def _token_text(loaded: LoadedTransformers, names: Sequence[str] | None = None) -> Any:
    return loaded.text.piece if names is None else names.__getitem__


def _causal_edit(request: TraceRequest, model: DecoderAdapter, source: Source) -> EditHook | None:
    """Return the hook of the edits; one for every step applies from its position on."""
    edits: list[Edit] = []
    for edit in request.edits:
        if edit.step is None and edit.position:
            n_queries = len(request.parent.source.tokens) if request.parent else len(source.ids)
            edits += [edit.model_copy(update={"step": step}) for step in range(edit.position, n_queries)]
        else:
            edits.append(edit)
    return build_edit_hook(edits, model.alignment_site, seed=request.seed)


def _prefix(request: TraceRequest, loaded: LoadedTransformers, model: Seq2SeqAdapter) -> list[int]:
    """Return the tokens to force: those of a prefix edit, or those before the first edited step of the parent."""
    texts = [edit.text for edit in request.edits if edit.op == "prefix" and edit.text]
    if texts:
        ids = target_ids(loaded, model, texts[-1])
        return ids[:-1] if ids[-1] == int(model.ids.table[3]) else ids
    decoder = [e for e in request.edits if not (e.site or "").startswith("enc.")]
    steps = [edit.step for edit in request.edits if edit.step is not None and edit.op != "source"]
    if request.parent is None or not steps or len(decoder) < len(request.edits):
        return []
    ids_before = [token.id for token in request.parent.target.tokens[: min(steps)]]
    return [i for i in ids_before if i is not None]


def _gold_by_token(loaded: LoadedTransformers, request: TraceRequest, source: Source) -> Gold | None:
    target = request.target if request.target is not None else request.reference
    if request.gold is None or target is None or not isinstance(loaded.model, Seq2SeqAdapter):
        return request.gold
    words = loaded.text.word_ids(target_ids(loaded, loaded.model, target))
    return gold_by_token(request.gold, [token.word for token in source.side.tokens], words)
