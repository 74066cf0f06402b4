"""The attention of one sentence over a training, as an animated GIF."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import matplotlib
import numpy as np
from PIL import Image  # matplotlib needs it, too

from heedful.errors import TraceError
from heedful.trace.schema import Trace
from heedful.viz.alignment import build_table, draw_alignment
from heedful.viz.base import ViewOptions
from heedful.viz.canvas import subplots
from heedful.viz.fonts import figure_style
from heedful.viz.limits import figure_labels, figure_size

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_FRAMES = 60  # of more, some are left out, never the first and the last
FRAME_MS, LAST_MS = 250, 2500  # the last frame is shown longer
DPI = 80


class FilmFrame(NamedTuple):
    """The trace of a sentence at one step of a training."""

    title: str
    trace: Trace


def choose_frames(n: int, most: int = MAX_FRAMES) -> list[int]:
    """Return the indices of the frames to draw, evenly spread.

    >>> choose_frames(5, 3)
    [0, 2, 4]
    """
    return sorted({round(i) for i in np.linspace(0, n - 1, min(n, most))})


def film_gif(frames: Sequence[FilmFrame]) -> bytes:
    """Return the frames as an animated GIF that repeats."""
    if not frames:
        raise TraceError("there are no frames to animate; wait for the first validation")
    chosen = [frames[i] for i in choose_frames(len(frames))]
    options = ViewOptions()
    tables = [build_table(frame.trace, options) for frame in chosen]
    height = 1.9 + 0.4 * max(len(table.rows) for table in tables)
    width = 2.2 + 0.6 * max(len(table.columns) for table in tables)
    texts = [word for table in tables for word in (*table.rows, *table.columns)]
    with matplotlib.rc_context({**figure_style(figure_labels(texts)), "font.size": 11}):
        figure, grid = subplots(1, 1, figsize=figure_size(width, height), squeeze=False)
        images = []
        for title, trace in chosen:
            grid[0][0].clear()
            draw_alignment(grid[0][0], trace, options)
            figure.suptitle(title, fontsize=11)
            images.append(_picture(figure))
    out = io.BytesIO()
    durations = [FRAME_MS] * (len(images) - 1) + [LAST_MS]
    images[0].save(out, "GIF", save_all=True, append_images=images[1:], duration=durations, loop=0)
    return out.getvalue()


def _picture(figure: Figure) -> Image.Image:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=DPI)
    content.seek(0)
    return Image.open(content).convert("RGB").quantize(64, dither=Image.Dither.NONE)
