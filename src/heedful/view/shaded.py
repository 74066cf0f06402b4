"""A text whose label was found by one look: its words, shaded by their weights, beside the likeliest labels.

Shades are shares of the largest weight, so that long texts can be read too; numbers are the weights.
"""

from __future__ import annotations

import html
import math
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len
from rich.text import Text

from heedful.errors import TraceError
from heedful.record import Trace
from heedful.view.terminal import PLAIN_SHADES, SHADES
from heedful.whole import whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEGEND = "shade: share of the largest weight; numbers: weight in hundredths"
GOLD = "; *: a word that decides"
LABELS = 8  # shown, at most
CELL, LETTERS = 5, 92  # of a word in the terminal, at least; of a line of a figure
INK, RING = "#1b1b1b", "#d55e00"
WIDE, LINE = 9.0, 0.62  # inches: of a figure, of a line of words in it


class Shaded(NamedTuple):
    """What is shown: words with their weights, which are gold, and labels with their probabilities."""

    words: list[str]
    weights: list[float]
    gold: frozenset[int]
    labels: list[tuple[str, float]]
    said: str

    @property
    def shades(self) -> list[float]:
        most = max(self.weights, default=0.0)
        return [weight / most if most > 0 else 0.0 for weight in self.weights]

    @property
    def likely(self) -> str:
        return "  ".join(f"{name} {p:.2f}" for name, p in self.labels)


def shaded(
    trace: Trace,
    site: str | None = None,
    head: int | None = None,
    *,
    words: bool = True,
    specials: bool = False,
) -> Shaded:
    """Of a trace of one label; what its end token got is left out unless `specials` are wanted."""
    table = trace.table(site, head, words=words, specials=specials)
    if trace.looks(site).asks != "target" or len(table.rows) != 1:
        raise TraceError(
            f"words: shades a text that has one label, but here {len(table.rows)} tokens ask;"
            " take --view alignment"
        )
    step = trace.steps[0]
    top = [(t.text, math.exp(t.logp)) for t in step.top[:LABELS]]
    top = top or [(trace.target.text, math.exp(step.logp))]
    weights = [float(weight) for weight in table.weights[0]]
    return Shaded(table.columns, weights, frozenset(c for _, c in table.gold), top, trace.target.text)


def shaded_text(seen: Shaded, width: int = 100, blocks: bool = True) -> Text:
    """For the terminal: every word above its shade and its weight; `·` is less than half a hundredth."""
    shades = SHADES if blocks else PLAIN_SHADES
    text = Text()
    text.append(seen.said, style="bold")
    text.append(f"   ({seen.likely})\n\n")
    words = [word + "*" * (at in seen.gold) for at, word in enumerate(seen.words)]
    sizes = [max(CELL, cell_len(word)) for word in words]
    for line in _lines(sizes, width):
        above, below = Text(), Text()
        for at in line:
            share, hundredths = seen.shades[at], round(100 * seen.weights[at])
            block = shades[min(round(share * (len(shades) - 1)), len(shades) - 1)] * 2
            number = f"{hundredths:>3}" if hundredths else ("  ·" if blocks else "  -")
            above.append(words[at], style="reverse" if share >= 0.5 else "")
            above.append(" " * (sizes[at] - cell_len(words[at]) + 2))
            below.append(f"{block}{number}".ljust(sizes[at] + 2))
        text.append(above).append("\n").append(below).append("\n")
    legend = LEGEND + (GOLD if seen.gold else "")
    text.append(textwrap.fill(legend, max(width, 20)) + "\n", style="dim")
    return text


def _lines(sizes: list[int], width: int, gap: int = 2) -> list[list[int]]:
    """Numbers of the words of each line.

    >>> _lines([5, 5, 5], 13)
    [[0, 1], [2]]
    """
    lines: list[list[int]] = [[]]
    used = 0
    for at, size in enumerate(sizes):
        if lines[-1] and used + size > width:
            lines.append([])
            used = 0
        lines[-1].append(at)
        used += size + gap
    return lines


def shaded_figure(seen: Shaded) -> Figure:
    """For a file: words as they are read, from left to right, and bars for the labels below."""
    from matplotlib import pyplot

    rough = _lines([cell_len(word) for word in seen.words], LETTERS)
    bars = 0.4 + 0.26 * len(seen.labels)
    tall = 0.5 + LINE * len(rough)
    figure, (above, below) = pyplot.subplots(
        2, 1, figsize=(WIDE, tall + bars), height_ratios=[tall, bars], layout="constrained"
    )
    above.set_axis_off()
    above.set_title(f"{seen.said}   ({seen.labels[0][1]:.2f})" if seen.labels else seen.said, loc="left")
    if seen.gold:
        above.set_title("ringed: words that decide", loc="right", fontsize=8, color="#555555")
    _written(above, seen, rough, tall)
    names, shares = zip(*seen.labels, strict=True)
    below.barh(range(len(names)), shares, color=["#08519c" if n == seen.said else "#a8a8a8" for n in names])
    below.set_yticks(range(len(names)), names, fontsize=9)
    below.invert_yaxis()
    below.set_xlim(0, 1)
    below.set_xlabel("probability", fontsize=9)
    below.tick_params(length=0, labelsize=9)
    below.spines[["top", "right"]].set_visible(False)
    return figure


def _written(axes: Axes, seen: Shaded, lines: list[list[int]], tall: float) -> None:
    """Words in their boxes; where each begins is known once the one before it is measured."""
    from matplotlib import colormaps

    figure = axes.figure
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    inch = figure.dpi
    axes.set(xlim=(0, WIDE), ylim=(tall, 0))
    for row, line in enumerate(lines):
        x, y = 0.1, 0.35 + LINE * row
        for at in line:
            share = seen.shades[at]
            box = {
                "facecolor": colormaps["Blues"](0.75 * share),
                "edgecolor": RING if at in seen.gold else "none",
                "boxstyle": "round,pad=0.2",
            }
            ink = "white" if share > 0.8 else INK
            drawn = axes.text(x, y, seen.words[at], color=ink, bbox=box, va="center")
            wide = drawn.get_window_extent(renderer).width / inch
            number = f"{seen.weights[at]:.2f}" if seen.weights[at] >= 0.005 else "·"
            axes.text(x + wide / 2, y + 0.26, number, fontsize=7, color="#555555", ha="center", va="center")
            x += wide + 0.16


STYLE = """
body { font: 17px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 52rem; padding: 0 1rem;
  color: #1b1b1b; background: #fdfdfc; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; } h2 { font-size: 1.05rem; margin: 1.8rem 0 .4rem; }
.text { line-height: 2.3; font-size: 1.15rem; }
.word { display: inline-block; padding: 0 .3rem; margin: 0 .1rem; border-radius: 4px; text-align: center;
  line-height: 1.4; }
.word small { display: block; font-size: .65rem; opacity: .75; }
.gold { outline: 2px solid #d55e00; }
table { border-collapse: collapse; } td, th { padding: .15rem .8rem .15rem 0; text-align: left; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
meter { width: 14rem; }
.dim { color: #555; font-size: .9rem; }
@media (prefers-color-scheme: dark) { body { color: #e8e8e6; background: #17181a; } .dim { color: #b5b5b0; } }
"""


def shaded_html(trace: Trace, site: str | None = None, *, words: bool = True, specials: bool = False) -> str:
    """A page of its own: the words, each head's words, the labels, every number; nothing is fetched."""
    seen = shaded(trace, site, words=words, specials=specials)
    count = trace.looks(site).heads
    heads = (
        [shaded(trace, site, head, words=words, specials=specials) for head in range(count)]
        if count > 1
        else []
    )
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    title = html.escape(f"{seen.said}: {trace.source.text}")
    parts = [
        f'<h1>{html.escape(seen.said)}</h1><p class="dim">{html.escape(trace.model.name)}</p>',
        f'<p class="text">{_spans(seen)}</p>',
        _labels(seen),
        *(f"<h2>Head {n}</h2><p class='text'>{_spans(head)}</p>" for n, head in enumerate(heads)),
        _numbers(seen),
        f'<p class="dim">{LEGEND.replace("numbers: weight in hundredths", "numbers: weights")}'
        f"{'; ringed: words that decide' if seen.gold else ''}. Weights say where the model read from,"
        " not why it said what it said.</p>",
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>\n"
    )


def _spans(seen: Shaded) -> str:
    made = []
    for at, (word, share, weight) in enumerate(zip(seen.words, seen.shades, seen.weights, strict=True)):
        ring = " gold" if at in seen.gold else ""
        colour = f"background: rgba(38, 115, 191, {0.7 * share:.3f})"
        made.append(
            f'<span class="word{ring}" style="{colour}">{html.escape(word)}<small>{weight:.2f}</small></span>'
        )
    return " ".join(made)


def _labels(seen: Shaded) -> str:
    rows = "".join(
        f'<tr><th>{html.escape(name)}</th><td class="n">{p:.3f}</td>'
        f'<td><meter value="{p:.4f}"></meter></td></tr>'
        for name, p in seen.labels
    )
    return f"<h2>Labels</h2><table>{rows}</table>"


def _numbers(seen: Shaded) -> str:
    rows = "".join(
        f'<tr><td>{html.escape(word)}</td><td class="n">{weight:.4f}</td></tr>'
        for word, weight in zip(seen.words, seen.weights, strict=True)
    )
    return (
        "<h2>Every weight</h2><details><summary>as a table</summary>"
        f'<table><tr><th>word</th><th class="n">weight</th></tr>{rows}</table></details>'
    )


def write_shaded(
    trace: Trace, path: Path, site: str | None = None, *, words: bool = True, specials: bool = False
) -> None:
    """Write the page. Either all of it is written or nothing."""
    text = shaded_html(trace, site, words=words, specials=specials)
    with whole(path, TraceError) as draft:
        draft.write_text(text, encoding="utf-8")
