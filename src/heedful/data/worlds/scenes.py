"""Drawn scenes with captions, every content word of which has gold regions.

A phrase ("two small red stars") speaks of *all* things in the picture that fit it, and its number word
counts them; so every phrase is true and the regions of its words are no matter of taste. A relation ("left
of") holds between whole boxes: all of the one side end before any of the other begins. A place ("in the top
left corner", "on the left", "in the middle") goes by the thirds of the picture that the centres lie in.
Captions begin with any of the things, or, in the order "left", with the one that begins farthest to the left:
then a picture decides what its captions speak of, and a model can know where to look before it says a word.

Pixels are computed here, by additions and products only, instead of by a drawing library: they are the same
under any version of anything. Pillow only writes the PNG files.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from random import Random
from types import ModuleType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.data.worlds.disk import claim, in_range, split_sizes, write_readme, write_text
from heedful.errors import WorldError, nearest
from heedful.whole import whole

Floats = NDArray[np.float64]
Bits = NDArray[np.bool_]
Pixels = NDArray[np.uint8]

COLOURS = {
    "red": (214, 40, 40),
    "orange": (247, 127, 0),
    "yellow": (250, 208, 44),
    "green": (46, 160, 67),
    "blue": (38, 98, 217),
    "purple": (126, 58, 178),
    "pink": (244, 124, 180),
    "black": (44, 44, 52),
}
SIZES = {"small": (0.15, 0.18), "big": (0.28, 0.33)}  # of the picture's side
PAPERS = (
    (250, 246, 236),
    (238, 241, 245),
    (226, 238, 244),
    (232, 243, 230),
    (246, 234, 232),
    (236, 230, 220),
)
NUMBERS = ("no", "a", "two", "three", "four")
FINE = 4  # samples a pixel and axis


class Box(NamedTuple):
    """Pixels: left, top, width, height."""

    x: int
    y: int
    w: int
    h: int


class Thing(NamedTuple):
    """One drawn shape; the box is as tight as whole pixels allow."""

    shape: str
    colour: str
    size: str
    box: Box


class Scene(NamedTuple):
    """A picture with its captions; `regions[c][w]` are the boxes that word `w` of caption `c` speaks of."""

    image: Pixels  # (height, width, 3)
    captions: tuple[tuple[str, ...], ...]
    regions: tuple[tuple[tuple[Box, ...], ...], ...]
    objects: tuple[Thing, ...]


# --- drawing ------------------------------------------------------------------------------------------------


def _star(x: Floats, y: Floats) -> Bits:
    """Five half-planes; a star is what lies inside at least four of them (the pentagram's own rule)."""
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


class _Stamp(NamedTuple):
    """How much of each pixel a shape covers: all of it, without its rim, and its shadow (wider by `blur`)."""

    cover: Floats
    body: Floats
    shadow: Floats
    blur: int


_Placed = tuple[Thing, _Stamp]


@lru_cache(maxsize=256)
def _stamp(shape: str, side: int, size: int) -> _Stamp:
    """The shape at `side` pixels, with the rim and shadow that suit a picture of `size`."""
    ticks = (np.arange(side * FINE) + 0.5) * (2 / (side * FINE)) - 1
    fine = SHAPES[shape](ticks[None, :] + 0 * ticks[:, None], ticks[:, None] + 0 * ticks[None, :])
    body = np.pad(fine, 1)
    for _ in range(max(1, size * FINE // 112)):  # wear one sample off all round
        inner = body.copy()
        inner[1:-1, 1:-1] &= body[:-2, 1:-1] & body[2:, 1:-1] & body[1:-1, :-2] & body[1:-1, 2:]
        body = inner
    cover = _per_pixel(fine)
    rows, columns = (np.flatnonzero(cover.max(axis) >= 0.25) for axis in (1, 0))
    tight = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    reach = max(1, size // 56)
    shadow = np.pad(cover[tight], 2 * reach)
    for axis in (0, 1):
        shadow = np.sum([np.roll(shadow, shift, axis) for shift in range(-reach, reach + 1)], axis=0)
    shadow /= (2 * reach + 1) ** 2  # after the sums: they are exact, whatever their order
    return _Stamp(cover[tight], _per_pixel(body[1:-1, 1:-1])[tight], shadow, 2 * reach)


def _per_pixel(fine: Bits) -> Floats:
    rows, columns = fine.shape
    blocks = fine.reshape(rows // FINE, FINE, columns // FINE, FINE)
    return np.asarray(blocks.sum(axis=(1, 3), dtype=np.float64) / (FINE * FINE))


def _background(rng: Random, size: int) -> Floats:
    """Light paper, plain or with a texture too faint to be taken for a thing."""
    paper = np.array(rng.choice(PAPERS), dtype=np.float64)
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
    return np.asarray(paper - 9 * texture[:, :, None])


def _blend(image: Floats, box: Box, cover: Floats, ink: Floats) -> None:
    """Lay ink over the box's pixels, as far as they lie in the picture (a shadow may reach out of it)."""
    top, left = max(0, -box.y), max(0, -box.x)
    part = image[max(0, box.y) : box.y + box.h, max(0, box.x) : box.x + box.w]
    share = cover[top : top + part.shape[0], left : left + part.shape[1], None]
    part += share * (ink - part)


def _paint(rng: Random, placed: Sequence[_Placed], size: int) -> Pixels:
    """Shapes like stickers: a darker rim, light from the top left, a soft shadow."""
    image = _background(rng, size)
    drop = max(1, size // 56)
    for thing, stamp in placed:  # all shadows first: none falls on a thing
        x, y, w, h = thing.box
        box = Box(x - stamp.blur + drop, y - stamp.blur + drop, w + 2 * stamp.blur, h + 2 * stamp.blur)
        _blend(image, box, 0.28 * stamp.shadow, np.array([40.0, 40.0, 60.0]))
    for thing, stamp in placed:
        ink = np.array(COLOURS[thing.colour]) + rng.uniform(-8, 8)
        down, across = np.arange(thing.box.h)[:, None, None], np.arange(thing.box.w)[None, :, None]
        light = 14 - 28 * (down + across) / (thing.box.w + thing.box.h)
        _blend(image, thing.box, stamp.cover, 0.68 * ink)
        _blend(image, thing.box, stamp.body, ink + light)
    return np.asarray(np.rint(image.clip(0, 255)), dtype=np.uint8)


def _arrange(rng: Random, size: int) -> list[_Placed]:
    """One to four things at places that keep a gap; some alike, so that there is something to count."""
    gap = size // 28
    kinds: list[tuple[str, str]] = []
    for _ in range(rng.choice((1, 2, 2, 3, 3, 4))):
        new = (rng.choice(list(SHAPES)), rng.choice(list(COLOURS)))
        kinds.append(rng.choice(kinds) if kinds and rng.random() < 0.3 else new)
    placed: list[_Placed] = []
    tries = 0
    while len(placed) < len(kinds):
        shape, colour = kinds[len(placed)]
        name = rng.choice(list(SIZES))
        stamp = _stamp(shape, round(size * rng.uniform(*SIZES[name])), size)
        h, w = stamp.cover.shape
        box = Box(rng.randint(gap, size - gap - w), rng.randint(gap, size - gap - h), w, h)
        if all(max(_gaps(box, thing.box)) >= gap for thing, _ in placed):
            placed.append((Thing(shape, colour, name, box), stamp))
        tries += 1
        if tries % 100 == 0:  # what stands leaves no room
            placed.clear()
    return placed


def _gaps(one: Box, other: Box) -> tuple[int, int]:
    """Free pixels between two boxes, across and down; negative where they overlap."""
    across = max(other.x - one.x - one.w, one.x - other.x - other.w)
    return across, max(other.y - one.y - one.h, one.y - other.y - other.h)


# --- captions -----------------------------------------------------------------------------------------------

_Said = list[tuple[str, tuple[Box, ...]]]  # words with the boxes they speak of

RELATIONS = {
    "left": ("left of", "to the left of"),
    "right": ("right of", "to the right of"),
    "above": ("above",),
    "below": ("below", "under"),
}
DETAILS = {"full": 4, "colour": 4, "size": 1, "shape": 1, "hue": 1}  # how often a phrase says how much
NOUNS = {noun: shape for shape in (*SHAPES, "shape") for noun in (shape, f"{shape}s", f"{shape}es")}
CONTENT = frozenset((*SIZES, *COLOURS, *NOUNS, *NUMBERS[2:]))  # how many, how big, which colour, what
EMPTY_WORDS = frozenset("a an and at here in is are of on the there to".split())


def _say(text: str, boxes: tuple[Box, ...]) -> _Said:
    return [(word, () if word in EMPTY_WORDS else boxes) for word in text.split()]


class _Phrase(NamedTuple):
    said: _Said
    boxes: tuple[Box, ...]

    @property
    def hull(self) -> Box:
        left, top = min(box.x for box in self.boxes), min(box.y for box in self.boxes)
        right, bottom = max(box.x + box.w for box in self.boxes), max(box.y + box.h for box in self.boxes)
        return Box(left, top, right - left, bottom - top)

    @property
    def verb(self) -> str:
        return "is" if len(self.boxes) == 1 else "are"


def _phrase(rng: Random, things: Sequence[Thing], chosen: Thing) -> _Phrase:
    """Words that fit `chosen`, and all else they fit."""
    detail = rng.choices(list(DETAILS), list(DETAILS.values()))[0]
    size = chosen.size if detail in ("full", "size") else None
    colour = chosen.colour if detail in ("full", "colour", "hue") else None
    shape = chosen.shape if detail != "hue" else None
    boxes = _fitting(things, size, colour, shape)
    noun = shape or "shape"
    if len(boxes) > 1:
        noun += "es" if noun == "cross" else "s"
    words = " ".join(filter(None, (size, colour, noun)))
    number = "an" if len(boxes) == 1 and words.startswith("o") else NUMBERS[len(boxes)]
    return _Phrase(_say(f"{number} {words}", boxes), boxes)


def _relation(one: _Phrase, other: _Phrase) -> str | None:
    """The side of `other` on which all of `one` lies, where the gap is widest; None if they intermingle."""
    a, b = one.hull, other.hull
    across, down = _gaps(a, b)
    if max(across, down) < 0:
        return None
    if across >= down:
        return "left" if a.x < b.x else "right"
    return "above" if a.y < b.y else "below"


def _place(phrase: _Phrase, size: int) -> str | None:
    """Where in the picture all boxes lie, by thirds; None if they lie in different thirds."""
    spots = {
        (min(2, 3 * (2 * box.y + box.h) // (2 * size)), min(2, 3 * (2 * box.x + box.w) // (2 * size)))
        for box in phrase.boxes
    }
    if len(spots) > 1:
        return None
    row, column = spots.pop()
    upright, sideways = ("top", "", "bottom")[row], ("left", "", "right")[column]
    if upright and sideways:
        return f"in the {upright} {sideways} corner"
    return f"at the {upright}" if upright else f"on the {sideways}" if sideways else "in the middle"


ORDERS: dict[str, Callable[[Random, Sequence[Thing]], Thing]] = {  # which thing is spoken of first
    "any": Random.choice,
    "left": lambda _, things: min(things, key=lambda thing: (thing.box.x, thing.box.y)),
}


def _caption(rng: Random, things: Sequence[Thing], size: int, order: str) -> _Said:
    """One true sentence, or less than a sentence, about some of the things."""
    first = ORDERS[order]
    one = _phrase(rng, things, first(rng, things))
    rest = [thing for thing in things if thing.box not in one.boxes]
    other = _phrase(rng, things, first(rng, rest)) if rest else None
    if other and set(one.boxes) & set(other.boxes):
        other = None  # "a red star left of two stars" would speak of the red one twice
    relation, place = other and _relation(one, other), _place(one, size)
    if other and relation and rng.random() < 0.75:
        form = f"{rng.choice(('', one.verb))} {rng.choice(RELATIONS[relation])}"
        return [*one.said, *_say(form, one.boxes + other.boxes), *other.said]
    if other and rng.random() < 0.7:
        said = [*one.said, *_say("and", ()), *other.said]
    elif place and rng.random() < 0.6:
        said = [*one.said, *_say(place, one.boxes)]
    else:
        said = one.said
    return [*_say(rng.choice(("", "", f"there {one.verb}", f"here {one.verb}")), ()), *said]


def _captions(rng: Random, things: Sequence[Thing], size: int, captions: int, order: str) -> list[_Said]:
    """Different captions as long as there are some left to say."""
    said: list[_Said] = []
    for _ in range(captions):
        new = _caption(rng, things, size, order)
        for _ in range(50):
            if new not in said:
                break
            new = _caption(rng, things, size, order)
        said.append(new)
    return said


def scenes(n: int, seed: int = 1, size: int = 112, captions: int = 5, order: str = "any") -> Iterator[Scene]:
    """Draw `n` scenes; a longer draw begins with the shorter one of the same seed.

    >>> scene = next(scenes(1))
    >>> [(word, len(boxes)) for word, boxes in zip(scene.captions[1], scene.regions[1], strict=True)]
    [('a', 0), ('small', 1), ('pink', 1), ('cross', 1), ('below', 2), ('a', 0), ('big', 1), ...]
    """
    in_range("n", n, 1)
    in_range("seed", seed, 0)
    in_range("size", size, 48, 1024)
    in_range("captions", captions, 1)
    if order not in ORDERS:
        raise WorldError(f"order {order!r} is unknown; {nearest(order, ORDERS)}")
    return (scene(number, seed, size, captions, order) for number in range(n))


def scene(number: int, seed: int = 1, size: int = 112, captions: int = 5, order: str = "any") -> Scene:
    """One scene of a seed."""
    rng = Random(f"scenes {seed} {number}")
    placed = _arrange(rng, size)
    things = tuple(thing for thing, _ in placed)
    image = _paint(rng, placed, size)
    said = _captions(rng, things, size, captions, order)
    return Scene(
        image,
        tuple(tuple(word for word, _ in caption) for caption in said),
        tuple(tuple(boxes for _, boxes in caption) for caption in said),
        things,
    )


class _Named(NamedTuple):
    """A phrase found in a caption, and the things that fit it."""

    start: int
    end: int
    boxes: tuple[Box, ...]


def ground(words: Sequence[str], things: Sequence[Thing]) -> tuple[tuple[Box, ...], ...]:
    """For every word of anybody's caption of a scene: the boxes it speaks of; none, where it is wrong.

    >>> scene = next(scenes(1))
    >>> ground(scene.captions[1], scene.objects) == scene.regions[1]
    True
    """
    named = list(_named(words, things))
    found: list[tuple[Box, ...]] = [()] * len(words)
    for phrase in named:
        found[phrase.start : phrase.end] = [phrase.boxes] * (phrase.end - phrase.start)
    for at, word in enumerate(words):
        if word in EMPTY_WORDS:
            found[at] = ()
        elif not any(phrase.start <= at < phrase.end for phrase in named):
            before = [phrase for phrase in named if phrase.end <= at][-1:]
            after = [phrase for phrase in named if phrase.start > at][:1]
            known = before + after
            found[at] = tuple(box for phrase in known for box in phrase.boxes)
    return tuple(found)


def _named(words: Sequence[str], things: Sequence[Thing]) -> Iterator[_Named]:
    """A number, perhaps a size and a colour, and a noun."""
    at = 0
    while at < len(words):
        start = at
        at += 1
        if words[start] not in (*NUMBERS, "an"):
            continue
        size = words[at] if at < len(words) and words[at] in SIZES else None
        at += size is not None
        colour = words[at] if at < len(words) and words[at] in COLOURS else None
        at += colour is not None
        if at < len(words) and words[at] in NOUNS:
            shape = NOUNS[words[at]]
            at += 1
            yield _Named(start, at, _fitting(things, size, colour, None if shape == "shape" else shape))


def _fitting(
    things: Sequence[Thing], size: str | None, colour: str | None, shape: str | None
) -> tuple[Box, ...]:
    return tuple(
        thing.box
        for thing in things
        if size in (None, thing.size) and colour in (None, thing.colour) and shape in (None, thing.shape)
    )


# --- disk ---------------------------------------------------------------------------------------------------

FILES = {"train": "trainImages.txt", "valid": "devImages.txt", "test": "testImages.txt"}  # Flickr8k's names
ABOUT = """
Drawn scenes of one to four shapes, {captions} captions each, in Flickr8k's formats.

- `images/`: {n} PNG files of {size} x {size} pixels
- `captions.token.txt`: `name.png#k<TAB>caption`
- `splits/trainImages.txt`, `devImages.txt`, `testImages.txt` ({sizes}): one name a line
- `regions.jsonl`: per caption the image, the caption's number, its words, and for every word the boxes
  `[x, y, w, h]` in pixels of the things it speaks of: of a phrase all things that fit it, of a relation both
  sides, of words like "a" and "of" none
"""


def _pillow() -> ModuleType:
    """Pillow, which only the captioning extra brings."""
    try:
        from PIL import Image
    except ImportError as error:
        raise WorldError("drawn scenes need Pillow to write images: pip install heedful[caption]") from error
    return Image


def write(
    out: Path,
    n: int,
    seed: int = 1,
    *,
    size: int = 112,
    captions: int = 5,
    order: str = "any",
    valid: int | None = None,
    test: int | None = None,
) -> dict[str, int]:
    """Write `n` scenes in all, shared among the splits. The images come first: what names one finds it."""
    sizes = split_sizes(n, valid, test)
    drawn = scenes(n, seed, size, captions, order)
    images = _pillow()
    claim(out, "scenes")
    names = [f"scene-{number:06d}.png" for number in range(n)]
    lines, regions = [], []
    for name, scene in zip(names, drawn, strict=True):
        with whole(out / "images" / name, WorldError, parents=True) as draft:
            images.fromarray(scene.image).save(draft, format="PNG")
        for number, (words, boxes) in enumerate(zip(scene.captions, scene.regions, strict=True)):
            lines.append(f"{name}#{number}\t{' '.join(words)}")
            regions.append(json.dumps({"image": name, "caption": number, "words": words, "boxes": boxes}))
    write_text(out / "captions.token.txt", lines)
    write_text(out / "regions.jsonl", regions)
    rest = iter(names)
    for split, count in sizes.items():
        write_text(out / "splits" / FILES[split], islice(rest, count))
    options = {"n": n, "seed": seed, "size": size, "captions": captions, "order": order}
    about = ABOUT.format(n=n, size=size, captions=captions, sizes=" / ".join(map(str, sizes.values())))
    write_readme(out, "scenes", {**options, "valid": sizes["valid"], "test": sizes["test"]}, about)
    return sizes
