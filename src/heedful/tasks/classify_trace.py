"""From a text to the trace of how it was judged, with or without changes on the way."""

from __future__ import annotations

from heedful.data.batch import pad
from heedful.errors import DataError, TraceError
from heedful.record import Side, Token, Trace
from heedful.tasks.classify import Labeller
from heedful.tasks.folder import RECIPE
from heedful.tasks.tracing import Wanted, edited_line, gold_by_token, side_of
from heedful.tasks.use import limits_of, no_longer
from heedful.trace import check
from heedful.trace.judgement import capture_label, label_lattice
from heedful.trace.whatif import change_of, refuse_idle


def trace_text(opened: Labeller, wanted: Wanted) -> Trace:
    """Judge a text (or take the label given), and record how."""
    if any(edit.op == "prefix" for edit in wanted.edits):
        raise TraceError("prefix: a label is not written word by word; --target takes one as given")
    words, model = opened.words, opened.model
    (line,) = no_longer([edited_line(wanted)], words.source, limits_of([opened.recipe]), opened.path / RECIPE)
    if not line.strip():
        raise DataError("nothing of the text is left to trace")
    ids = words.source.encode(line)
    forced = None if wanted.target is None else words.labels.number(wanted.target)
    gold = gold_by_token(wanted.gold, words.source.words(ids), [0])
    change = change_of(wanted.edits, model.alignment, gold, wanted.seed)
    chosen, captured = capture_label(model, pad([ids]), words.labels.names, wanted.detail, change, forced)
    name = words.labels.names[chosen]
    made = Trace(
        parent=wanted.parent.id if wanted.parent is not None else None,
        detail=wanted.detail,
        model=opened.described(),
        decode={"method": "greedy" if forced is None else "forced"},
        source=side_of(ids, words.source, line),
        target=Side(
            text=name,
            tokens=[Token(text=name, word=0, id=chosen)],
            words=[name],
            reference=wanted.reference,
        ),
        gold=wanted.gold,
        steps=captured.steps,
        sites=captured.sites,
        alignment=model.alignment,
        shift=0,
        tensors=captured.tensors,
        combine=captured.combine,
        edits=list(wanted.edits),
    ).signed()
    refuse_idle(made)
    found = label_lattice(model, pad([ids]), words.labels.names) if wanted.lattice else []
    return made.model_copy(update={"checks": check(made), "whatif": found})
