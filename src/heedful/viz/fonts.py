"""Fonts of figures: chosen so that labels of any script can be drawn."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable
from functools import cache
from typing import Any

from matplotlib import font_manager as fonts

__all__ = ["figure_style", "find_fonts", "fonts"]

DEFAULT_FONT = "DejaVu Sans"  # ships with matplotlib: Latin, Vietnamese, Greek, Cyrillic, Arabic letters, Hebrew
COMMON_FONTS = (  # of other scripts, the most common first
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
PLACEHOLDER_FONT = "Last Resort"  # ships with matplotlib, and has a box for every character
N_REPORTED = 20  # characters named in the warning


def figure_style(texts: Iterable[str]) -> dict[Any, Any]:
    """Return matplotlib's settings for figures with these texts; "$" is an ordinary character."""
    return {
        "svg.fonttype": "none",
        "pdf.fonttype": 42,
        "text.parse_math": False,
        "font.family": find_fonts(texts),
    }


@cache
def _characters(path: str) -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(FT2Font(path).get_charmap())
    except (OSError, RuntimeError):
        return frozenset()


def _has_glyph(character: str) -> bool:
    """Return whether a font can be expected to have a glyph: not of combining, control or unassigned characters."""
    return not unicodedata.combining(character) and unicodedata.category(character) not in ("Cc", "Cn", "Cs")


def find_fonts(texts: Iterable[str]) -> list[str]:
    """Return fonts that together have every character of the texts; warn about those that no font has."""
    needed = {ord(c) for text in texts for c in text if not c.isspace() and _has_glyph(c)}
    chosen = [DEFAULT_FONT]
    missing = needed - _characters(fonts.findfont(DEFAULT_FONT))
    if not missing:
        return chosen
    installed = {
        entry.name: entry.fname
        for entry in reversed(fonts.fontManager.ttflist)
        if not entry.name.startswith(PLACEHOLDER_FONT)
    }
    common = [name for name in COMMON_FONTS if name in installed]
    for name in common + sorted(set(installed) - set(COMMON_FONTS)):
        covered = missing & _characters(installed[name])
        if covered:
            chosen.append(name)
            missing -= covered
        if not missing:
            return chosen
    characters = "".join(sorted(map(chr, missing)))[:N_REPORTED]
    warnings.warn(
        f"no installed font has {characters}: these characters are drawn as boxes"
        " (install fonts-noto-cjk, or export to .html)",
        stacklevel=2,
    )
    return chosen
