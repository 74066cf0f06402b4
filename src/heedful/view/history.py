"""Bars over a history: the weight of each item for a recommended one, and what it changes to leave it out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import matplotlib
import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from heedful.errors import TraceError, nearest
from heedful.record import Trace
from heedful.view.figure import FORMATS
from heedful.view.labels import style
from heedful.whole import whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WEIGHT, EFFECT, AGAINST = "#4878a8", "#5a9367", "#b5651d"
LONGEST = 48  # letters of a title
BARS, FEW = 20, 5  # items of a history in a picture; in the terminal, for each recommended one
WITHOUT = "leave-one-out"  # of a trace's tests: names the tensor of effects


class Bar(NamedTuple):
    """An item of a history: its weight, and the score with it minus the score without it (if tried)."""

    name: str
    weight: float
    effect: float


class Bars(NamedTuple):
    """For one recommended item the strongest of a history; `left_out` more are not shown."""

    item: str
    bars: list[Bar]
    left_out: int


def bars_of(trace: Trace, site: str | None = None, head: int | None = None, count: int = BARS) -> list[Bars]:
    """For each recommended item what spoke for it or against it, by what leaving it out changes."""
    if trace.looks(site).kind != "history":
        raise TraceError(
            "history: is of what a recommender took into account; this trace is of something else"
        )
    table = trace.table(site, head, words=False)
    effects = np.full(table.weights.shape, np.nan)
    if WITHOUT in trace.tests:
        effects = trace.array(trace.tests[WITHOUT])
    made = []
    for item, weights, lost in zip(table.rows, table.weights, effects, strict=True):
        by = np.where(np.isnan(lost), 0.0, np.abs(lost)) if np.isfinite(lost).any() else np.abs(weights)
        order = [at for at in np.argsort(-by, kind="stable").tolist() if table.columns[at] != item]
        bars = [Bar(table.columns[at], float(weights[at]), float(lost[at])) for at in order[:count]]
        made.append(Bars(item, bars, len(order) - len(bars)))
    return made


def history_text(found: Sequence[Bars], width: int = 100, blocks: bool = True) -> Text:
    """For the terminal: under each recommended item the history's strongest, with weight and effect."""
    block, room = "█" if blocks else "#", max(12, width - 40)
    names = [bar.name for one in found for bar in one.bars[:FEW]]
    wide = min(room, max((cell_len(name) for name in names), default=0))
    most = max((abs(bar.weight) for one in found for bar in one.bars), default=0.0) or 1.0
    text = Text()
    for one in found:
        text.append(f"{one.item}\n", style="bold")
        for bar in one.bars[:FEW]:
            filled = block * round(16 * abs(bar.weight) / most)
            effect = "" if np.isnan(bar.effect) else f"  {bar.effect:+.3f}"
            text.append(f"  {set_cell_size(bar.name, wide)}  {bar.weight:6.3f} {filled:<16}{effect}\n")
        more = one.left_out + max(0, len(one.bars) - FEW)
        if more:
            text.append(f"  and {more:,} more of the history\n", style="dim")
    text.append(
        "weight; where it was tried, the score with the item minus the score without it\n", style="dim"
    )
    return text


def history_figure(bars: Sequence[Bar], title: str, left_out: int) -> Figure:
    """The bars, the first on top; `left_out` items had no room."""
    from matplotlib import pyplot

    names = [bar.name if len(bar.name) <= LONGEST else bar.name[: LONGEST - 1] + "…" for bar in bars]
    figure, (left, right) = pyplot.subplots(
        1, 2, sharey=True, figsize=(10.5, 1.7 + 0.3 * len(bars)), layout="constrained"
    )
    places = range(len(bars))
    left.barh(places, [bar.weight for bar in bars], color=WEIGHT)
    effects = [0.0 if np.isnan(bar.effect) else bar.effect for bar in bars]
    right.barh(places, effects, color=[EFFECT if effect >= 0 else AGAINST for effect in effects])
    right.axvline(0, color="0.3", linewidth=0.8)
    left.set_yticks(places, names)
    left.invert_yaxis()
    left.set_xlabel("weight")
    right.set_xlabel("score with it minus score without it")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, fontsize=11)
    if left_out > 0:
        figure.text(
            0.5, -0.01, f"{left_out:,} more items of the history are not shown", ha="center", color="0.4"
        )
    return figure


def draw_history(bars: Sequence[Bar], title: str, left_out: int, path: Path) -> None:
    """Draw the bars. Whole picture or none."""
    if path.suffix.lower() not in FORMATS:
        raise TraceError(f"{path}: cannot draw as {path.suffix!r}; {nearest(path.suffix, FORMATS)}")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    with matplotlib.rc_context(style([*(bar.name for bar in bars), title])):
        figure = history_figure(bars, title, left_out)
        try:
            with whole(path, TraceError) as draft:
                figure.savefig(draft, dpi=150, bbox_inches="tight")
        finally:
            pyplot.close(figure)
