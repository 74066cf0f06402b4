"""An alignment matrix in the terminal: shade and number say the same, so colour is never needed."""

from __future__ import annotations

import textwrap

import numpy as np
from rich.text import Text

from heedful.record import Trace

SHADES = " ░▒▓█"
PLAIN_SHADES = " .:*#"  # where the terminal cannot show blocks
CELL = 7


def alignment_text(
    trace: Trace,
    width: int = 100,
    blocks: bool = True,
    *,
    site: str | None = None,
    head: int | None = None,
    words: bool = True,
    specials: bool = True,
) -> Text:
    """One row for each that asks, one column for each that is read; wide matrices are split into panels.

    The number is the weight in hundredths; `·` is less than half of one.
    """
    table = trace.table(site, head, words=words, specials=specials)
    rows, columns = table.rows, table.columns
    label = min(max((len(r) for r in rows), default=0), 18)
    panels = -(-len(columns) // max(1, (width - label - 2) // CELL))
    per_panel = -(-len(columns) // panels)  # all of about one width, rather than a last one of a word
    text = Text()
    for first in range(0, len(columns), per_panel):
        last = min(first + per_panel, len(columns))
        if first:
            text.append("\n")
        _panel(text, table.weights[:, first:last], rows, columns[first:last], label, blocks)
    legend = f"rows: {table.asks.many}; columns: {table.reads.many}; numbers: weight in hundredths"
    text.append(textwrap.fill(legend, max(width, 20)) + "\n", style="dim")
    return text


def _panel(
    text: Text, matrix: np.ndarray, rows: list[str], columns: list[str], label: int, blocks: bool
) -> None:
    shades = SHADES if blocks else PLAIN_SHADES
    text.append(" " * (label + 2))
    for column in columns:
        text.append(f"{_clip(column, CELL - 1):>{CELL - 1}} ", style="bold")
    text.append("\n")
    for row, weights in zip(rows, matrix, strict=True):
        text.append(f"{_clip(row, label):>{label}}  ", style="bold")
        for weight in weights:
            shade = shades[min(round(float(weight) * (len(shades) - 1)), len(shades) - 1)]
            hundredths = round(float(weight) * 100)
            number = f"{hundredths:>3}" if hundredths else ("  ·" if blocks else "  -")
            text.append(f"{shade * 2}{number}", style="reverse" if weight >= 0.5 else "")
            text.append("  ")
        text.append("\n")


def _clip(word: str, width: int) -> str:
    return word if len(word) <= width else word[: width - 1] + "…"
