"""Loads image files as RGB images; problems raise a DataError."""

from __future__ import annotations

import hashlib
import io
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

import numpy as np
import numpy.typing as npt

from heedful.data.worlds.scenes import draw_scene
from heedful.errors import ArgumentError, DataError, TooLargeError

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PIXELS = 80_000_000  # larger images raise an error before they are decoded
MAX_IMAGE_BYTES = 500_000_000  # of an image file
STRIP_PIXELS = 1_000_000  # converted at a time
IMAGE_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")  # others run programs (EPS) or are rare
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
        _check_file(self.path)
        try:
            with self.path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read: {error.strerror}") from None

    def open(self) -> Image:
        return load_image(self.path)


@dataclass(frozen=True)
class ImageBytes:
    """An image in memory, such as one from stdin."""

    name: str
    data: bytes
    max_pixels: int = MAX_PIXELS

    def content_hash(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    def open(self) -> Image:
        return load_image(io.BytesIO(self.data), self.name, self.max_pixels)


@dataclass(frozen=True)
class ImageObject:
    """An image of Pillow."""

    name: str
    image: Image

    def content_hash(self) -> str:
        pixels = self.open()
        return hashlib.sha256(f"{pixels.size}".encode() + pixels.tobytes()).hexdigest()

    def open(self) -> Image:
        _check_size(self.image.size, self.name)
        return _to_rgb(_turn_upright(self.image.copy(), self.name), self.name)


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


def image_source(image: object, name: str = "image") -> ImageSource:
    """Return what a Python user calls an image as a source: a path, an image of Pillow, an array, or a file's bytes.

    An array has the shape (height, width) or (height, width, channels) with 1, 3 or 4 channels: whole numbers from 0
    to 255, or fractions from 0 to 1. `name` is the argument's, for errors.
    """
    if isinstance(image, str | Path):
        return ImageFile(Path(image))
    if isinstance(image, bytes | bytearray | memoryview):
        return ImageBytes(name, bytes(image))
    if hasattr(image, "getbands"):  # Pillow's; it need not be imported to see that an argument is something else
        return ImageObject(name, image)  # type: ignore[arg-type]
    if hasattr(image, "__array__"):
        return ImageObject(name, _image_of_array(np.asarray(image), name))
    kind = type(image).__name__
    raise ArgumentError(f"{name}: expected a path, an image of Pillow, an array or bytes, got {kind}")


def _image_of_array(array: npt.NDArray[np.generic], name: str) -> Image:
    from PIL import Image

    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (3, 4)):
        raise ArgumentError(
            f"{name}: an array of shape {array.shape} is not an image; expected (height, width) or (height, width, 3)"
        )
    values = array.astype(np.float64)
    maximum = 1.0 if np.issubdtype(array.dtype, np.floating) else 255.0
    if array.dtype == np.bool_:
        maximum = 1.0
    if not array.size or not bool(((values >= 0) & (values <= maximum)).all()):
        raise ArgumentError(f"{name}: the values of an image of {array.dtype} must be from 0 to {maximum:g}")
    return Image.fromarray(np.round(values * (255 / maximum)).astype(np.uint8))


def load_image(source: Path | BinaryIO, name: str = "", max_pixels: int = MAX_PIXELS) -> Image:
    """Return an upright RGB image; the first frame of an animation.

    Its size is checked in the header, before it is decoded. No state of Pillow is changed: other code of the process
    may use it at the same time, with limits of its own.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise DataError("images need Pillow: pip install 'heedful[caption]'") from None
    name = name or str(source)
    if isinstance(source, Path):
        _check_file(source)
    try:
        with Image.open(source, formats=IMAGE_FORMATS) as image:
            _check_size(image.size, name, max_pixels)
            image.seek(0)
            return _to_rgb(_turn_upright(image, name), name)
    except DataError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):  # a warning, if warnings are errors
        raise TooLargeError(f"{name}: too many pixels (at most {max_pixels:,}); resize the image") from None
    except UnidentifiedImageError:
        formats = ", ".join(IMAGE_FORMATS)
        raise DataError(f"{name}: not an image in a known format ({formats})") from None
    except MemoryError:
        raise
    except Exception as error:  # Pillow's decoders raise anything for a damaged file: struct.error, IndexError, ...
        raise DataError(f"{name}: damaged or truncated: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    return str(error).split("\n", 1)[0] or type(error).__name__


def _check_file(path: Path) -> None:
    """Raise DataError if the path is not a regular file of a reasonable size."""
    if "://" in str(path).replace(":/", "://", 1) and not path.exists():
        raise DataError(f"{path}: URLs are not downloaded; give a file")
    try:
        status = path.stat()
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except (OSError, ValueError) as error:  # no permission, a name that is too long, or one with NUL
        raise DataError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if stat.S_ISDIR(status.st_mode):
        raise DataError(f"{path} is a folder; give image files")
    if not stat.S_ISREG(status.st_mode):
        raise DataError(f"{path}: not a regular file; an image can be piped to stdin")
    if status.st_size > MAX_IMAGE_BYTES:
        raise DataError(f"{path}: {status.st_size:,} bytes are too many for an image (at most {MAX_IMAGE_BYTES:,})")


def _check_size(size: tuple[int, int], name: str, max_pixels: int = MAX_PIXELS) -> None:
    width, height = size
    if width * height > max_pixels:
        raise TooLargeError(
            f"{name}: {width:,} x {height:,} pixels are too many (at most {max_pixels:,}); resize the image"
        )
    if width < 1 or height < 1:
        raise DataError(f"{name}: the image is empty ({width} x {height} pixels)")


def _turn_upright(image: Image, name: str) -> Image:
    """Rotate an image as its EXIF data says."""
    from PIL import ImageOps

    image.load()
    try:
        ImageOps.exif_transpose(image, in_place=True)
    except Exception as error:
        raise DataError(f"{name}: its EXIF data is damaged: {_reason(error)}") from None
    return image


def _to_rgb(image: Image, name: str) -> Image:
    """Return an 8-bit RGB image; transparent pixels become white. Rows are converted in strips, to save memory."""
    from PIL import Image

    try:
        if image.mode.startswith("I;16") and image.mode != "I;16":  # other byte orders have few operations
            image = image.convert("I")
        wide = image.mode in ("I", "I;16") and image.getextrema()[1] > 255  # type: ignore[operator]
        maximum = 65535.0 if wide else 255.0
        result = Image.new("RGB", image.size)
        rows = max(1, STRIP_PIXELS // image.width)
        for top in range(0, image.height, rows):
            strip = image.crop((0, top, image.width, min(top + rows, image.height)))
            result.paste(_strip_to_rgb(strip, maximum), (0, top))
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"{name}: images of mode {image.mode} cannot be converted to RGB: {error}") from None
    return result


def _strip_to_rgb(image: Image, maximum: float) -> Image:
    from PIL import Image

    if image.mode in ("I", "I;16", "F"):
        values = np.nan_to_num(np.asarray(image, dtype=np.float32)).clip(0, maximum)
        return Image.fromarray((values / maximum * 255).astype(np.uint8)).convert("RGB")
    if image.mode in ("RGBA", "RGBa", "LA", "La", "PA") or "transparency" in image.info:
        foreground = image.convert("RGBA")
        background = Image.new("RGBA", foreground.size, "white")
        return Image.alpha_composite(background, foreground).convert("RGB")
    return image.convert("RGB")


def resize_square(image: Image, size: int) -> npt.NDArray[np.uint8]:
    """Return the complete image as (size, size, 3), whatever its aspect ratio."""
    from PIL import Image

    return np.asarray(image.resize((size, size), Image.Resampling.BICUBIC), dtype=np.uint8)
