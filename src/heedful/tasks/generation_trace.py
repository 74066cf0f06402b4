"""Traces of models that generate text, by any decoding method, with or without edits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from heedful.attention import Detail, Hooks
from heedful.config import DecodingOptions
from heedful.data.batch import Padded, Regions, TextBatch, pad
from heedful.data.tokenizer import END, PAD, START, UNK, Tokenizer
from heedful.decoding import StopCondition, search
from heedful.errors import TooLargeError, TraceError
from heedful.models import Seq2Seq
from heedful.tasks.base import LoadedModel, TraceRequest
from heedful.tasks.limits import CHARACTERS_PER_TOKEN, inference_limits
from heedful.trace.beam_tree import build_beam_tree
from heedful.trace.capture import CaptureOutput, CaptureRequest, capture
from heedful.trace.check import check
from heedful.trace.counterfactuals import seq2seq_counterfactuals
from heedful.trace.edits import build_edit_hook, validate_edits
from heedful.trace.schema import NO_WORD, BeamTree, Gold, PackedTensor, Role, Side, Token, Trace

ROLES: dict[int, Role] = {END: "end", UNK: "unknown", START: "start"}


class EncodedSource(NamedTuple):
    """The source as model input, and as it is shown in a trace."""

    source: Padded | Regions
    side: Side


class _Output(NamedTuple):
    """The tokens to trace, how many of them are forced, and the beam they were found in."""

    tokens: tuple[int, ...]
    n_forced: int
    method: str
    beam: BeamTree | None = None
    tensors: Mapping[str, PackedTensor] = MappingProxyType({})


def trace_source(
    loaded: LoadedModel[Any, Seq2Seq],
    encoded: EncodedSource,
    request: TraceRequest,
    decoding: DecodingOptions,
    gold: Gold | None = None,
) -> Trace:
    """Search an output for a source (or force the given one), and record every step.

    `gold` has links between tokens, for edits that use them.
    """
    model, target = loaded.model, loaded.assets.target
    edit = build_edit_hook(request.edits, model.alignment_site, gold, request.seed)
    if request.target is not None:
        tokens = tuple(_encode_output(request.target, loaded, "--target"))
        output = _Output(tokens, len(tokens), "forced")
    else:
        site = model.alignment_site
        hooks = Hooks(Detail.WEIGHTS, frozenset({site} if site else ()), edit)
        output = _search_output(model, target, encoded, _prefix(request, loaded), decoding, hooks, request.stop)
    capture_request = CaptureRequest(
        encoded.source, output.tokens, request.detail, edit, output.n_forced, request.candidates
    )
    captured = capture(model, capture_request, target.token_text)
    trace = _make_trace(loaded, request, encoded.side, output.tokens, captured)
    validate_edits(trace)
    trace = trace.model_copy(
        update={
            "decoding": decoding.model_dump() | {"method": output.method},
            "beam": output.beam,
            "tensors": {**trace.tensors, **output.tensors},
        }
    ).with_id()
    counterfactuals = (
        seq2seq_counterfactuals(model, encoded.source, output.tokens, target.token_text, request.stop)
        if request.wants_counterfactuals(trace.source, trace.target)
        else []
    )
    return trace.model_copy(update={"checks": check(trace), "counterfactuals": counterfactuals})


def _search_output(
    model: Seq2Seq,
    target: Tokenizer,
    encoded: EncodedSource,
    prefix: Sequence[int],
    decoding: DecodingOptions,
    hooks: Hooks,
    stop: StopCondition,
) -> _Output:
    result = search(model, TextBatch(encoded.source), decoding, hooks, pad([prefix]) if prefix else None, stop)
    hypotheses = [hypothesis.tokens for hypothesis in result.hypotheses[0]]
    if result.beam is None:
        return _Output(hypotheses[0], len(prefix), decoding.method)
    beam, tensors = build_beam_tree(result.beam, model.alignment_site, hypotheses, target.token_text)
    return _Output(hypotheses[0], len(prefix), decoding.method, beam, tensors)


def _make_trace(
    loaded: LoadedModel[Any, Seq2Seq],
    request: TraceRequest,
    source: Side,
    tokens: Sequence[int],
    captured: CaptureOutput,
) -> Trace:
    model = loaded.model
    return Trace.build(
        parent=request.parent.id if request.parent is not None else None,
        detail=request.detail,
        model=loaded.describe(),
        source=source,
        target=make_side(tokens, loaded.assets.target, reference=request.reference),
        gold=request.gold,
        steps=captured.steps,
        sites=captured.sites,
        alignment_site=model.alignment_site,
        shift=model.alignment_shift,
        tensors=captured.tensors,
        intermediates=captured.intermediates,
        edits=list(request.edits),
    )


def make_side(ids: Sequence[int], tokenizer: Tokenizer, line: str | None = None, reference: str | None = None) -> Side:
    """Return the tokens of a text for a trace; unknown words of a given line are shown as they were typed."""
    words = line.split() if line is not None else tokenizer.word_texts(ids)
    tokens = [
        Token(
            text=words[word] if tokenizer.kind == "word" and word != NO_WORD else text,
            word=word,
            role=ROLES.get(i, "normal"),
            id=i,
        )
        for i, text, word in zip(ids, tokenizer.tokens(ids), tokenizer.word_ids(ids), strict=True)
        if i != PAD
    ]
    text = line if line is not None else tokenizer.decode(ids)
    return Side(text=text, tokens=tokens, words=words, reference=reference)


def apply_source_edits(request: TraceRequest) -> str:
    """Return the text with words replaced or erased by the request's source edits."""
    edits = [edit for edit in request.edits if edit.op == "source"]
    words = request.input.split()
    for edit in sorted(edits, key=lambda e: -(e.position or 0)):
        assert edit.position is not None
        if not 0 <= edit.position < len(words):
            raise TraceError(f"source: there is no word {edit.position}; the sentence has 0 to {len(words) - 1}")
        words[edit.position : edit.position + 1] = [] if edit.text is None else [edit.text]
    return " ".join(words) if edits else request.input


def _encode_output(text: str, loaded: LoadedModel[Any, Seq2Seq], name: str) -> list[int]:
    """Return the ids of a given output; one that is too long, which would exhaust memory, is an error."""
    limit = inference_limits([loaded.recipe]).max_target
    ids = loaded.assets.target.encode(text) if len(text) <= CHARACTERS_PER_TOKEN * limit else []
    if not 0 < len(ids) <= limit + 1:  # one is the end token
        raise TooLargeError(f"{name}: the output has more than {limit:,} tokens; {loaded.name} takes no longer ones")
    return ids


def _prefix(request: TraceRequest, loaded: LoadedModel[Any, Seq2Seq]) -> list[int]:
    """Return the tokens to force: those of the request, of a prefix edit, or before the parent's first edited step."""
    if request.prefix:
        return _check_prefix(request.prefix, loaded.assets.target)
    texts = [edit.text for edit in request.edits if edit.op == "prefix" and edit.text]
    if texts:
        return _encode_output(texts[-1], loaded, "prefix")[:-1]
    steps = [edit.step for edit in request.edits if edit.step is not None and edit.op != "source"]
    if request.parent is None or not steps:
        return []
    ids = [token.id for token in request.parent.target.tokens[: min(steps)]]
    return [i for i in ids if i is not None]


def _check_prefix(prefix: Sequence[int], target: Tokenizer) -> list[int]:
    """Return token ids that an output may begin with; raise TraceError for others."""
    for position, token in enumerate(prefix):
        if not 0 <= token < len(target) or token in (PAD, START):
            raise TraceError(f"prefix: {token} at position {position} is not the id of an output token")
        if token == END and position < len(prefix) - 1:
            raise TraceError(f"prefix: the end token at position {position} is followed by other tokens")
    return list(prefix)


def gold_by_token(gold: Gold | None, source_words: Sequence[int], target_words: Sequence[int]) -> Gold | None:
    """Return gold links between tokens, from links between words and the word of each token."""
    if gold is None:
        return None
    links = set(gold.sure)
    pairs = [
        (s, t)
        for s, source_word in enumerate(source_words)
        for t, target_word in enumerate(target_words)
        if (source_word, target_word) in links
    ]
    return Gold(sure=pairs)
