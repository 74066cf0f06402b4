"""Image files: every mode becomes an upright RGB image, and bad files are errors."""

from __future__ import annotations

import io
import os
import struct
import warnings
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fresh_python import run_python
from heedful.data.images.files import MAX_IMAGE_BYTES, ImageFile, load_image, resize_square
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


def _big_endian(path: Path) -> None:
    Image.new("I;16B", (40, 30), 300).save(path, "TIFF")


def _floats(path: Path) -> None:
    pixels = np.full((30, 40), np.inf, dtype=np.float32)
    pixels[0, 0] = np.nan
    Image.fromarray(pixels).save(path, "TIFF")


@pytest.mark.parametrize(
    "save", [_cmyk, _sixteen_bits, _animated, _transparent, _palette, _tiny, _webp, _big_endian, _floats]
)
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


def _png_header(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


def _truncated() -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(1).integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(buffer, "JPEG")
    return buffer.getvalue()[:-900]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("huge.png", _png_header(50_000, 50_000), "too many pixels .at most 80,000,000."),  # Pillow's own limit
        ("large.png", _png_header(8_900, 9_000), "8,900 x 9,000 pixels are too many"),
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


def test_random_damage_is_harmless_or_a_data_error(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    for suffix in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM"):
        buffer = io.BytesIO()
        two_colored_image().save(buffer, suffix)
        for _ in range(60):
            damaged = bytearray(buffer.getvalue())
            for position in rng.integers(len(damaged), size=4):
                damaged[position] = int(rng.integers(256))
            (tmp_path / "x").write_bytes(bytes(damaged[: rng.integers(1, 2 * len(damaged))]))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Pillow's, about damaged metadata
                with suppress(DataError):
                    assert load_image(tmp_path / "x").mode == "RGB"


def test_pillows_own_limit_is_left_as_it_is(tmp_path: Path) -> None:
    """It was set to None, for the whole process."""
    two_colored_image().save(tmp_path / "a.png")
    before = Image.MAX_IMAGE_PIXELS
    load_image(tmp_path / "a.png")
    assert Image.MAX_IMAGE_PIXELS == before is not None


def test_a_large_image_takes_memory_for_its_pixels_only(tmp_path: Path) -> None:
    """A file of 300 kB took 2.1 GB: 80 million pixels of 16 bits, converted by way of floats as a whole."""
    code = (
        "import resource, sys, pathlib\n"
        "from heedful.data.images.files import load_image\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "load_image(pathlib.Path(sys.argv[1]))\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)\n"
    )
    pixels = 4_000 * 5_000
    for mode in ("I;16", "RGBA"):
        Image.new(mode, (4_000, 5_000)).save(tmp_path / "x.png")
        done = run_python(code, str(tmp_path / "x.png"))
        assert int(done.stdout) < 12 * pixels, done.stderr


def test_formats_that_run_other_programs_are_not_opened(tmp_path: Path) -> None:
    two_colored_image().save(tmp_path / "x.png", "EPS")
    with pytest.raises(DataError, match=r"x.png: not an image in a known format .BMP, GIF"):
        load_image(tmp_path / "x.png")


def test_what_is_not_a_regular_file_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    with (tmp_path / "large.png").open("wb") as file:
        file.truncate(MAX_IMAGE_BYTES + 1)
    for name, message in (
        ("pipe.png", "not a regular file"),
        ("large.png", "500,000,001 bytes are too many"),
        ("n\0.png", "embedded null"),
        ("n" * 300, "File name too long"),
    ):
        for use in (load_image, lambda path: ImageFile(path).content_hash()):
            with pytest.raises(DataError, match=message):
                use(tmp_path / name)


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
