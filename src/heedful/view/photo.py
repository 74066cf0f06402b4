"""Weights laid over a photograph: what is read is light, what is not stays dark."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from heedful.errors import TraceError
from heedful.record import Photo, Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

DARK = 0.22  # how much of a place that is not read is left
ACROSS = 5  # panels in a row
LARGEST = 420  # pixels of a side, as a trace keeps a picture
Array = npt.NDArray[np.floating]
HOW = {True: "weights upsampled smoothly", False: "weights as the raw grid"}


def overlay(picture: Image, weights: Array, smooth: bool = True) -> Image:
    """The picture, lit by weights (row, column); the largest of them is full light."""
    from PIL import Image

    grid = np.asarray(weights, dtype=np.float32)
    grid = grid / max(float(grid.max()), 1e-12)
    way = Image.Resampling.BICUBIC if smooth else Image.Resampling.NEAREST
    light = np.asarray(Image.fromarray(grid).resize(picture.size, way)).clip(0, 1)
    shown = np.asarray(picture, dtype=np.float32) * (DARK + (1 - DARK) * light[:, :, None])
    return Image.fromarray(shown.clip(0, 255).astype(np.uint8))


def small(picture: Image, side: int = LARGEST) -> Image:
    """No larger than a page needs it."""
    made = picture.copy()
    made.thumbnail((side, side))
    return made


def packed(picture: Image, quality: int = 82) -> str:
    """A picture as an address that holds it."""
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=quality)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def photo_of(picture: Image, grid: tuple[int, int]) -> Photo:
    """A picture as a trace keeps it."""
    shown = small(picture)
    return Photo(href=packed(shown), width=shown.width, height=shown.height, grid=grid)


def unpacked(photo: Photo) -> Image:
    from PIL import Image, UnidentifiedImageError

    try:
        return Image.open(io.BytesIO(base64.b64decode(photo.href.partition(",")[2]))).convert("RGB")
    except (OSError, ValueError, UnidentifiedImageError):
        raise TraceError("the trace's picture cannot be read") from None


def panels(trace: Trace, site: str | None = None, head: int | None = None, smooth: bool = True) -> Figure:
    """The photograph, and one panel for each word with what was read for it."""
    from matplotlib import pyplot

    photo = trace.source.image
    if photo is None:
        raise TraceError("photo: this trace was not made of a picture")
    picture = unpacked(photo)
    table = trace.table(site, head, words=True, specials=False)
    count = 1 + len(table.rows)
    across = min(ACROSS, count)
    down = -(-count // across)
    tall = picture.height / picture.width
    figure, axes = pyplot.subplots(
        down, across, figsize=(2.5 * across, (2.5 * tall + 0.32) * down + 0.5), squeeze=False
    )
    for place in axes.flat:
        place.set_axis_off()
    axes.flat[0].imshow(picture)
    axes.flat[0].set_title("the picture", color="0.4")
    for place, word, row in zip(list(axes.flat)[1:], table.rows, table.weights, strict=False):
        place.imshow(overlay(picture, row.reshape(photo.grid), smooth))
        place.set_title(word)
    figure.suptitle(f"“{trace.target.text}”   ({HOW[smooth]})", y=0.995)
    figure.tight_layout()
    return figure
