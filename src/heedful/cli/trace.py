"""`heedful trace` on the terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

from heedful.errors import DataError, TraceError, nearest
from heedful.record import Trace
from heedful.record.links import parse_links
from heedful.record.trace import Level
from heedful.tasks.bundled import find
from heedful.tasks.folder import open_model
from heedful.tasks.kind import kind_of
from heedful.tasks.tracing import Wanted, replayed
from heedful.trace import edit_of
from heedful.vision.pictures import KINDS


class Asked(NamedTuple):
    text: str
    target: str | None
    reference: str | None
    gold: str | None
    changes: tuple[str, ...]
    detail: str
    replay: bool
    lattice: bool


def run(asked: Asked, model: Path | None, how: Mapping[str, Any], out: Path) -> None:
    levels: tuple[Level, ...] = get_args(Level)
    if asked.detail not in levels:
        raise TraceError(f'--detail "{asked.detail}": no such detail; {nearest(asked.detail, levels)}')
    level = levels[levels.index(asked.detail)]
    edits = [edit_of(text) for text in asked.changes]
    _check_text(asked.text)
    (folder,) = find([], _task_of(asked.text)) if model is None else find([model], "")
    opened = open_model(folder)
    kind = kind_of(opened.recipe.task.kind)
    decoding = opened.recipe.decoding.model_copy(update={"n_best": 1, **how})
    gold = None if asked.gold is None else parse_links(asked.gold).gold()
    wanted = Wanted(asked.text, level, asked.target, asked.reference, gold, lattice=asked.lattice)
    made = kind.trace(opened, wanted, decoding)
    _check_gold(made, asked)
    said = made.target.text
    if edits:
        parent = made
        made = kind.trace(opened, replace(wanted, edits=edits, parent=parent), decoding)
        said = side_by_side(parent, made)
    if asked.replay:
        made = replayed(made, folder)
        said += f"\n{_said(made)}"
    made.save(out)
    print(said)


def _task_of(text: str) -> str:
    """Whose bundled model is meant where none is named."""
    if text.startswith("user:"):
        raise DataError(f"{text}: no recommender comes with heedful: give a folder with -m")
    path = Path(text)
    picture = path.suffix.lower() in KINDS and (" " not in text or path.is_file())
    return "caption" if picture else "translate"


def _check_text(text: str) -> None:
    if not text.strip():
        raise DataError("there is nothing to trace in an empty sentence")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:  # what a shell gave us, bytes that are no text
        raise DataError(f"the sentence is not UTF-8 (character {error.start + 1})") from None


def _check_gold(made: Trace, asked: Asked) -> None:
    """Links join words that are there; what the model wrote itself may be shorter than was thought."""
    if made.gold is None:
        return
    links = {*made.gold.sure, *made.gold.possible}
    picture = made.source.image is not None
    read = ("the picture", "regions") if picture else ("the text", "words")
    for at, side, (name, parts) in ((0, made.source, read), (1, made.target, ("the output", "words"))):
        count = len(side.tokens) if picture and at == 0 else len(side.words)
        beyond = sorted(link for link in links if link[at] >= count)
        if not beyond:
            continue
        there = (
            f"the last of its {count:,} {parts} is number {count - 1:,}" if count else f"it has no {parts}"
        )
        told = f'--gold "{beyond[0][0]}-{beyond[0][1]}": {name} does not reach so far, {there}'
        if at == 0 or asked.target is not None:
            raise TraceError(told)
        print(f"{told} ({side.text}): such links are not drawn", file=sys.stderr)


def side_by_side(before: Trace, after: Trace) -> str:
    """The likeliest words of each step, before and after; steps that differ are marked."""
    rows = [("step", "before", "after")]
    for t in range(max(len(before.steps), len(after.steps))):
        old, new = (_likeliest(trace, t) for trace in (before, after))
        mark = "*" if old.split(" ")[0] != new.split(" ")[0] else " "
        rows.append((f"{mark} {t}", old, new))
    wide = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, wide, strict=True)).rstrip() for row in rows]
    return "\n".join([*lines, f"before: {before.target.text}", f"after:  {after.target.text}"])


def _likeliest(trace: Trace, t: int) -> str:
    if t >= len(trace.steps):
        return "–"
    token, step = trace.target.tokens[t], trace.steps[t]
    others = " ".join(f"{top.text} {math.exp(top.logp):.2f}" for top in step.top[:3] if top.id != token.id)
    return f"{token.text} {math.exp(step.logp):.2f}" + (f" ({others})" if others else "")


def _said(trace: Trace) -> str:
    assert trace.checks is not None
    parts = {
        "scores": trace.checks.score,
        "softmax": trace.checks.softmax,
        "context": trace.checks.context,
        "read-out": trace.checks.said,
        "output": trace.checks.output,
    }
    told = ", ".join(f"{name} {value:.1e}" for name, value in parts.items() if value is not None)
    return f"computed again in plain loops, largest differences: {told}"
