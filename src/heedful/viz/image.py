"""Images in traces and pages: packing, and weights as brightness."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from heedful.errors import TraceError
from heedful.trace.schema import SourceImage

if TYPE_CHECKING:
    from PIL.Image import Image

MIN_BRIGHTNESS = 0.22  # of regions without weight
MAX_PIXELS = 420  # per side of an image inside a trace
MAX_DECODED_PIXELS = 16_000_000
FORMATS = ("JPEG", "PNG", "GIF", "WEBP")
Array = npt.NDArray[np.floating]


def overlay_weights(image: Image, weights: Array, smooth: bool = True) -> Image:
    """Return the image with the brightness of weights (row, column); the largest has full brightness."""
    from PIL import Image

    grid = np.asarray(weights, dtype=np.float32)
    grid = grid / max(float(grid.max()), 1e-12)
    resampling = Image.Resampling.BICUBIC if smooth else Image.Resampling.NEAREST
    light = np.asarray(Image.fromarray(grid).resize(image.size, resampling)).clip(0, 1)
    pixels = np.asarray(image, dtype=np.float32) * (MIN_BRIGHTNESS + (1 - MIN_BRIGHTNESS) * light[:, :, None])
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def shrink(image: Image, max_pixels: int = MAX_PIXELS) -> Image:
    """Return a copy whose sides have at most `max_pixels`."""
    copy = image.copy()
    copy.thumbnail((max_pixels, max_pixels))
    return copy


def to_data_uri(image: Image, quality: int = 82) -> str:
    """Return the image as a JPEG data URI."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def pack_image(image: Image, grid: tuple[int, int]) -> SourceImage:
    """Return an image as a trace stores it."""
    small = shrink(image)
    return SourceImage(data_uri=to_data_uri(small), width=small.width, height=small.height, grid=grid)


def unpack_image(packed: SourceImage) -> Image:
    """Return the image of a trace."""
    from PIL import Image

    try:
        image = Image.open(io.BytesIO(base64.b64decode(packed.data_uri.partition(",")[2])), formats=FORMATS)
        if image.width * image.height > MAX_DECODED_PIXELS:
            size = f"{image.width:,} by {image.height:,} pixels"
            raise TraceError(f"the image inside the trace has {size}, more than {MAX_DECODED_PIXELS:,} in all")
        return shrink(image.convert("RGB"))
    except TraceError:
        raise
    except Exception:  # Pillow's decoders raise many kinds of errors for damaged files
        raise TraceError("the image inside the trace cannot be decoded") from None
