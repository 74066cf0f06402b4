"""A sentence that reads itself: arcs from each word to the earlier ones it read, and its surprisal."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

import numpy as np

from heedful.errors import TraceError
from heedful.record import NO_WORD, Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST = 0.05  # fainter arcs are not drawn; how much is hidden is said
UNIT = 0.1  # inches of a letter, with some air
FLAT = 0.6  # an arc's height for its width
ARC, WORD, NOTE = "#00204d", "#1b1b1b", "#555555"


def arcs(
    trace: Trace,
    site: str | None = None,
    head: int | None = None,
    words: bool = True,
    specials: bool = True,
) -> Figure:
    """Words in a row, an arc's strength its weight; below each its surprisal in bits, where known."""
    from matplotlib import patches, pyplot

    looks = trace.looks(site)
    if looks.asks != looks.reads:
        raise TraceError(f"arcs: {looks.site} reads another text than it asks with; take --view lines")
    table = trace.table(looks.site, head, words=words, specials=specials)
    count = len(table.rows)
    places = _places(table.rows)
    strong = _drawn(table.weights)
    reach = max((places[i] - places[j] for i, j in strong), default=2.0)
    drawn = sum(float(table.weights[place]) for place in strong)
    hidden = (table.weights.sum() - np.trace(table.weights) - drawn) / max(1, count)
    about = (
        f"arcs: the earlier words that each word read (under {LEAST:.0%} not drawn: {hidden:.0%} of a word's"
        " reading); numbers: bits of surprise"
    )
    lines = textwrap.wrap(about, max(40, round(1.6 * places[-1])))
    left, right = places[0] - 4, places[-1] + 4
    bottom, top = -8.0 - 2 * len(lines), FLAT * reach / 2 + 2
    figure = pyplot.figure(figsize=(UNIT * (right - left), UNIT * (top - bottom)))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    for row, column in strong:
        weight = float(table.weights[row, column])
        middle, wide = (places[row] + places[column]) / 2, places[row] - places[column]
        axes.add_patch(
            patches.Arc(
                (middle, 0.0), wide, FLAT * wide, theta1=0, theta2=180,
                color=ARC, alpha=min(1.0, 0.15 + weight), lw=0.4 + 3.0 * weight,
            )
        )  # fmt: skip
    bits = _bits(trace, looks.asks == "source", words, specials)
    for at, word in enumerate(table.rows):
        axes.text(places[at], -1.2, word, ha="center", va="top", color=WORD)
        if at < len(bits) and bits[at] is not None:
            axes.text(places[at], -4.6, f"{bits[at]:.1f}", ha="center", va="top", color=NOTE, fontsize=8)
    axes.text(places[0], -7.6, "\n".join(lines), va="top", color=NOTE, fontsize=8)
    axes.set(xlim=(left, right), ylim=(bottom, top))
    axes.axis("off")
    return figure


def _places(labels: list[str]) -> list[float]:
    """The middle of each word when they are written one after another, in characters."""
    places, at = [], 0.0
    for label in labels:
        wide = max(len(label), 3) + 2.5
        places.append(at + wide / 2)
        at += wide
    return places


def _drawn(weights: np.ndarray) -> set[tuple[int, int]]:
    """Arcs that are strong enough, from a word to another one."""
    return {(int(i), int(j)) for i, j in np.argwhere(weights >= LEAST) if i != j}


def _bits(trace: Trace, source: bool, words: bool, specials: bool) -> list[float | None]:
    """Surprisal of what the rows are: of a source's word, the step before foresaw it."""
    side = trace.source if source else trace.target
    logp = [None, *(step.logp for step in trace.steps)] if source else [step.logp for step in trace.steps]
    made: list[float | None] = []
    seen: dict[int, int] = {}
    for token, value in zip(side.tokens, logp, strict=False):
        bits = None if value is None else -value / math.log(2)
        if token.word == NO_WORD:
            if specials or token.role == "normal":
                made.append(bits)
        elif words and token.word in seen:
            made[seen[token.word]] = (made[seen[token.word]] or 0.0) + (bits or 0.0)
        else:
            seen[token.word] = len(made)
            made.append(bits)
    return made
