"""Draws scenes: shapes at random positions on textured backgrounds.

Pixels are computed here, by additions and products only, instead of by a drawing library: they are the same under
any version of any package.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bits = NDArray[np.bool_]
Pixels = NDArray[np.uint8]

COLORS = {
    "red": (214, 40, 40),
    "orange": (247, 127, 0),
    "yellow": (250, 208, 44),
    "green": (46, 160, 67),
    "blue": (38, 98, 217),
    "purple": (126, 58, 178),
    "pink": (244, 124, 180),
    "black": (44, 44, 52),
}
SIZES = {"small": (0.15, 0.18), "big": (0.28, 0.33)}  # fractions of the side of the image
BACKGROUND_COLORS = (
    (250, 246, 236),
    (238, 241, 245),
    (226, 238, 244),
    (232, 243, 230),
    (246, 234, 232),
    (236, 230, 220),
)
SUBSAMPLES = 4  # per pixel and axis


class Box(NamedTuple):
    """Left, top, width and height in pixels."""

    x: int
    y: int
    w: int
    h: int


class SceneObject(NamedTuple):
    """One drawn shape; the box is as tight as integer pixels allow."""

    shape: str
    color: str
    size: str
    box: Box


def _star(x: Floats, y: Floats) -> Bits:
    """Return the points inside at least four of five half-planes, which is a pentagram."""
    normals = (
        (0.0, 1.0),
        (0.951057, 0.309017),
        (0.587785, -0.809017),
        (-0.587785, -0.809017),
        (-0.951057, 0.309017),
    )
    inside = sum((x * a - (y - 0.1) * b <= 0.33).astype(int) for a, b in normals)
    return np.asarray(inside >= 4)


def _heart(x: Floats, y: Floats) -> Bits:
    x, y = 1.16 * x, 0.12 - 1.14 * y
    bump = x * x + y * y - 1
    return np.asarray(bump * bump * bump - x * x * y * y * y <= 0)


SHAPES: dict[str, Callable[[Floats, Floats], Bits]] = {  # over [-1, 1] x [-1, 1], y downwards
    "circle": lambda x, y: x * x + y * y <= 1,
    "square": lambda x, y: np.maximum(np.abs(x), np.abs(y)) <= 0.92,
    "triangle": lambda x, y: (2 * np.abs(x) <= y + 1) & (y <= 0.8),
    "diamond": lambda x, y: np.abs(x) * 1.2 + np.abs(y) <= 1,
    "star": _star,
    "cross": lambda x, y: np.minimum(np.abs(x), np.abs(y)) <= 0.32,
    "heart": _heart,
    "moon": lambda x, y: (x * x + y * y <= 1) & ((x - 0.55) * (x - 0.55) + (y + 0.15) * (y + 0.15) > 0.72),
}


class Stamp(NamedTuple):
    """The coverage of each pixel by a shape: all of it, without its rim, and its shadow (wider by `blur`)."""

    cover: Floats
    body: Floats
    shadow: Floats
    blur: int


PlacedObject = tuple[SceneObject, Stamp]


@lru_cache(maxsize=256)
def _stamp(shape: str, side: int, size: int) -> Stamp:
    """Return the shape at `side` pixels, with the rim and shadow for an image of `size` pixels."""
    ticks = (np.arange(side * SUBSAMPLES) + 0.5) * (2 / (side * SUBSAMPLES)) - 1
    samples = SHAPES[shape](ticks[None, :] + 0 * ticks[:, None], ticks[:, None] + 0 * ticks[None, :])
    body = np.pad(samples, 1)
    for _ in range(max(1, size * SUBSAMPLES // 112)):  # erode by one sample
        inner = body.copy()
        inner[1:-1, 1:-1] &= body[:-2, 1:-1] & body[2:, 1:-1] & body[1:-1, :-2] & body[1:-1, 2:]
        body = inner
    cover = _mean_per_pixel(samples)
    rows, columns = (np.flatnonzero(cover.max(axis) >= 0.25) for axis in (1, 0))
    tight = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    radius = max(1, size // 56)
    shadow = np.pad(cover[tight], 2 * radius)
    for axis in (0, 1):
        shadow = np.sum([np.roll(shadow, shift, axis) for shift in range(-radius, radius + 1)], axis=0)
    shadow /= (2 * radius + 1) ** 2  # after the sums, which are exact in any order
    return Stamp(cover[tight], _mean_per_pixel(body[1:-1, 1:-1])[tight], shadow, 2 * radius)


def _mean_per_pixel(samples: Bits) -> Floats:
    rows, columns = samples.shape
    blocks = samples.reshape(rows // SUBSAMPLES, SUBSAMPLES, columns // SUBSAMPLES, SUBSAMPLES)
    return np.asarray(blocks.sum(axis=(1, 3), dtype=np.float64) / (SUBSAMPLES * SUBSAMPLES))


def _background(rng: Random, size: int) -> Floats:
    """Return a light background, plain or with a texture too faint to be taken for an object."""
    color = np.array(rng.choice(BACKGROUND_COLORS), dtype=np.float64)
    down, across = np.arange(size)[:, None], np.arange(size)[None, :]
    step = size // 14
    offset = rng.randrange(4 * step)
    dot = ((across + offset) % (2 * step) - step) ** 2 + (down % (2 * step) - step) ** 2
    textures = {
        "plain": np.zeros((size, size)),
        "grain": np.frombuffer(rng.randbytes(size * size), np.uint8).reshape(size, size) / 255 - 0.5,
        "light": (down + across) / size - 1,
        "stripes": ((across + down + offset) // step % 2) - 0.5,
        "checks": ((across + offset) // (2 * step) + down // (2 * step)) % 2 - 0.5,
        "dots": (5 * dot < step * step).astype(np.float64),
    }
    texture = textures[rng.choice(list(textures))]
    return np.asarray(color - 9 * texture[:, :, None])


def _blend(image: Floats, box: Box, cover: Floats, color: Floats) -> None:
    """Paint a color over the pixels of the box that are inside the image (a shadow may reach beyond it)."""
    top, left = max(0, -box.y), max(0, -box.x)
    part = image[max(0, box.y) : box.y + box.h, max(0, box.x) : box.x + box.w]
    alpha = cover[top : top + part.shape[0], left : left + part.shape[1], None]
    part += alpha * (color - part)


def paint(rng: Random, placed: Sequence[PlacedObject], size: int) -> Pixels:
    """Return the image of these objects, each with a darker rim, light from the top left and a soft shadow."""
    image = _background(rng, size)
    offset = max(1, size // 56)
    for item, stamp in placed:  # all shadows first: none falls on an object
        x, y, w, h = item.box
        box = Box(x - stamp.blur + offset, y - stamp.blur + offset, w + 2 * stamp.blur, h + 2 * stamp.blur)
        _blend(image, box, 0.28 * stamp.shadow, np.array([40.0, 40.0, 60.0]))
    for item, stamp in placed:
        color = np.array(COLORS[item.color]) + rng.uniform(-8, 8)
        down, across = np.arange(item.box.h)[:, None, None], np.arange(item.box.w)[None, :, None]
        light = 14 - 28 * (down + across) / (item.box.w + item.box.h)
        _blend(image, item.box, stamp.cover, 0.68 * color)
        _blend(image, item.box, stamp.body, color + light)
    return np.asarray(np.rint(image.clip(0, 255)), dtype=np.uint8)


def arrange(rng: Random, size: int) -> list[PlacedObject]:
    """Draw one to four objects with gaps between them; some are alike, so that there is something to count."""
    gap = size // 28
    kinds: list[tuple[str, str]] = []
    for _ in range(rng.choice((1, 2, 2, 3, 3, 4))):
        new = (rng.choice(list(SHAPES)), rng.choice(list(COLORS)))
        kinds.append(rng.choice(kinds) if kinds and rng.random() < 0.3 else new)
    placed: list[PlacedObject] = []
    attempts = 0
    while len(placed) < len(kinds):
        shape, color = kinds[len(placed)]
        size_name = rng.choice(list(SIZES))
        stamp = _stamp(shape, round(size * rng.uniform(*SIZES[size_name])), size)
        h, w = stamp.cover.shape
        box = Box(rng.randint(gap, size - gap - w), rng.randint(gap, size - gap - h), w, h)
        if all(max(gaps(box, item.box)) >= gap for item, _ in placed):
            placed.append((SceneObject(shape, color, size_name, box), stamp))
        attempts += 1
        if attempts % 100 == 0:  # the objects placed so far leave no room
            placed.clear()
    return placed


def gaps(one: Box, other: Box) -> tuple[int, int]:
    """Return the free pixels between two boxes, across and down; negative where they overlap."""
    across = max(other.x - one.x - one.w, one.x - other.x - other.w)
    return across, max(other.y - one.y - one.h, one.y - other.y - other.h)
