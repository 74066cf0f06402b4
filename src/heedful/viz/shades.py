"""Weights as text: a shade and a number, so that colors are never needed."""

from __future__ import annotations

BLOCKS, ASCII = " ░▒▓█", " .:*#"


def shade_text(share: float, unicode: bool) -> str:
    """Return two characters, the darker the larger a share between 0 and 1.

    >>> shade_text(1.0, True), shade_text(0.5, False), shade_text(0.0, False)
    ('██', '::', '  ')
    """
    shades = BLOCKS if unicode else ASCII
    return shades[max(0, min(round(share * (len(shades) - 1)), len(shades) - 1))] * 2


def number_text(weight: float, unicode: bool) -> str:
    """Return a weight in hundredths, three characters wide; a dot is less than half a hundredth.

    >>> number_text(0.914, True), number_text(0.001, True), number_text(0.001, False)
    (' 91', '  ·', '  -')
    """
    hundredths = round(weight * 100)
    return f"{hundredths:>3}" if hundredths else ("  ·" if unicode else "  -")
