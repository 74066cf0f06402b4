"""Does a captioner look at what it speaks of? The pointing game, and the weight inside gold regions.

Every word of the model's own captions that speaks of things known to be in the picture has their boxes. The
weights it was written with are upsampled to the picture. It points at the heaviest pixel (Zhang 2016: a hit
within a tolerance of a box), and its mass is the share of the weight inside the boxes (Liu 2017), beside the
share of the area that they cover. Content words (number, size, colour, noun) are counted apart from relations
and places ("left of", "in the middle"), which speak of where things are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

from heedful.attention import Detail, Watch
from heedful.data.batch import TextBatch
from heedful.data.worlds.scenes import CONTENT, Box, ground
from heedful.errors import TraceError
from heedful.tasks.caption import Captioner, Item, features_of, regions
from heedful.tasks.writing import searched

SIDE = 224  # pixels that weights are upsampled to
NEAR = 15  # pixels that a hit may be off
Array = npt.NDArray[np.float64]


class Pointed(NamedTuple):
    """One word: did it point at its boxes, the weight inside them, and what no weights would give."""

    word: str
    hit: bool
    mass: float
    area: float
    centre: bool
    chance: float  # of a random cell's middle


def pointing(opened: Captioner, items: Sequence[Item]) -> dict[str, Any]:
    """Hits and mass over all words with gold boxes; nothing, where no caption speaks of what is there."""
    if opened.model.alignment is None:
        raise TraceError(f"{opened.name} has no attention: it never looks at parts of a picture")
    found = [one for item_words in _pointed(opened, items) for one in item_words]
    if not found:
        return {}
    words = sorted({one.word for one in found})
    by_word = {word: [one for one in found if one.word == word] for word in words}

    def mean(name: str) -> float:
        return float(np.mean([getattr(one, name) for one in found]))

    def hits(content: bool) -> dict[str, float]:
        ones = [one.hit for one in found if (one.word in CONTENT) is content]
        name = "content words" if content else "relations and places"
        return {f"pointing, {name}": float(np.mean(ones))} if ones else {}

    return {
        "words": len(found),
        "pointing": mean("hit"),
        **hits(content=True),
        **hits(content=False),
        "pointing, mean over words": float(
            np.mean([np.mean([one.hit for one in ones]) for ones in by_word.values()])
        ),
        "pointing, middle of the picture": mean("centre"),
        "pointing, random region": mean("chance"),
        "weight in region": mean("mass"),
        "weight in region, uniform": mean("area"),
        "by word": {
            word: {"count": len(ones), "pointing": float(np.mean([one.hit for one in ones]))}
            for word, ones in by_word.items()
        },
    }


def _pointed(opened: Captioner, items: Sequence[Item]) -> list[list[Pointed]]:
    features = features_of(opened)
    features.extract([item.picture for item in items])
    site, target = str(opened.model.alignment), opened.words.target
    best = searched(
        opened.model,
        lambda rows: TextBatch(regions(features.of([items[row].picture for row in rows]))),
        [1] * len(items),
        opened.recipe.decoding.model_copy(update={"n_best": 1}),
        Watch(Detail.WEIGHTS, frozenset({site})),
    )
    found = []
    for item, (hypothesis,) in zip(items, best, strict=True):
        words = target.decode(hypothesis.tokens).split()
        of_word = target.words(hypothesis.tokens)
        weights = hypothesis.looks[site].float().mean(dim=1)
        side = item.picture.open().width
        found.append(
            [
                _one(word, boxes, weights[of_word.index(at)].view(1, 1, *opened.words.sight.grid), side)
                for at, (word, boxes) in enumerate(zip(words, ground(words, item.things), strict=True))
                if boxes and at in of_word  # of a word in pieces, the first speaks
            ]
        )
    return found


def _one(word: str, boxes: Sequence[Box], weights: torch.Tensor, side: int) -> Pointed:
    fine = F.interpolate(weights, size=(SIDE, SIDE), mode="bicubic", align_corners=False)[0, 0].clamp_min(0)
    near, inside = _masks(boxes, SIDE / side)
    top = int(fine.argmax())
    rows, columns = weights.shape[2:]
    down = ((torch.arange(rows) + 0.5) * SIDE / rows).long()
    across = ((torch.arange(columns) + 0.5) * SIDE / columns).long()
    middle = SIDE // 2
    return Pointed(
        word,
        bool(near[top // SIDE, top % SIDE]),
        float(fine[inside].sum() / fine.sum().clamp_min(1e-12)),
        float(inside.float().mean()),
        bool(near[middle, middle]),
        float(near[down][:, across].float().mean()),
    )


def _masks(boxes: Sequence[Box], scale: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Pixels within the tolerance of a box, and those inside one."""
    near = torch.zeros(SIDE, SIDE, dtype=torch.bool)
    inside = torch.zeros(SIDE, SIDE, dtype=torch.bool)
    pixels = torch.arange(SIDE, dtype=torch.float32)
    for box in boxes:
        left, top = box.x * scale, box.y * scale
        right, bottom = (box.x + box.w) * scale, (box.y + box.h) * scale
        off_x = (left - pixels).clamp_min(0) + (pixels - right).clamp_min(0)
        off_y = (top - pixels).clamp_min(0) + (pixels - bottom).clamp_min(0)
        near |= (off_x[None, :] ** 2 + off_y[:, None] ** 2) <= NEAR**2
        inside |= (off_x[None, :] == 0) & (off_y[:, None] == 0)
    return near, inside
