"""The scenes world: drawn images with captions, every content word of which has gold regions.

Captions begin with any of the objects or, in the order "left", with the leftmost one: then the image determines
what its captions mention, and a model can know which region to attend to before the first word.
"""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random
from types import ModuleType
from typing import NamedTuple

from heedful.atomic_write import atomic_write
from heedful.data.worlds.disk import check_folder, check_int, split_sizes, write_lines, write_readme
from heedful.data.worlds.scenes.captions import CONTENT_WORDS, ORDERS, Boxes, draw_captions, ground_caption
from heedful.data.worlds.scenes.drawing import COLORS, SHAPES, SIZES, Box, Pixels, SceneObject, arrange, paint
from heedful.errors import WorldError, nearest

__all__ = [
    "COLORS",
    "CONTENT_WORDS",
    "SHAPES",
    "SIZES",
    "Box",
    "Scene",
    "SceneObject",
    "draw_scene",
    "draw_scenes",
    "ground_caption",
    "write",
]

SPLIT_FILES = {"train": "trainImages.txt", "valid": "devImages.txt", "test": "testImages.txt"}  # as in Flickr8k
ABOUT = """
Drawn scenes of one to four shapes, {captions} captions each, in the formats of Flickr8k.

- `images/`: {n} PNG files of {size} x {size} pixels
- `captions.token.txt`: `name.png#k<TAB>caption`
- `splits/trainImages.txt`, `devImages.txt`, `testImages.txt` ({sizes}): one name per line
- `regions.jsonl`: per caption the image, the number of the caption, its words, and for every word the boxes
  `[x, y, w, h]` in pixels of the objects it refers to: for a phrase all objects that match it, for a relation both
  sides, for words like "a" and "of" none
"""


class Scene(NamedTuple):
    """An image with its captions; `regions[c][w]` are the boxes that word `w` of caption `c` refers to."""

    image: Pixels  # (height, width, 3)
    captions: tuple[tuple[str, ...], ...]
    regions: tuple[tuple[Boxes, ...], ...]
    objects: tuple[SceneObject, ...]


def draw_scenes(n: int, seed: int = 1, size: int = 112, captions: int = 5, order: str = "any") -> Iterator[Scene]:
    """Draw `n` scenes; with the same seed, a larger `n` only adds scenes at the end.

    >>> example = next(draw_scenes(1))
    >>> [(word, len(boxes)) for word, boxes in zip(example.captions[1], example.regions[1], strict=True)]
    [('a', 0), ('small', 1), ('pink', 1), ('cross', 1), ('below', 2), ('a', 0), ('big', 1), ...]
    """
    check_int("n", n, 1)
    check_int("seed", seed, 0)
    check_int("size", size, 48, 1024)
    check_int("captions", captions, 1)
    if order not in ORDERS:
        raise WorldError(f"order {order!r} is unknown; {nearest(order, ORDERS)}")
    return (draw_scene(number, seed, size, captions, order) for number in range(n))


def draw_scene(number: int, seed: int = 1, size: int = 112, captions: int = 5, order: str = "any") -> Scene:
    """Draw one scene of a seed."""
    rng = Random(f"scenes {seed} {number}")
    placed = arrange(rng, size)
    objects = tuple(item for item, _ in placed)
    image = paint(rng, placed, size)
    grounded = draw_captions(rng, objects, size, captions, order)
    return Scene(
        image,
        tuple(tuple(word for word, _ in caption) for caption in grounded),
        tuple(tuple(boxes for _, boxes in caption) for caption in grounded),
        objects,
    )


def _import_pillow() -> ModuleType:
    try:
        from PIL import Image
    except ImportError as error:
        raise WorldError("the scenes world needs Pillow to write images: pip install heedful[caption]") from error
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
    """Write `n` scenes in total, divided among the splits; images are written before the files that name them."""
    sizes = split_sizes(n, valid, test)
    stream = draw_scenes(n, seed, size, captions, order)
    pillow = _import_pillow()
    check_folder(out, "scenes")
    names = [f"scene-{number:06d}.png" for number in range(n)]
    lines, regions = [], []
    for name, drawn in zip(names, stream, strict=True):
        with atomic_write(out / "images" / name, WorldError, parents=True) as draft:
            pillow.fromarray(drawn.image).save(draft, format="PNG")
        for number, (words, boxes) in enumerate(zip(drawn.captions, drawn.regions, strict=True)):
            lines.append(f"{name}#{number}\t{' '.join(words)}")
            regions.append(json.dumps({"image": name, "caption": number, "words": words, "boxes": boxes}))
    write_lines(out / "captions.token.txt", lines)
    write_lines(out / "regions.jsonl", regions)
    remaining = iter(names)
    for split, count in sizes.items():
        write_lines(out / "splits" / SPLIT_FILES[split], islice(remaining, count))
    options = {"n": n, "seed": seed, "size": size, "captions": captions, "order": order}
    about = ABOUT.format(n=n, size=size, captions=captions, sizes=" / ".join(map(str, sizes.values())))
    write_readme(out, "scenes", {**options, "valid": sizes["valid"], "test": sizes["test"]}, about)
    return sizes
