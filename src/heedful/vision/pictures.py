"""From a picture's file to the numbers a backbone reads. What is wrong with a file is told in a sentence."""

from __future__ import annotations

import hashlib
import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

import numpy as np
import numpy.typing as npt

from heedful.data.worlds.scenes import scene
from heedful.errors import DataError

if TYPE_CHECKING:
    from PIL.Image import Image

MOST = 80_000_000  # pixels: a larger picture is refused before it is unpacked
KINDS = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")


class Picture(Protocol):
    """Something that can be looked at."""

    @property
    def name(self) -> str: ...
    def content(self) -> str: ...  # the same for the same picture, whatever its name
    def open(self) -> Image: ...


@dataclass(frozen=True)
class FilePicture:
    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    def content(self) -> str:
        try:
            return hashlib.sha256(self.path.read_bytes()).hexdigest()
        except FileNotFoundError:
            raise DataError(f"{self.path}: there is no such picture") from None
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read: {error.strerror}") from None

    def open(self) -> Image:
        return open_picture(self.path)


@dataclass(frozen=True)
class BytesPicture:
    """A picture that came through a pipe."""

    name: str
    data: bytes

    def content(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    def open(self) -> Image:
        return open_picture(io.BytesIO(self.data), self.name)


@dataclass(frozen=True)
class ScenePicture:
    """A drawn scene, drawn when it is looked at."""

    number: int
    seed: int
    pixels: int

    @property
    def name(self) -> str:
        return f"scene-{self.number:06d}"

    def content(self) -> str:
        return hashlib.sha256(repr(self).encode()).hexdigest()

    def open(self) -> Image:
        from PIL import Image

        return Image.fromarray(scene(self.number, self.seed, self.pixels).image)


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
            with Image.open(source) as picture:
                wide, high = picture.size
                if wide * high > MOST:
                    raise DataError(f"{told}: {wide:,} x {high:,} pixels are too many (at most {MOST:,})")
                picture.seek(0)
                return _plain(ImageOps.exif_transpose(picture))
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


def whole(picture: Image, size: int) -> npt.NDArray[np.uint8]:
    """The picture as (size, size, 3), all of it, whatever its shape."""
    from PIL import Image

    return np.asarray(picture.resize((size, size), Image.Resampling.BICUBIC), dtype=np.uint8)
