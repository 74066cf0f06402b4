"""The pointing game: whether a captioner attends to the objects that its words name.

A word of a generated caption that names known objects of the image has their boxes. Its weights are upsampled to the
image. It points at the pixel with the largest weight, a hit if that is within a tolerance of a box (Zhang 2016); its
mass is the share of the weight inside the boxes (Liu 2017), compared with the share of the area that they cover.
Content words (number, size, color, noun) are counted apart from relations and places ("left of", "in the middle").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.attention import Detail, Hooks
from heedful.data.worlds.scenes import CONTENT_WORDS, Box, ground_caption
from heedful.errors import TraceError
from heedful.tasks.caption.assets import LoadedCaptioner
from heedful.tasks.caption.data import Item
from heedful.tasks.caption.predict import open_features, search_items

SIDE = 224  # pixels of the upsampled weights
TOLERANCE = 15  # pixels around a box that still count as a hit


class PointedWord(NamedTuple):
    """One word: whether it points at its boxes, the weight inside them, and the baselines of both."""

    word: str
    hit: bool
    mass: float
    area: float
    center_hit: bool  # of the image's center
    random_hit: float  # probability for the center of a random region


def play_pointing_game(loaded: LoadedCaptioner, items: Sequence[Item]) -> dict[str, Any]:
    """Return hit rate and mass over all words with gold boxes; {} if no caption names a known object."""
    if loaded.model.alignment_site is None:
        raise TraceError(f"{loaded.name} has no attention, so it cannot point at regions of an image")
    pointed = _point(loaded, items)
    if not pointed:
        return {}
    by_word = {word: [p for p in pointed if p.word == word] for word in sorted({p.word for p in pointed})}

    def mean(name: str) -> float:
        return float(np.mean([getattr(p, name) for p in pointed]))

    def hit_rate(content: bool) -> dict[str, float]:
        hits = [p.hit for p in pointed if (p.word in CONTENT_WORDS) is content]
        name = "content_words" if content else "relations"
        return {f"pointing_{name}": float(np.mean(hits))} if hits else {}

    by_word_rate = {word: float(np.mean([p.hit for p in words])) for word, words in by_word.items()}
    return {
        "words": len(pointed),
        "pointing": mean("hit"),
        **hit_rate(content=True),
        **hit_rate(content=False),
        "pointing_mean_over_words": float(np.mean(list(by_word_rate.values()))),
        "pointing_center": mean("center_hit"),
        "pointing_random": mean("random_hit"),
        "region_weight": mean("mass"),
        "region_weight_uniform": mean("area"),
        "by_word": {word: {"count": len(by_word[word]), "pointing": rate} for word, rate in by_word_rate.items()},
    }


def _point(loaded: LoadedCaptioner, items: Sequence[Item]) -> list[PointedWord]:
    """Return the words with gold boxes of all captions."""
    features = open_features(loaded)
    features.extract([item.image for item in items])
    site, target = str(loaded.model.alignment_site), loaded.assets.target
    decoding = loaded.recipe.decoding.model_copy(update={"n_best": 1})
    hooks = Hooks(Detail.WEIGHTS, frozenset({site}))
    pointed = []
    for item, (hypothesis,) in zip(
        items, search_items(loaded.model, features.load, items, decoding, hooks), strict=True
    ):
        words = target.decode(hypothesis.tokens).split()
        word_ids = target.word_ids(hypothesis.tokens)
        weights = hypothesis.attentions[site].float().mean(dim=1)
        side = item.image.open().width
        for word_index, (word, boxes) in enumerate(zip(words, ground_caption(words, item.objects), strict=True)):
            if boxes and word_index in word_ids:  # a word of several subwords points with the first
                grid = weights[word_ids.index(word_index)].view(1, 1, *loaded.assets.backbone_info.grid)
                pointed.append(_point_word(word, boxes, grid, side))
    return pointed


def _point_word(word: str, boxes: Sequence[Box], weights: Tensor, side: int) -> PointedWord:
    pixels = F.interpolate(weights, size=(SIDE, SIDE), mode="bicubic", align_corners=False)[0, 0].clamp_min(0)
    near, inside = _box_masks(boxes, SIDE / side)
    largest = int(pixels.argmax())
    rows, columns = weights.shape[2:]
    row_centers = ((torch.arange(rows) + 0.5) * SIDE / rows).long()
    column_centers = ((torch.arange(columns) + 0.5) * SIDE / columns).long()
    center = SIDE // 2
    return PointedWord(
        word,
        bool(near[largest // SIDE, largest % SIDE]),
        float(pixels[inside].sum() / pixels.sum().clamp_min(1e-12)),
        float(inside.float().mean()),
        bool(near[center, center]),
        float(near[row_centers][:, column_centers].float().mean()),
    )


def _box_masks(boxes: Sequence[Box], scale: float) -> tuple[Tensor, Tensor]:
    """Return which pixels are within the tolerance of a box, and which are inside one."""
    near = torch.zeros(SIDE, SIDE, dtype=torch.bool)
    inside = torch.zeros(SIDE, SIDE, dtype=torch.bool)
    pixels = torch.arange(SIDE, dtype=torch.float32)
    for box in boxes:
        left, top = box.x * scale, box.y * scale
        right, bottom = (box.x + box.w) * scale, (box.y + box.h) * scale
        off_x = (left - pixels).clamp_min(0) + (pixels - right).clamp_min(0)
        off_y = (top - pixels).clamp_min(0) + (pixels - bottom).clamp_min(0)
        near |= (off_x[None, :] ** 2 + off_y[:, None] ** 2) <= TOLERANCE**2
        inside |= (off_x[None, :] == 0) & (off_y[:, None] == 0)
    return near, inside
