"""Image files: every mode becomes an upright RGB image, and bad files are errors."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from heedful.data.images.files import ImageFile, load_image, resize_square
from heedful.errors import DataError


def two_colored_image(width: int = 40, height: int = 30) -> Image.Image:
    pixels = np.zeros((height, width, 3), dtype=np.uint8)
    pixels[: height // 2, :, 0] = 250  # red at the top
    return Image.fromarray(pixels)


def _cmyk(path: Path) -> None:
    two_colored_image().convert("CMYK").save(path, "JPEG")


def _sixteen_bits(path: Path) -> None:
    Image.fromarray((np.arange(1200, dtype=np.uint16) * 50).reshape(30, 40)).save(path, "PNG")


def _animated(path: Path) -> None:
    two_colored_image().save(path, "GIF", save_all=True, append_images=[Image.new("RGB", (40, 30))])


def _transparent(path: Path) -> None:
    Image.new("RGBA", (40, 30), (0, 0, 0, 0)).save(path, "PNG")


def _palette(path: Path) -> None:
    two_colored_image().convert("P").save(path, "PNG", transparency=0)


def _tiny(path: Path) -> None:
    two_colored_image(1, 1).save(path, "PNG")


def _webp(path: Path) -> None:
    two_colored_image().save(path, "WEBP")


@pytest.mark.parametrize("save", [_cmyk, _sixteen_bits, _animated, _transparent, _palette, _tiny, _webp])
def test_every_mode_becomes_rgb(save: Callable[[Path], None], tmp_path: Path) -> None:
    save(tmp_path / "x")
    image = load_image(tmp_path / "x")
    assert image.mode == "RGB"
    assert resize_square(image, 32).shape == (32, 32, 3)


def test_transparent_pixels_become_white(tmp_path: Path) -> None:
    _transparent(tmp_path / "x.png")
    assert np.asarray(load_image(tmp_path / "x.png")).min() == 255


def test_a_rotated_photograph_is_turned_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held on its side
    two_colored_image().save(tmp_path / "x.jpg", exif=exif)
    assert load_image(tmp_path / "x.jpg").size == (30, 40)


def test_the_first_frame_of_an_animation_is_used(tmp_path: Path) -> None:
    _animated(tmp_path / "x.gif")
    assert np.asarray(load_image(tmp_path / "x.gif"))[2, 2, 0] > 200


def _huge_header() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


def _truncated() -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(1).integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(buffer, "JPEG")
    return buffer.getvalue()[:-900]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("huge.png", _huge_header(), "50,000 x 50,000 pixels are too many"),
        ("cut.jpg", _truncated(), "damaged or truncated"),
        ("text.jpg", b"this is not an image\n", "not an image in a known format"),
        ("empty.jpg", b"", "not an image in a known format"),
    ],
)
def test_a_bad_file_is_an_error_with_its_name(name: str, data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=message) as error:
        load_image(tmp_path / name)
    assert name in str(error.value)


def test_urls_and_folders_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="URLs are not downloaded"):
        load_image(Path("http://somewhere/x.jpg"))
    with pytest.raises(DataError, match="there is no such file"):
        load_image(tmp_path / "none.jpg")
    with pytest.raises(DataError, match="is a folder"):
        load_image(tmp_path)


def test_an_image_is_identified_by_its_content(tmp_path: Path) -> None:
    two_colored_image().save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes((tmp_path / "a.png").read_bytes())
    assert ImageFile(tmp_path / "a.png").content_hash() == ImageFile(tmp_path / "b.png").content_hash()
