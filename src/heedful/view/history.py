"""Bars over a history: the weight of each item for a recommended one, and what it changes to leave it out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

from heedful.errors import TraceError, nearest
from heedful.view.figure import FORMATS
from heedful.view.labels import families
from heedful.whole import whole

WEIGHT, EFFECT, AGAINST = "#4878a8", "#5a9367", "#b5651d"
LONGEST = 48  # letters of a title


class Bar(NamedTuple):
    """An item of a history: its weight, and the score with it minus the score without it."""

    name: str
    weight: float
    effect: float


def draw_history(bars: Sequence[Bar], title: str, left_out: int, path: Path) -> None:
    """Draw the bars, the first on top; `left_out` items had no room. Whole picture or none."""
    if path.suffix.lower() not in FORMATS:
        raise TraceError(f"{path}: cannot draw as {path.suffix!r}; {nearest(path.suffix, FORMATS)}")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = [bar.name if len(bar.name) <= LONGEST else bar.name[: LONGEST - 1] + "…" for bar in bars]
    settings: dict[Any, Any] = {
        "svg.fonttype": "none",
        "pdf.fonttype": 42,
        "font.family": families([*names, title]),
    }
    with matplotlib.rc_context(settings):
        figure, (left, right) = pyplot.subplots(
            1, 2, sharey=True, figsize=(10.5, 1.7 + 0.3 * len(bars)), gridspec_kw={"wspace": 0.06}
        )
        places = range(len(bars))
        left.barh(places, [bar.weight for bar in bars], color=WEIGHT)
        colours = [EFFECT if bar.effect >= 0 else AGAINST for bar in bars]
        right.barh(places, [bar.effect for bar in bars], color=colours)
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
        try:
            with whole(path, TraceError) as draft:
                figure.savefig(draft, dpi=150, bbox_inches="tight")
        finally:
            pyplot.close(figure)
