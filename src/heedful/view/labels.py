"""Labels of any script in matplotlib: fonts that have the letters (it orders and joins them itself)."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable
from functools import cache
from typing import Any

from matplotlib import font_manager as fonts

__all__ = ["families", "fonts", "style"]

USUAL = "DejaVu Sans"  # comes with matplotlib: Latin, Vietnamese, Greek, Cyrillic, Arabic letters, Hebrew
# What systems and packages have for the rest, the commonest first.
LIKELY = (
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Source Han Sans",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "IPAexGothic",
    "Droid Sans Fallback",
    "Hiragino Sans",
    "PingFang SC",
    "Microsoft YaHei",
    "Malgun Gothic",
    "Arial Unicode MS",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "Noto Color Emoji",
    "Unifont",
)

BOXES = "Last Resort"  # comes with matplotlib too, and has a box for every letter


def style(texts: Iterable[str]) -> dict[Any, Any]:
    """Matplotlib's settings for pictures with these texts, in which "$" is a letter like any other."""
    return {
        "svg.fonttype": "none",
        "pdf.fonttype": 42,
        "text.parse_math": False,
        "font.family": families(texts),
    }


@cache
def _letters(path: str) -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(FT2Font(path).get_charmap())
    except (OSError, RuntimeError):
        return frozenset()


def families(texts: Iterable[str]) -> list[str]:
    """Fonts that together have every letter of these texts; those that no font has are named in a warning."""
    wanted = {ord(c) for text in texts for c in text if not c.isspace() and not unicodedata.combining(c)}
    chosen = [USUAL]
    left = wanted - _letters(fonts.findfont(USUAL))
    if not left:
        return chosen
    by_name = {
        entry.name: entry.fname
        for entry in reversed(fonts.fontManager.ttflist)
        if not entry.name.startswith(BOXES)
    }
    for name in [name for name in LIKELY if name in by_name] + sorted(set(by_name) - set(LIKELY)):
        found = left & _letters(by_name[name])
        if found:
            chosen.append(name)
            left -= found
        if not left:
            return chosen
    letters = "".join(sorted(map(chr, left)))[:20]
    warnings.warn(
        f"no font on this machine has {letters}: these letters are drawn as boxes"
        " (fonts-noto-cjk has most; or export to .html)",
        stacklevel=2,
    )
    return chosen
