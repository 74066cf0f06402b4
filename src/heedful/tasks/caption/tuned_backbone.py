"""A backbone that is trained together with the captioner: `data.images.tune_backbone = true`.

Images are encoded at every step and gradients flow into the backbone, so an epoch takes many times longer than one
with cached features. Usually a captioner is trained on cached features first, then continued from it with
`training.init_from` and a low learning rate. The running statistics of batch norm stay fixed: batches are small.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from heedful.data.images.backbone import Backbone
from heedful.data.images.features import OnBadImage, report_or_raise
from heedful.data.images.files import ImageSource, resize_square
from heedful.errors import DataError
from heedful.models import Seq2Seq
from heedful.parallel import OnProgress, no_progress

MODULE = "backbone"  # name in the captioner


@runtime_checkable
class TunableBackbone(Backbone, Protocol):
    """A backbone with a network that can be trained."""

    net: nn.Module

    def feature_maps(self, pixels: Tensor) -> Tensor: ...  # as the call, with gradients


class TunedBackbone(nn.Module):
    """The network of a backbone as a module of a captioner."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def train(self, mode: bool = True) -> TunedBackbone:
        """Stay in evaluation mode, so that running statistics stay fixed."""
        return super().train(False)


def check_tunable(backbone: Backbone, name: str) -> TunableBackbone:
    """Return the backbone if it can be trained."""
    if not isinstance(backbone, TunableBackbone):
        raise DataError(f"data.images.tune_backbone: {name} cannot be trained: it needs `net` and `feature_maps`")
    return backbone


def get_tuned_network(model: Seq2Seq) -> nn.Module:
    """Return the backbone's network that a captioner was trained with."""
    module = model.get_submodule(MODULE)
    assert isinstance(module, TunedBackbone)
    return module.net


class OnTheFlyFeatures:
    """Features computed at every step, by a backbone that is being trained."""

    def __init__(self, backbone: TunableBackbone) -> None:
        self.backbone = backbone
        self.readable: set[ImageSource] = set()

    def extract(
        self,
        images: Sequence[ImageSource],
        on_progress: OnProgress = no_progress,
        on_bad_image: OnBadImage | None = None,
    ) -> None:
        """Open each image once, so that unreadable ones are reported before training."""
        for image in images:
            try:
                image.open()
                self.readable.add(image)
            except DataError as error:
                report_or_raise(on_bad_image, error)
            on_progress(1)

    def has(self, image: ImageSource) -> bool:
        """Return whether an image can be read."""
        return image in self.readable

    def pixels(self, images: Sequence[ImageSource]) -> Tensor:
        """Return the pixels of images: (image, side, side, 3), bytes."""
        return torch.from_numpy(np.stack([resize_square(image.open(), self.backbone.size) for image in images]))

    def encode(self, model: Seq2Seq, pixels: Tensor) -> Tensor:
        """Return features (image, region, width) by the captioner's network, in place of the backbone's own."""
        backbone = self.backbone
        original, backbone.net = backbone.net, get_tuned_network(model)
        try:
            return backbone.feature_maps(pixels)
        finally:
            backbone.net = original
