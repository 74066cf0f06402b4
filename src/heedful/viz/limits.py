"""Limits of figures and texts, checked before anything is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from heedful.errors import TraceError
from heedful.terminal_text import shorten

DPI = 150
MAX_SIDE = 65_535  # pixels, of matplotlib
MAX_PIXELS = 64_000_000  # of a .png: about 0.5 GB while it is drawn
MAX_INCHES = 6_000  # square inches, of any format: matrices are bitmaps inside of .svg and .pdf too
MAX_PANELS = 400
MAX_MARKS = 20_000  # lines, arcs or nodes
MAX_TERMINAL_CELLS = 200_000
MAX_LABEL_LETTERS = 120
WORD_START = "▁"  # before the first subword of a word


def figure_size(width: float, height: float) -> tuple[float, float]:
    """Return the size of a figure in inches; raise if no format can hold it."""
    if max(width, height) * DPI > MAX_SIDE or width * height > MAX_INCHES:
        raise TraceError(
            f"the figure would be {width:,.0f} by {height:,.0f} inches, which is too large; write a page (.html) or a"
            " table (.csv)"
        )
    return width, height


def check_pixels(width: float, height: float) -> None:
    """Raise if a bitmap of so many inches would be too large."""
    if width * height * DPI**2 > MAX_PIXELS or max(width, height) * DPI > MAX_SIDE:
        raise TraceError(
            f"the figure would have {width * DPI:,.0f} by {height * DPI:,.0f} pixels, more than {MAX_PIXELS:,} in all;"
            " write .svg, .pdf or a page (.html)"
        )


def check_count(count: int, limit: int, name: str) -> None:
    """Raise if a figure would have too many parts."""
    if count > limit:
        raise TraceError(
            f"{count:,} {name}, more than the {limit:,} that can be drawn; write a page (.html) or a table (.csv)"
        )


def figure_label(text: str) -> str:
    """Return a label of a figure: one line, a very long one with an ellipsis in the middle."""
    return shorten(text, MAX_LABEL_LETTERS)


def figure_labels(texts: Iterable[str]) -> list[str]:
    """Return labels of a figure, each as by `figure_label`."""
    return [figure_label(text) for text in texts]


def piece_labels(texts: Sequence[str]) -> list[str]:
    """Return subwords for display: the mark of a word's first piece is left out, other pieces start with "…".

    >>> piece_labels(["▁La", "▁vie", "ille", ".", "</s>"])
    ['La', 'vie', '…ille', '.', '</s>']
    """
    if not any(text.startswith(WORD_START) for text in texts):
        return list(texts)
    return [piece_label(text) for text in texts]


def piece_label(text: str) -> str:
    """Return one subword of a vocabulary that marks the first piece of a word, for display."""
    if text.startswith(WORD_START):
        return text.removeprefix(WORD_START) or "␣"
    return f"…{text}" if text[:1].isalnum() else text
