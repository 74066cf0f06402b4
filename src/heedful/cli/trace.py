"""`heedful trace`."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from heedful.cli.lines import check_utf8
from heedful.cli.options import Model, parse_decoding, with_decoding
from heedful.errors import DataError, TraceError, nearest

if TYPE_CHECKING:
    from heedful.trace.schema import Trace

N_ALTERNATIVES = 3  # likely tokens per step in the comparison


@with_decoding(without=("n_best", "batch_size"))
def trace(
    text: Annotated[
        str, typer.Argument(metavar="INPUT", help="A sentence, an image file, or user:ID.", show_default=False)
    ],
    *,
    model: Model = None,
    target: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Force this output instead of searching for one.")
    ] = None,
    reference: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Reference output, shown for comparison.")
    ] = None,
    gold: Annotated[
        str | None, typer.Option(metavar="LINKS", help='Gold word alignment, counted from 0: "0-0 1-2".')
    ] = None,
    edit: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="EDIT",
            help="Edit the attention weights or the source, e.g. onehot:step=3,position=0, uniform or"
            " source:position=2,text=dog; may be repeated.",
        ),
    ] = None,
    detail: Annotated[
        str,
        typer.Option(
            metavar="DETAIL",
            help="What to record: weights; steps: also scores, queries and values of the alignment site; full: of"
            " every site.",
        ),
    ] = "steps",
    replay: Annotated[
        bool, typer.Option(help="Recompute all numbers from the parameters in plain Python; store the differences.")
    ] = False,
    what_if: Annotated[
        bool | None,
        typer.Option(
            "--what-if/--no-what-if",
            help="Also compute each step with all or no weight on each source position (default: for short inputs).",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="FILE", help="Trace file to write (JSON).", show_default=False)
    ],
    **decoding: Any,
) -> None:
    """Record every step of a model on one input. With --set, also prints how the edit changes the output."""
    options, max_seconds = parse_decoding(decoding), decoding["max_seconds"]
    from heedful.decoding import StopCondition
    from heedful.tasks.base import TraceRequest
    from heedful.tasks.open_model import is_from_elsewhere, open_model
    from heedful.tasks.registry import task_of
    from heedful.tasks.replay import replay_trace
    from heedful.trace.edits import parse_edit
    from heedful.trace.schema import TraceDetail, parse_links

    levels: tuple[TraceDetail, ...] = get_args(TraceDetail)
    if detail not in levels:
        raise TraceError(f'--detail "{detail}": no such level of detail; {nearest(detail, levels)}')
    edits = [parse_edit(edit_text) for edit_text in edit or ()]
    if not text.strip():
        raise DataError("the sentence is empty")
    check_utf8(text)
    loaded = open_model(model, _guess_task(text) if model is None else "")
    task = task_of(loaded)
    if is_from_elsewhere(model):
        if replay:
            raise TraceError(f"--replay: {loaded.name} is no model of ours; its checks need the trace alone")
    else:
        options = loaded.recipe.decoding.model_copy(update={"n_best": 1}).override(options)
    links = None if gold is None else parse_links(gold).gold()
    level = levels[levels.index(detail)]
    request = TraceRequest(
        text, level, target, reference, links, with_counterfactuals=what_if, stop=StopCondition(max_seconds)
    )
    recorded = task.trace(loaded, request, options)
    _check_gold(recorded, strict=target is not None)
    summary = recorded.target.text
    if edits:
        original = recorded
        recorded = task.trace(loaded, replace(request, edits=edits, parent=original), options)
        summary = compare_traces(original, recorded)
    if replay:
        recorded = replay_trace(recorded, loaded.path)
        summary += f"\n{_replay_sentence(recorded)}"
    recorded.save(out)
    print(summary)


def _guess_task(text: str) -> str:
    """Return the task whose bundled model is used when none is named."""
    from heedful.data.images.files import IMAGE_SUFFIXES

    if text.startswith("user:"):
        return "recommend"
    path = Path(text)
    is_image = path.suffix.lower() in IMAGE_SUFFIXES and (" " not in text or path.is_file())
    return "caption" if is_image else "translate"


def _check_gold(recorded: Trace, strict: bool) -> None:
    """Refuse gold links of words that do not exist; only warn if the output is the model's own and shorter."""
    if recorded.gold is None:
        return
    links = {*recorded.gold.sure, *recorded.gold.possible}
    image = recorded.source.image is not None
    source_name, source_parts = ("the image", "regions") if image else ("the source", "words")
    for side_index, side, name, parts in (
        (0, recorded.source, source_name, source_parts),
        (1, recorded.target, "the output", "words"),
    ):
        count = len(side.tokens) if image and side_index == 0 else len(side.words)
        beyond = sorted(link for link in links if link[side_index] >= count)
        if not beyond:
            continue
        size = f"{count:,} {parts}, numbered 0 to {count - 1:,}" if count else f"no {parts}"
        message = f'--gold "{beyond[0][0]}-{beyond[0][1]}": {name} has {size}'
        if side_index == 0 or strict:
            raise TraceError(message)
        print(f"warning: {message} ({side.text}); such links are not drawn", file=sys.stderr)


def compare_traces(before: Trace, after: Trace) -> str:
    """Return a table of the likely tokens of each step, before and after; steps that differ are marked."""
    rows = [("step", "before", "after")]
    for t in range(max(len(before.steps), len(after.steps))):
        old, new = (_likely_tokens(side, t) for side in (before, after))
        mark = "*" if old.split(" ")[0] != new.split(" ")[0] else " "
        rows.append((f"{mark} {t}", old, new))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([*lines, f"before: {before.target.text}", f"after:  {after.target.text}"])


def _likely_tokens(recorded: Trace, t: int) -> str:
    if t >= len(recorded.steps):
        return "–"
    token, step = recorded.target.tokens[t], recorded.steps[t]
    alternatives = [top for top in step.top[:N_ALTERNATIVES] if top.id != token.id]
    listed = " ".join(f"{top.text} {math.exp(top.logp):.2f}" for top in alternatives)
    return f"{token.text} {math.exp(step.logp):.2f}" + (f" ({listed})" if listed else "")


def _replay_sentence(recorded: Trace) -> str:
    checks = recorded.checks
    assert checks is not None
    differences = {
        "scores": checks.scores,
        "softmax": checks.weights,
        "context": checks.context,
        "read-out": checks.features,
        "output": checks.output,
    }
    listed = ", ".join(f"{name} {value:.1e}" for name, value in differences.items() if value is not None)
    return f"recomputed in plain loops; largest differences: {listed}"
