"""Loads image files as RGB images; problems raise a DataError."""

from __future__ import annotations

import hashlib
import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

import numpy as np
import numpy.typing as npt

from heedful.data.worlds.scenes import draw_scene
from heedful.errors import DataError

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PIXELS = 80_000_000  # larger images raise an error before they are decoded
IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")


class ImageSource(Protocol):
    """An image that can be opened."""

    @property
    def name(self) -> str: ...
    def content_hash(self) -> str: ...  # the same for the same image, whatever its name
    def open(self) -> Image: ...


@dataclass(frozen=True)
class ImageFile:
    """An image in a file."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    def content_hash(self) -> str:
        try:
            return hashlib.sha256(self.path.read_bytes()).hexdigest()
        except FileNotFoundError:
            raise DataError(f"{self.path}: there is no such image") from None
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read: {error.strerror}") from None

    def open(self) -> Image:
        return load_image(self.path)


@dataclass(frozen=True)
class ImageBytes:
    """An image in memory, such as one from stdin."""

    name: str
    data: bytes

    def content_hash(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    def open(self) -> Image:
        return load_image(io.BytesIO(self.data), self.name)


@dataclass(frozen=True)
class SceneImage:
    """An image of the scenes world, drawn when it is opened."""

    number: int
    seed: int
    pixels: int

    @property
    def name(self) -> str:
        return f"scene-{self.number:06d}"

    def content_hash(self) -> str:
        return hashlib.sha256(f"scene {self.number} {self.seed} {self.pixels}".encode()).hexdigest()

    def open(self) -> Image:
        from PIL import Image

        return Image.fromarray(draw_scene(self.number, self.seed, self.pixels).image)


def load_image(source: Path | BinaryIO, name: str = "") -> Image:
    """Return an upright RGB image; the first frame of an animation."""
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError:
        raise DataError("images need Pillow: pip install 'heedful[caption]'") from None
    name = name or str(source)
    if isinstance(source, Path) and "://" in str(source).replace(":/", "://", 1) and not source.exists():
        raise DataError(f"{name}: URLs are not downloaded; give a file")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's warning about large images; MAX_PIXELS limits them below
            Image.MAX_IMAGE_PIXELS = None
            with Image.open(source) as image:
                width, height = image.size
                if width * height > MAX_PIXELS:
                    raise DataError(
                        f"{name}: {width:,} x {height:,} pixels are too many (at most {MAX_PIXELS:,}); resize the image"
                    )
                image.seek(0)
                return _to_rgb(ImageOps.exif_transpose(image))
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"{name}: there is no such file") from None
    except IsADirectoryError:
        raise DataError(f"{name} is a folder; give image files") from None
    except UnidentifiedImageError:
        raise DataError(f"{name}: not an image in a known format") from None
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise DataError(f"{name}: damaged or truncated: {error}") from None


def _to_rgb(image: Image) -> Image:
    """Return an 8-bit RGB image; transparent pixels become white."""
    from PIL import Image

    image.load()
    if image.mode.startswith("I;16") or image.mode == "I":
        values = np.asarray(image, dtype=np.float32)
        maximum = 65535.0 if values.max() > 255 else 255.0
        return Image.fromarray((values / maximum * 255).clip(0, 255).astype(np.uint8)).convert("RGB")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        foreground = image.convert("RGBA")
        background = Image.new("RGBA", foreground.size, "white")
        return Image.alpha_composite(background, foreground).convert("RGB")
    return image.convert("RGB")


def resize_square(image: Image, size: int) -> npt.NDArray[np.uint8]:
    """Return the complete image as (size, size, 3), whatever its aspect ratio."""
    from PIL import Image

    return np.asarray(image.resize((size, size), Image.Resampling.BICUBIC), dtype=np.uint8)
