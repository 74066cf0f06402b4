"""Pictures of a trace by matplotlib: PNG, SVG or PDF."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib
import numpy as np

from heedful.errors import TraceError, nearest
from heedful.record import Matrix, Trace, entropy_ratio
from heedful.view.arcs import arcs
from heedful.view.labels import style
from heedful.view.photo import panels
from heedful.view.shaded import shaded, shaded_figure
from heedful.whole import whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
NUMBERS_UP_TO = 400  # cells; a larger matrix is read by its colours
LONG = 40  # words: a longer source goes on in the next panel
COLOURS = "Blues"  # more is further from the page, to the colour-blind and in grey too
GOLD = "#d55e00"
LEAST = 0.01  # weights below are not drawn as lines; how much is hidden is said
LIKELY = 5  # words shown for each step
PLACE, LETTER = 0.75, 0.1  # inches: from word to word of the longer side; what a letter takes
ASIDE = "#555555"


def draw(
    trace: Trace,
    path: Path,
    view: str = "alignment",
    *,
    site: str | None = None,
    head: int | None = None,
    words: bool = True,
    specials: bool = True,
    smooth: bool = True,
) -> None:
    """Draw a view of the trace. Either the whole picture is written or nothing."""
    if path.suffix.lower() not in FORMATS:
        raise TraceError(f"{path}: cannot draw as {path.suffix!r}; {nearest(path.suffix, FORMATS)}")
    table = (
        None
        if view in ("steps", "beam", "photo", "words", "arcs", "history")
        else trace.table(site, head, words=words, specials=specials)
    )
    if table is not None and not table.weights.size:
        raise TraceError("nothing was written, or nothing read, so there is nothing to draw")
    makers: dict[str, Callable[[], Figure]] = {
        "alignment": lambda: alignment(_given(table)),
        "lines": lambda: lines(_given(table)),
        "heads": lambda: heads(trace, site, words, specials),
        "steps": lambda: steps(trace),
        "beam": lambda: beam(trace),
        "photo": lambda: panels(trace, site, head, smooth),
        "words": lambda: shaded_figure(shaded(trace, site, head, words=words)),
        "arcs": lambda: arcs(trace, site, head, words, specials),
        "history": lambda: _history(trace, site, head),
    }
    matplotlib.use("Agg")
    from matplotlib import pyplot

    texts = [*trace.source.words, *trace.target.words, *(t.text for t in trace.target.tokens)]
    with matplotlib.rc_context({**style(texts), "font.size": 11}):
        figure = makers[view]()
        try:
            with whole(path, TraceError) as draft, warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Glyph")  # `style` has said it once
                figure.savefig(draft, dpi=150, bbox_inches="tight")
        finally:
            pyplot.close(figure)


def _history(trace: Trace, site: str | None, head: int | None) -> Figure:
    """Of the first recommended item; the page and the terminal have all."""
    from heedful.view.history import bars_of, history_figure

    first = bars_of(trace, site, head)[0]
    return history_figure(first.bars, first.item, first.left_out)


def _given(table: Matrix | None) -> Matrix:
    assert table is not None
    return table


def alignment(table: Matrix) -> Figure:
    """Where each output word was read from, long sources in panels. Gold links, where known, are rings."""
    from matplotlib import pyplot

    count, wide = table.weights.shape
    panels = max(1, -(-wide // LONG))
    per_panel = -(-wide // panels)
    most = max(1.0, float(table.weights.max(initial=0.0)))  # some sum to more than 1
    height, width = 1.8 + 0.46 * count, 2.2 + 0.62 * min(wide, per_panel)
    figure, grid = pyplot.subplots(panels, 1, figsize=(width, panels * height), squeeze=False)
    for panel in range(panels):
        part = slice(panel * per_panel, min((panel + 1) * per_panel, wide))
        axes = grid[panel][0]
        image = axes.imshow(table.weights[:, part], cmap=COLOURS, vmin=0.0, vmax=most, aspect="auto")
        _labelled(axes, table, part)
        if table.weights.size <= NUMBERS_UP_TO:
            _numbers(axes, table.weights[:, part])
        for row, column in table.gold:
            if part.start <= column < part.stop:
                _ring(axes, column - part.start, row)
        figure.colorbar(image, ax=axes, label="weight", fraction=0.04, pad=0.02)
    return figure


def _labelled(axes: Axes, table: Matrix, part: slice) -> None:
    rows, columns = table.rows, table.columns[part]
    axes.set_xticks(range(len(columns)), columns, rotation=40, ha="left", rotation_mode="anchor")
    axes.set_yticks(range(len(rows)), rows)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xticks(np.arange(len(columns) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(rows) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.2)
    axes.tick_params(which="minor", length=0)
    axes.set_xlabel(table.reads.one)
    axes.set_ylabel(table.asks.one)


def _numbers(axes: Axes, weights: np.ndarray) -> None:
    for (row, column), weight in np.ndenumerate(weights):
        if weight >= 0.005:
            text = f"{weight:.2f}"[1 if weight < 0.995 else 0 :]
            shade = "white" if weight > 0.55 else "black"
            axes.text(column, row, text, ha="center", va="center", color=shade, fontsize=8)


def _ring(axes: Axes, column: int, row: int) -> None:
    from matplotlib import patches

    axes.add_patch(patches.Circle((column, row), 0.42, fill=False, color=GOLD, linewidth=1.6))


def lines(table: Matrix) -> Figure:
    """Source above, output below; a line's strength is its weight. What is too faint is said in words."""
    from matplotlib import pyplot

    wide = max(len(table.rows), len(table.columns))
    figure, axes = pyplot.subplots(figsize=(1.5 + PLACE * wide, 3.2))
    above = _spread(len(table.columns), wide)
    below = _spread(len(table.rows), wide)
    gold = set(table.gold)
    for (row, column), weight in np.ndenumerate(table.weights):
        if weight >= LEAST:
            colour = GOLD if (row, column) in gold else "#00204d"
            axes.plot(
                [above[column], below[row]],
                [1, 0],
                color=colour,
                alpha=min(1.0, float(weight)),
                lw=2.2 * weight + 0.3,
            )
    _beside(axes, above, table.columns, 1.05, table.reads.many)
    _beside(axes, below, table.rows, -0.05, table.asks.many)
    hidden = table.weights[table.weights < LEAST].sum() / max(1, len(table.rows))
    _aside(axes, 0.5, f"lines under {LEAST:.0%}\nhide {hidden:.1%}\nof the weight")
    axes.set(xlim=(-0.5, wide - 0.5), ylim=(-0.35, 1.35))
    axes.axis("off")
    return figure


def _beside(axes: Axes, places: np.ndarray, words: list[str], y: float, name: str) -> None:
    """Words along a line, aslant where they would run into one another; what they are, before the first."""
    apart = PLACE * (float(places[1] - places[0]) if len(places) > 1 else len(words[0]))
    aslant = max(map(len, words), default=0) * LETTER > apart
    up = y > 0
    for place, word in zip(places, words, strict=True):
        if aslant:
            axes.text(
                place, y, word, rotation=40, rotation_mode="anchor",
                ha="left" if up else "right", va="bottom" if up else "top",
            )  # fmt: skip
        else:
            axes.text(place, y, word, ha="center", va="bottom" if up else "top")
    _aside(axes, 1.0 if up else 0.0, name)


def _aside(axes: Axes, y: float, text: str) -> None:
    axes.text(-0.6, y, text, color=ASIDE, fontsize=9, ha="right", va="center")


def _spread(count: int, wide: int) -> np.ndarray:
    return np.linspace(0, wide - 1, count) if count > 1 else np.array([(wide - 1) / 2])


def heads(trace: Trace, site: str | None, words: bool, specials: bool) -> Figure:
    """A small matrix for every head: of one site, or of every site of the alignment's kind."""
    from matplotlib import pyplot

    first = trace.looks(site)
    alike = (first.kind, first.asks, first.reads)
    rows = [looks for looks in trace.sites if (looks.kind, looks.asks, looks.reads) == alike]
    rows = [first] if site else rows
    most = max(looks.heads for looks in rows)
    figure, grid = pyplot.subplots(
        len(rows),
        most,
        figsize=(0.6 + 2.0 * most, 0.6 + 2.1 * len(rows)),
        squeeze=False,
        layout="constrained",
    )
    for down, looks in enumerate(rows):
        for across in range(most):
            axes = grid[down][across]
            if across >= looks.heads:
                axes.axis("off")
                continue
            table = trace.table(looks.site, across, words=words, specials=specials)
            axes.imshow(table.weights, cmap=COLOURS, vmin=0.0, vmax=1.0, aspect="auto")
            spread = float(entropy_ratio(table.weights).mean())
            axes.set_title(f"{looks.site}, head {across}\nspread {spread:.0%}", fontsize=7)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.spines[:].set_color("#bbbbbb")
    figure.supxlabel(table.reads.many, fontsize=9)
    figure.supylabel(table.asks.many, fontsize=9)
    return figure


def steps(trace: Trace) -> Figure:
    """For every step the words that were likely, and what was written."""
    from matplotlib import pyplot

    count = len(trace.steps)
    if not any(step.top for step in trace.steps):
        raise TraceError("this trace does not say which words were likely")
    across = min(count, 5)
    down = -(-count // across)
    figure, grid = pyplot.subplots(down, across, figsize=(2.6 * across, 0.6 + 1.5 * down), squeeze=False)
    for t, axes in enumerate(grid.flat):
        if t >= count:
            axes.axis("off")
            continue
        likely = trace.steps[t].top[:LIKELY]
        chosen = trace.target.tokens[t]
        colours = ["#00204d" if top.id == chosen.id else "#a8a8a8" for top in likely]
        axes.barh(range(len(likely)), [np.exp(top.logp) for top in likely], color=colours)
        axes.set_yticks(range(len(likely)), [top.text for top in likely], fontsize=8)
        axes.invert_yaxis()
        axes.set_xlim(0, 1)
        axes.set_title(f"{t + 1}: {chosen.text}", fontsize=9)
        axes.tick_params(labelsize=7, length=0)
        axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("probability of the next word (dark: written)", fontsize=9)
    figure.tight_layout()
    return figure


def beam(trace: Trace) -> Figure:
    """The tree of a beam: a node a token, dark where the best output passed, × where dropped."""
    from matplotlib import pyplot

    tree = trace.beam
    if tree is None:
        raise TraceError("this trace has no beam: make it with --beam 5")
    best: set[int] = set()
    at = tree.best[0] if tree.best else -1
    while at >= 0:
        best.add(at)
        at = tree.nodes[at].parent
    last = max(node.t for node in tree.nodes)
    place: dict[int, tuple[float, float]] = {-1: (-1.0, 0.0)}
    by_step: dict[int, int] = {}
    for node in tree.nodes:
        place[node.id] = (float(node.t), -float(by_step.get(node.t, 0)))
        by_step[node.t] = by_step.get(node.t, 0) + 1
    figure, axes = pyplot.subplots(figsize=(2.0 + 1.1 * (last + 2), 1.0 + 0.55 * tree.size))
    for node in tree.nodes:
        (x0, y0), (x1, y1) = place[node.parent], place[node.id]
        mine = node.id in best
        colour = "#00204d" if mine else "#9a9a9a"
        axes.plot(
            [x0, x1],
            [y0, y1],
            color=colour,
            lw=0.6 + 3 * np.exp(node.logp),
            alpha=1.0 if mine else 0.5,
            zorder=1,
        )
        mark = {"done": " ■", "dropped": " ×", "alive": ""}[node.state]
        axes.text(
            x1, y1, node.text + mark, ha="center", va="center", fontsize=8, color=colour,
            bbox={"boxstyle": "round,pad=0.15", "fc": "white", "ec": colour, "lw": 1.2 if mine else 0.5},
            zorder=2,
        )  # fmt: skip
    axes.text(
        -1, 0.62, "dark: the best output; ×: dropped; ■: ended; a line's width: probability", fontsize=8
    )
    axes.set(xlim=(-1.3, last + 0.8), ylim=(-tree.size + 0.4, 0.9))
    axes.axis("off")
    return figure
