"""Captioners whose backbone learns too: `data.pictures.tuned = true`.

Pictures are looked at anew each time and gradients go back to the filters that saw them, so an epoch costs
many times more than one on kept features. Usual is a captioner trained without first, then
`training.start_from` with a low rate. Running means of the backbone stay as they are: batches are small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from heedful.config import Recipe
from heedful.data.batch import Encoded, Padded, TextBatch, pad
from heedful.data.tokenizer import START
from heedful.errors import DataError
from heedful.models import Seq2Seq
from heedful.tasks.caption import CaptionTask, CaptionWords, Item, regions
from heedful.tasks.writing import loss_of
from heedful.training import Loss
from heedful.vision.backbone import Backbone
from heedful.vision.features import Tick, nothing, told
from heedful.vision.pictures import Picture, whole


@runtime_checkable
class Tunable(Backbone, Protocol):
    """A backbone whose network can learn."""

    net: nn.Module

    def maps(self, pictures: Tensor) -> Tensor: ...  # as the call, but gradients go through it


class Eyes(nn.Module):
    """A backbone's network as a part of a model."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def train(self, mode: bool = True) -> Eyes:
        """Its running means are never learnt anew."""
        return super().train(False)


def tunable(backbone: Backbone, name: str) -> Tunable:
    if not isinstance(backbone, Tunable):
        raise DataError(f"data.pictures.tuned: {name} has no network that could learn (net and maps)")
    return backbone


def eyes_of(model: Seq2Seq) -> nn.Module:
    found = model.get_submodule("eyes")
    assert isinstance(found, Eyes)
    return found.net


class Fresh:
    """In place of kept features: pictures are opened when they are needed."""

    def __init__(self, backbone: Tunable) -> None:
        self.backbone = backbone
        self.good: set[Picture] = set()

    def extract(
        self, pictures: Sequence[Picture], tick: Tick = nothing, broken: Callable[[str], None] | None = None
    ) -> None:
        """Open each once: what cannot be seen is said now."""
        for picture in pictures:
            try:
                picture.open()
                self.good.add(picture)
            except DataError as error:
                told(broken, error)
            tick(1)

    def has(self, picture: Picture) -> bool:
        return picture in self.good

    def of(self, pictures: Sequence[Picture]) -> Tensor:
        """Their pixels, not their maps."""
        return torch.from_numpy(np.stack([whole(picture.open(), self.backbone.size) for picture in pictures]))


class PixelBatch(NamedTuple):
    """Pictures, each once, and captions of them."""

    pictures: Tensor  # (picture, side, side, 3), bytes
    which: Tensor  # (caption,)
    target: Padded

    @property
    def size(self) -> int:
        return len(self.which)

    def rows(self, start: int, step: int) -> PixelBatch:
        """Every `step`-th caption from `start` on, with the pictures they need."""
        used, which = torch.unique(self.which[start::step], return_inverse=True)
        return PixelBatch(self.pictures[used], which, self.target.rows(start, step))

    def to(self, device: torch.device) -> PixelBatch:
        return PixelBatch(self.pictures.to(device), self.which.to(device), self.target.to(device))


class TunedTask(CaptionTask):
    """The same task, pixels in place of kept maps."""

    def __init__(
        self, recipe: Recipe, items: dict[str, list[Item]], words: CaptionWords, fresh: Fresh
    ) -> None:
        super().__init__(recipe, items, words, fresh)
        self.fresh = fresh

    def _batch(self, items: Sequence[Item], examples: Sequence[Encoded]) -> PixelBatch:  # type: ignore[override]
        numbers = sorted({e.source[0] for e in examples})
        place = {number: at for at, number in enumerate(numbers)}
        return PixelBatch(
            self.fresh.of([items[number].picture for number in numbers]),
            torch.tensor([place[e.source[0]] for e in examples]),
            pad([[START, *e.target] for e in examples]),
        )

    def loss(self, model: Seq2Seq, batch: PixelBatch) -> Loss:  # type: ignore[override]
        maps = self._through(model, batch.pictures)[batch.which]
        return loss_of(model, TextBatch(regions(maps), batch.target), self.recipe)

    def _maps(self, model: Seq2Seq, pictures: Sequence[Picture]) -> Tensor:
        return self._through(model, self.fresh.of(pictures))

    def _through(self, model: Seq2Seq, pictures: Tensor) -> Tensor:
        """By the model's own eyes, which may be another copy than the backbone's."""
        backbone = self.fresh.backbone
        kept, backbone.net = backbone.net, eyes_of(model)
        try:
            return backbone.maps(pictures)
        finally:
            backbone.net = kept
