"""Traces of sequence-to-sequence models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from heedful.config import DecodingOptions
from heedful.data.batch import pad
from heedful.errors import DataError
from heedful.tasks.base import TraceRequest
from heedful.tasks.generation_trace import EncodedSource, apply_source_edits, gold_by_token, make_side, trace_source
from heedful.tasks.limits import inference_limits, limit_lines
from heedful.tasks.seq2seq.assets import LoadedSeq2Seq
from heedful.tasks.seq2seq.predict import line_as_read
from heedful.trace.schema import Gold, Trace


def trace_line(loaded: LoadedSeq2Seq, request: TraceRequest, decoding: DecodingOptions) -> Trace:
    """Generate an output for a line (or force the given one), and record every step."""
    max_tokens = inference_limits([loaded.recipe]).max_source
    (text,) = limit_lines([line_as_read(request.input, decoding)], loaded.assets.source, max_tokens)
    line = apply_source_edits(replace(request, input=text))
    if not line.strip():
        raise DataError("there is nothing to trace in an empty sentence")
    ids = loaded.assets.source.encode(line)
    source = EncodedSource(pad([ids]), make_side(ids, loaded.assets.source, line))
    return trace_source(loaded, source, request, decoding, _gold_by_token(request, loaded, ids))


def _gold_by_token(request: TraceRequest, loaded: LoadedSeq2Seq, source: Sequence[int]) -> Gold | None:
    """Return the gold links between tokens: those of words, for every pair of their subwords."""
    target = request.target if request.target is not None else request.reference
    if request.gold is None or target is None:
        return request.gold
    target_words = loaded.assets.target.word_ids(loaded.assets.target.encode(target))
    return gold_by_token(request.gold, loaded.assets.source.word_ids(source), target_words)
