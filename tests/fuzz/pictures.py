"""Cases of image files, read by `heedful caption`."""

from __future__ import annotations

import io
import struct
import zlib
from functools import cache
from random import Random

from PIL import Image

from fuzz.case import Case
from fuzz.corpus import Corpus
from fuzz.mutate import mutate_bytes

FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
MODES = ("RGB", "L", "RGBA", "P", "1", "LA", "I", "F", "CMYK", "I;16")
SIZES = (0, 1, 7, 65_535, 65_536, 2**31 - 1, 2**32 - 1, 20_000)


def picture_case(corpus: Corpus, rng: Random) -> Case:
    """Return a changed image and a command that captions it."""
    kind = rng.choice(FORMATS)
    data = make_image(kind, rng.choice(MODES), rng.choice(((16, 16), (1, 1), (1, 300), (64, 40))))
    choice = rng.random()
    if choice < 0.5:
        data = mutate_bytes(data, rng, rng.choice((1, 1, 3)))
    elif choice < 0.75:
        data = change_size(kind, data, rng)
    name = f"p.{rng.choice((kind.lower(), kind.lower(), 'png', 'jpg', 'txt'))}"
    files = {f"m/{file}": content for file, content in corpus.models["caption"].items()}
    options = rng.choice(((), (), ("--json",), ("--beam", "2")))
    if rng.random() < 0.2:
        return Case("picture", ("caption", "-m", "m", *options), files, data)
    names = (name, "photo.png") if rng.random() < 0.15 else (name,)
    if "photo.png" in names:
        files["photo.png"] = corpus.photo
    return Case("picture", ("caption", *names, "-m", "m", *options), {**files, name: data})


def picture_bomb_case(corpus: Corpus, rng: Random) -> Case:
    """Return a small file of a very large image."""
    files = {f"m/{file}": content for file, content in corpus.models["caption"].items()}
    return Case(
        "bomb",
        ("caption", "p.png", "-m", "m"),
        {**files, "p.png": _png(rng.choice((8_000, 20_000)), rng.choice((0, 2)))},
    )


@cache
def make_image(kind: str, mode: str, size: tuple[int, int]) -> bytes:
    """Return the file of a small image; formats that lack a mode get RGB."""
    image = Image.new(mode, size)
    out = io.BytesIO()
    try:
        image.save(out, kind)
    except (OSError, KeyError, ValueError):
        out = io.BytesIO()
        image.convert("RGB" if mode != "I;16" else "L").save(out, kind)
    return out.getvalue()


def change_size(kind: str, data: bytes, rng: Random) -> bytes:
    """Write another width or height into the header, with a correct checksum."""
    size = rng.choice(SIZES)
    if kind == "PNG":
        at = rng.choice((16, 20))
        data = data[:at] + struct.pack(">I", size) + data[at + 4 :]
        return data[:29] + struct.pack(">I", zlib.crc32(data[12:29])) + data[33:]
    if kind == "BMP":
        at = rng.choice((18, 22))
        return data[:at] + struct.pack("<I", size) + data[at + 4 :]
    if kind == "GIF":
        return data[:6] + struct.pack("<H", size & 0xFFFF) + data[8:]
    if kind == "PPM":
        return data.replace(b"16", str(size).encode(), 1)
    return mutate_bytes(data, rng, 2)


@cache
def _png(side: int, color: int) -> bytes:
    """Return a PNG of one color, of `side` x `side` pixels; `color` 0 is gray, 2 is RGB."""
    row = b"\x00" * (1 + side * (3 if color else 1))
    compressor = zlib.compressobj(1)
    body = b"".join(compressor.compress(row) for _ in range(side)) + compressor.flush()
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", side, side, 8, color, 0, 0, 0)), (b"IDAT", body), (b"IEND", b""))
    parts = [
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
