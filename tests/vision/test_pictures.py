"""Whatever a file holds: an upright RGB picture, or a sentence that says what is wrong with it."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from heedful.errors import DataError
from heedful.vision.pictures import FilePicture, open_picture, whole


def drawn(wide: int = 40, high: int = 30) -> Image.Image:
    pixels = np.zeros((high, wide, 3), dtype=np.uint8)
    pixels[: high // 2, :, 0] = 250  # red above
    return Image.fromarray(pixels)


def _cmyk(path: Path) -> None:
    drawn().convert("CMYK").save(path, "JPEG")


def _sixteen(path: Path) -> None:
    Image.fromarray((np.arange(1200, dtype=np.uint16) * 50).reshape(30, 40)).save(path, "PNG")


def _animated(path: Path) -> None:
    drawn().save(path, "GIF", save_all=True, append_images=[Image.new("RGB", (40, 30))])


def _clear(path: Path) -> None:
    Image.new("RGBA", (40, 30), (0, 0, 0, 0)).save(path, "PNG")


def _palette(path: Path) -> None:
    drawn().convert("P").save(path, "PNG", transparency=0)


def _tiny(path: Path) -> None:
    drawn(1, 1).save(path, "PNG")


def _webp(path: Path) -> None:
    drawn().save(path, "WEBP")


@pytest.mark.parametrize("make", [_cmyk, _sixteen, _animated, _clear, _palette, _tiny, _webp])
def test_odd_pictures_are_read(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "x")
    found = open_picture(tmp_path / "x")
    assert found.mode == "RGB"
    assert whole(found, 32).shape == (32, 32, 3)


def test_what_cannot_be_seen_through_lies_on_white(tmp_path: Path) -> None:
    _clear(tmp_path / "x.png")
    assert np.asarray(open_picture(tmp_path / "x.png")).min() == 255


def test_a_turned_photograph_is_put_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held on its side
    drawn().save(tmp_path / "x.jpg", exif=exif)
    assert open_picture(tmp_path / "x.jpg").size == (30, 40)


def test_of_an_animation_the_first_frame_is_seen(tmp_path: Path) -> None:
    _animated(tmp_path / "x.gif")
    assert np.asarray(open_picture(tmp_path / "x.gif"))[2, 2, 0] > 200


def _huge_header() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


def _cut_short() -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(1).integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(
        buffer, "JPEG"
    )
    return buffer.getvalue()[:-900]


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("huge.png", _huge_header(), "50,000 x 50,000 pixels are too many"),
        ("cut.jpg", _cut_short(), "damaged, or cut short"),
        ("text.jpg", b"this is no picture\n", "not a picture that can be read"),
        ("empty.jpg", b"", "not a picture that can be read"),
    ],
)
def test_broken_files_are_told_by_name(name: str, data: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=said) as error:
        open_picture(tmp_path / name)
    assert name in str(error.value)


def test_addresses_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="addresses are not fetched"):
        open_picture(Path("http://somewhere/x.jpg"))
    with pytest.raises(DataError, match="there is no such file"):
        open_picture(tmp_path / "none.jpg")
    with pytest.raises(DataError, match="is a folder"):
        open_picture(tmp_path)


def test_a_picture_is_known_by_its_content(tmp_path: Path) -> None:
    drawn().save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes((tmp_path / "a.png").read_bytes())
    assert FilePicture(tmp_path / "a.png").content() == FilePicture(tmp_path / "b.png").content()
