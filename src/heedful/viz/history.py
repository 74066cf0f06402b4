"""The history view: the weight of each item of a history for a recommended item, and its leave-one-out effect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from heedful.errors import TraceError
from heedful.terminal_text import one_line
from heedful.trace.schema import Trace
from heedful.viz.base import TextStyle, View, ViewOptions
from heedful.viz.canvas import subplots
from heedful.viz.limits import figure_labels
from heedful.viz.page import options_link, page_html
from heedful.viz.palette import BAR, NEGATIVE, POSITIVE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_TITLE_LETTERS = 48
MAX_BARS, MAX_TERMINAL_BARS = 20, 5  # items of a history per recommended item
BAR_WIDTH = 16  # columns of a terminal
LEAVE_ONE_OUT = "leave-one-out"  # the attribution: score with an item minus score without it
EFFECT_LABEL = "score with it minus score without it"


class HistoryItem(NamedTuple):
    """An item of a history: its weight, and its leave-one-out effect (NaN: not computed)."""

    name: str
    weight: float
    effect: float


class Explanation(NamedTuple):
    """A recommended item and the strongest items of the history; `n_hidden` more are left out."""

    item: str
    history: list[HistoryItem]
    n_hidden: int


def explain_items(trace: Trace, options: ViewOptions | None = None, n: int = MAX_BARS) -> list[Explanation]:
    """Return for each recommended item the n items of the history with the largest effects, else weights."""
    options = options or ViewOptions()
    if trace.site(options.site).kind != "history":
        raise TraceError("history: this trace is not of a recommender")
    table = trace.table(options.site, options.head, words=False)
    effects = np.full(table.weights.shape, np.nan)
    if LEAVE_ONE_OUT in trace.attributions:
        effects = trace.array(trace.attributions[LEAVE_ONE_OUT])
    explanations = []
    for item, weights, effect in zip(table.rows, table.weights, effects, strict=True):
        known = np.isfinite(effect).any()
        strength = np.where(np.isnan(effect), 0.0, np.abs(effect)) if known else np.abs(weights)
        order = [i for i in np.argsort(-strength, kind="stable").tolist() if table.columns[i] != item]
        history = [HistoryItem(table.columns[i], float(weights[i]), float(effect[i])) for i in order[:n]]
        explanations.append(Explanation(item, history, len(order) - len(history)))
    return explanations


def history_text(trace: Trace, options: ViewOptions | None = None, style: TextStyle | None = None) -> Text:
    """Return the view for a terminal: below each recommended item the strongest items of the history."""
    style = style or TextStyle()
    explanations = explain_items(trace, options)
    shown = [item for explanation in explanations for item in explanation.history[:MAX_TERMINAL_BARS]]
    name_width = min(max(12, style.width - 40), max((cell_len(one_line(item.name)) for item in shown), default=0))
    weights = [abs(item.weight) for explanation in explanations for item in explanation.history]
    largest = max(weights, default=0.0) or 1.0
    text = Text()
    for explanation in explanations:
        text.append(f"{one_line(explanation.item)}\n", style="bold")
        for item in explanation.history[:MAX_TERMINAL_BARS]:
            bar = ("█" if style.unicode else "#") * round(BAR_WIDTH * abs(item.weight) / largest)
            effect = "" if np.isnan(item.effect) else f"  {item.effect:+.3f}"
            name = set_cell_size(one_line(item.name), name_width)
            text.append(f"  {name}  {item.weight:6.3f} {bar:<{BAR_WIDTH}}{effect}\n")
        n_more = explanation.n_hidden + max(0, len(explanation.history) - MAX_TERMINAL_BARS)
        if n_more:
            text.append(f"  and {n_more:,} more items of the history\n", style="dim")
    text.append(f"weight; where computed, {EFFECT_LABEL}\n", style="dim")
    return text


def history_figure(trace: Trace, options: ViewOptions) -> Figure:
    """Draw the view of the first recommended item; the page and the terminal have all."""
    first = explain_items(trace, options)[0]
    return history_bars(first.history, first.item, first.n_hidden)


def history_bars(history: Sequence[HistoryItem], title: str, n_hidden: int) -> Figure:
    """Draw weights and effects side by side, the first item on top."""
    names = [_clip(one_line(item.name)) for item in history]
    figure, (left, right) = subplots(1, 2, sharey=True, figsize=(10.5, 1.7 + 0.3 * len(history)), layout="constrained")
    rows_y = range(len(history))
    left.barh(rows_y, [item.weight for item in history], color=BAR)
    effects = [0.0 if np.isnan(item.effect) else item.effect for item in history]
    right.barh(rows_y, effects, color=[POSITIVE if effect >= 0 else NEGATIVE for effect in effects])
    right.axvline(0, color="0.3", linewidth=0.8)
    left.set_yticks(rows_y, names)
    left.invert_yaxis()
    left.set_xlabel("weight")
    right.set_xlabel(EFFECT_LABEL)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle("\n".join(figure_labels(title.splitlines())), fontsize=11)
    if n_hidden > 0:
        figure.text(0.5, -0.01, f"{n_hidden:,} more items of the history are not shown", ha="center", color="0.4")
    return figure


def _clip(name: str) -> str:
    return name if len(name) <= MAX_TITLE_LETTERS else name[: MAX_TITLE_LETTERS - 1] + "…"


def _suits(trace: Trace, site: str | None) -> bool:
    """Return whether a site is the attention of a recommender over a history."""
    record = trace.find_site(site)
    return record is not None and record.kind == "history"


VIEW = View(
    "weight and effect of each item of a history",
    figure=history_figure,
    text=history_text,
    page=lambda trace, options: page_html(trace, options_link("history", trace, options)),
    suits=_suits,
)
