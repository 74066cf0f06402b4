"""The alignment matrix as a picture: PNG, SVG or PDF by matplotlib."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

from heedful.errors import TraceError, nearest
from heedful.record import Trace

FORMATS = (".png", ".svg", ".pdf")
NUMBERS_UP_TO = 400  # cells; a larger matrix is read by its colours


def draw_alignment(trace: Trace, path: Path) -> None:
    """Draw where each output word was read from. Gold links, where known, are rings."""
    if path.suffix.lower() not in FORMATS:
        raise TraceError(f"{path}: cannot draw as {path.suffix!r}; {nearest(path.suffix, FORMATS)}")
    matplotlib.use("Agg")
    from matplotlib import patches, pyplot

    matrix = trace.matrix()
    count, wide = matrix.shape
    with matplotlib.rc_context({"svg.fonttype": "none", "font.size": 11}):
        figure, axes = pyplot.subplots(figsize=(2.2 + 0.62 * wide, 1.8 + 0.46 * count))
        image = axes.imshow(matrix, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
        axes.set_xticks(
            range(wide), [t.text for t in trace.source], rotation=40, ha="left", rotation_mode="anchor"
        )
        axes.set_yticks(range(count), [t.text for t in trace.target])
        axes.xaxis.tick_top()
        axes.xaxis.set_label_position("top")
        axes.set_xlabel("input word")
        axes.set_ylabel("output word")
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.set_xticks(np.arange(wide + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(count + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=1.2)
        axes.tick_params(which="minor", length=0)
        if matrix.size <= NUMBERS_UP_TO:
            for (row, column), weight in np.ndenumerate(matrix):
                if weight >= 0.005:
                    shade = "white" if weight > 0.55 else "black"
                    axes.text(
                        column,
                        row,
                        f"{weight:.2f}"[1 if weight < 0.995 else 0 :],
                        ha="center",
                        va="center",
                        color=shade,
                        fontsize=8,
                    )
        for source, target in trace.gold or ():
            axes.add_patch(patches.Circle((source, target), 0.42, fill=False, color="#d55e00", linewidth=1.6))
        figure.colorbar(image, ax=axes, label="weight", fraction=0.04, pad=0.02)
        draft = path.with_name(f"{path.stem}.tmp{path.suffix}")
        try:
            figure.savefig(draft, dpi=150, bbox_inches="tight")
            draft.replace(path)
        except OSError as error:
            raise TraceError(f"{path}: cannot be written: {error.strerror}") from None
        finally:
            pyplot.close(figure)
