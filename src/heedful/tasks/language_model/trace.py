"""Traces of language models.

The source holds the inputs with the start token, the target the words to predict. Queries and keys of all sites are
on the source side: a row is the word just read, a column one before it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor

from heedful.attention import AttentionOutput, Detail, Hooks, Memory, Override
from heedful.attention import Edit as EditHook
from heedful.data.text import sentence_batch
from heedful.data.tokenizer import START, Tokenizer
from heedful.errors import DataError, TraceError
from heedful.layers.lstmn import TapeState
from heedful.layers.readout import TwoLevelOutput
from heedful.models import LanguageModel
from heedful.models.language_model import CausalTransformer, LanguageModelOutput, LSTMNCore
from heedful.tasks.base import TraceRequest
from heedful.tasks.generation_trace import apply_source_edits, make_side
from heedful.tasks.language_model.assets import LoadedLanguageModel
from heedful.tasks.language_model.data import start_token
from heedful.tasks.language_model.predict import limit_to_model
from heedful.trace.check import EMPTY_SLOT, check
from heedful.trace.counterfactuals import language_model_counterfactuals
from heedful.trace.edits import build_edit_hook, validate_edits
from heedful.trace.schema import Candidate, Edit, PackedTensor, Side, Site, SiteRecord, Step, Token, Trace
from heedful.trace.steps import N_CANDIDATES, check_log_probabilities
from heedful.trace.terms import find_attention, output_terms, pack_score_terms, two_level_output_terms


def trace_text(loaded: LoadedLanguageModel, request: TraceRequest) -> Trace:
    """Record how a line, after its source edits, is read, in double precision."""
    _check_request(request)
    (line,) = limit_to_model(loaded, [apply_source_edits(request)])
    if not line.strip():
        raise DataError("there is nothing to trace in an empty sentence")
    model = copy.deepcopy(loaded.model).double()
    (ids,) = loaded.assets.encode_all([line])
    inputs = sentence_batch([ids], start_token(loaded.recipe)).inputs
    level = Detail.WEIGHTS if request.detail == "weights" else Detail.FULL
    with torch.inference_mode():
        output = model(inputs.ids, inputs.keep, hooks=Hooks(level, edit=_edit_hook(request, model)))
        trace = _make_trace(loaded, model, request, line, ids, output)
    validate_edits(trace)
    wanted = request.wants_counterfactuals(trace.source, trace.target)
    text = loaded.assets.text.token_text
    counterfactuals = language_model_counterfactuals(loaded.model, inputs.ids, text, request.stop) if wanted else []
    return trace.with_id().model_copy(update={"checks": check(trace), "counterfactuals": counterfactuals})


def _check_request(request: TraceRequest) -> None:
    if request.target is not None or request.reference is not None or request.gold is not None:
        raise TraceError("--target, --reference, --gold: a language model generates no text")
    for edit in request.edits:
        if edit.op in ("prefix", "gold"):
            raise TraceError(f"{edit.op}: a language model generates no text; use onehot, zero, uniform or source")


def _edit_hook(request: TraceRequest, model: LanguageModel) -> EditHook | None:
    """Return the hook of the edits; one for every step applies as soon as its position can be attended to."""
    build_edit_hook(request.edits, model.alignment_site)  # raises an error about any of them now
    slots = model.core.lstmn.cells[0].tape.initial_slots if isinstance(model.core, LSTMNCore) else 0
    edits = [_after_slots(edit, slots) for edit in request.edits if edit.op != "source"]
    if not edits:
        return None

    def hook(site: str, attention: AttentionOutput, positions: Tensor) -> Override | None:
        assert attention.weights is not None
        count = attention.weights.shape[-1]
        applicable = [edit for edit in edits if _is_applicable(edit, count)]
        edit_hook = build_edit_hook(applicable, model.alignment_site, seed=request.seed)
        return None if edit_hook is None or not count else edit_hook(site, attention, positions)

    return hook


def _after_slots(edit: Edit, slots: int) -> Edit:
    """Return the edit for a tape that begins with slots that are not positions of the text."""
    return edit if edit.position is None else edit.model_copy(update={"position": edit.position + slots})


def _is_applicable(edit: Edit, count: int) -> bool:
    return edit.step is not None or edit.position is None or edit.position < count


def _make_trace(
    loaded: LoadedLanguageModel,
    model: LanguageModel,
    request: TraceRequest,
    line: str,
    ids: Sequence[int],
    output: LanguageModelOutput,
) -> Trace:
    tokenizer, start = loaded.assets.text, start_token(loaded.recipe)
    tensors: dict[str, PackedTensor] = {}
    intermediates: dict[str, str] = {}
    if request.detail != "weights":
        tensors["features"] = PackedTensor.pack(output.features[0].numpy(), "T", "d")
        intermediates["features"] = "features"
        features = output.features[0]
        if isinstance(model.output, TwoLevelOutput):
            tensors |= two_level_output_terms(model.output, features, ids)
        else:
            tensors |= output_terms(model.output, features, ids, model.output(features))
    sites = [_site_record(model, site, depth, output, request, tensors) for depth, site in enumerate(model.sites)]
    return Trace.build(
        parent=request.parent.id if request.parent is not None else None,
        detail=request.detail,
        model=loaded.describe(),
        decoding={"method": "forced"},
        source=_input_side(line, ids, tokenizer, start),
        target=make_side(ids, tokenizer, line),
        steps=_make_steps(model, output, [start, *ids[:-1]], ids, tokenizer),
        sites=sites,
        alignment_site=model.alignment_site,
        shift=0,
        tensors=tensors,
        intermediates=intermediates,
        edits=list(request.edits),
    )


def _input_side(line: str, ids: Sequence[int], tokenizer: Tokenizer, start: int) -> Side:
    """Return the inputs: the token before the line, and the line without its end token."""
    side = make_side(ids[:-1], tokenizer, line)
    first = Token(text="<s>" if start == START else "</s>", role="start", id=start)
    return side.model_copy(update={"tokens": [first, *side.tokens]})


def _make_steps(
    model: LanguageModel,
    output: LanguageModelOutput,
    inputs: Sequence[int],
    targets: Sequence[int],
    tokenizer: Tokenizer,
) -> list[Step]:
    logp = model.output(output.features[0]).log_softmax(dim=-1)
    check_log_probabilities(logp, logp[range(len(targets)), list(targets)])
    entropy = torch.special.entr(logp.exp()).sum(dim=-1).tolist()
    best = logp.topk(min(N_CANDIDATES, logp.shape[-1]), dim=-1)
    steps = []
    for t, target in enumerate(targets):
        target_logp = float(logp[t, target])
        candidates = zip(best.values[t].tolist(), best.indices[t].tolist(), strict=True)
        steps.append(
            Step(
                logp=target_logp,
                input=inputs[t],
                forced=True,
                rank=int((logp[t] > target_logp).sum()),
                entropy=entropy[t],
                top=[Candidate(id=i, text=tokenizer.token_text(i), logp=value) for value, i in candidates],
            )
        )
    return steps


def _site_record(
    model: LanguageModel,
    site: Site,
    depth: int,
    output: LanguageModelOutput,
    request: TraceRequest,
    tensors: dict[str, PackedTensor],
) -> SiteRecord:
    """Return one site's record, and add its tensors to `tensors`.

    An empty slot is not a position of the text: its weight is 1 minus the sum of the row, and its score is in `extras`.
    """
    attention = output.attentions[site.id]
    assert attention.weights is not None
    slots = attention.weights.shape[-1] - attention.weights.shape[1]
    mass = "at_most_one" if slots else site.mass

    def pack(name: str, tensor: Tensor, *dims: str) -> str:
        tensors[f"{site.id}/{name}"] = PackedTensor.pack(tensor.numpy(), *dims)
        return f"{site.id}/{name}"

    names = {"weights": pack("weights", attention.weights[0, ..., slots:], "S", "H", "S")}
    extras: dict[str, str] = {}
    if request.detail == "full" or (request.detail == "steps" and site.id == model.alignment_site):
        assert attention.scores is not None
        assert attention.query is not None
        assert attention.head_contexts is not None
        names["scores"] = pack("scores", attention.scores[0, ..., slots:], "S", "H", "S")
        names["query"] = pack("query", attention.query[0], "S", "d")
        names["context"] = pack("context", attention.head_contexts[0], "S", "H", "d")
        memory = _memory(model, attention, output, depth)
        names["values"] = pack("values", memory.values[0, slots:], "S", "H", "d")
        module = find_attention(model, site.id)
        assert module is not None
        written = Memory(memory.keys[:, slots:], memory.values[:, slots:], memory.keep[:, slots:])
        tensors |= pack_score_terms(module, attention.query, written)
        if slots:
            extras[EMPTY_SLOT] = pack(EMPTY_SLOT, attention.scores[0, ..., 0], "S", "H")
    site = site._replace(mass=mass)
    return SiteRecord.from_site(site, query_side="source", key_side="source", extras=extras, **names)


def _memory(model: LanguageModel, attention: AttentionOutput, output: LanguageModelOutput, depth: int) -> Memory:
    """Return the keys and values of a site: hidden states and cells on the tape, or a layer's projections."""
    if isinstance(model.core, CausalTransformer):
        assert attention.query is not None
        keep = torch.ones(attention.query.shape[:2], dtype=torch.bool)
        return model.core.layers[depth].self_attention.prepare(attention.query, keep)
    state = output.state[depth]
    assert isinstance(state, TapeState)
    return state.tape
