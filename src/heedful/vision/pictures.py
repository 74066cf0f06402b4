"""From a picture's file to the numbers a backbone reads. Whatever is wrong with a file is told in a sentence."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import numpy.typing as npt

from heedful.errors import DataError

if TYPE_CHECKING:
    from PIL.Image import Image

MOST = 80_000_000  # pixels: a larger picture is refused before it is unpacked
KINDS = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")


def open_picture(source: Path | BinaryIO, name: str = "") -> Image:
    """An RGB picture, upright; of an animation the first frame. A DataError says what is wrong."""
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError:
        raise DataError("pictures need Pillow: pip install 'heedful[caption]'") from None
    told = name or str(source)
    if isinstance(source, Path) and "://" in str(source).replace(":/", "://", 1) and not source.exists():
        raise DataError(f"{told}: addresses are not fetched; give a file")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its own warning of large pictures: we refuse them
            Image.MAX_IMAGE_PIXELS = None
            picture = Image.open(source)
            wide, high = picture.size
            if wide * high > MOST:
                raise DataError(f"{told}: {wide:,} x {high:,} pixels are too many (at most {MOST:,})")
            picture.seek(0)
            upright = ImageOps.exif_transpose(picture)
            return _plain(upright)
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"{told}: there is no such file") from None
    except IsADirectoryError:
        raise DataError(f"{told} is a folder; give pictures") from None
    except UnidentifiedImageError:
        raise DataError(f"{told}: not a picture that can be read") from None
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise DataError(f"{told}: damaged, or cut short: {error}") from None


def _plain(picture: Image) -> Image:
    """RGB; what is see-through is laid on white, 16 bits become 8."""
    from PIL import Image

    picture.load()
    if picture.mode.startswith("I;16") or picture.mode == "I":
        scaled = np.asarray(picture, dtype=np.float32)
        top = 65535.0 if scaled.max() > 255 else 255.0
        return Image.fromarray((scaled / top * 255).clip(0, 255).astype(np.uint8)).convert("RGB")
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        upper = picture.convert("RGBA")
        page = Image.new("RGBA", upper.size, "white")
        return Image.alpha_composite(page, upper).convert("RGB")
    return picture.convert("RGB")


def squared(picture: Image, size: int) -> npt.NDArray[np.uint8]:
    """The picture as (size, size, 3): the short side scaled, the middle cut out."""
    from PIL import Image

    wide, high = picture.size
    scale = size / min(wide, high)
    new = max(size, round(wide * scale)), max(size, round(high * scale))
    scaled = picture.resize(new, Image.Resampling.BICUBIC)
    left, top = (new[0] - size) // 2, (new[1] - size) // 2
    return np.asarray(scaled.crop((left, top, left + size, top + size)), dtype=np.uint8)


def whole(picture: Image, size: int) -> npt.NDArray[np.uint8]:
    """The picture as (size, size, 3), all of it, whatever its shape."""
    from PIL import Image

    return np.asarray(picture.resize((size, size), Image.Resampling.BICUBIC), dtype=np.uint8)
