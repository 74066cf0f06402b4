"""Backbones of one's own: `toy-patches` and `toy-trainable`, as an installed plugin registers them.

The folder `toy_backbones-1.0.dist-info` beside this file has the entry points, so that every process that can import
the tests knows the names.
"""

from __future__ import annotations

import numpy as np
import torch

SIDE, CELL = 48, 8  # pixels


class Patches:
    """The pixels of each patch as its features."""

    size = SIDE
    grid = (SIDE // CELL, SIDE // CELL)
    width = CELL * CELL * 3

    def __call__(self, images: np.ndarray) -> torch.Tensor:
        count, rows = len(images), self.grid[0]
        patches = torch.from_numpy(images.astype(np.float32)).view(count, rows, CELL, rows, CELL, 3)
        return ((patches - 127) / 128).permute(0, 1, 3, 2, 4, 5).reshape(count, rows * rows, self.width)

    def fingerprint(self) -> str:
        return "patches"


class TrainablePatches:
    """The same grid through a convolution that can be trained."""

    size, grid, width = SIDE, Patches.grid, 10

    def __init__(self) -> None:
        torch.manual_seed(5)
        self.net: torch.nn.Module = torch.nn.Sequential(
            torch.nn.Conv2d(3, self.width, CELL, CELL), torch.nn.BatchNorm2d(self.width)
        ).eval()

    @torch.inference_mode()
    def __call__(self, images: np.ndarray) -> torch.Tensor:
        return self.feature_maps(torch.from_numpy(images.copy()))

    def feature_maps(self, images: torch.Tensor) -> torch.Tensor:
        maps: torch.Tensor = self.net((images.permute(0, 3, 1, 2).float() - 127) / 128)
        return maps.flatten(2).transpose(1, 2).contiguous()

    def fingerprint(self) -> str:
        return "learner"


RECIPE = """
[task]
kind = "caption"
[data.world]
name = "scenes"
train = {n_images}
valid = 6
test = 6
pixels = 48
[data.images]
backbone = "toy-patches"
[model]
preset = "{preset}"
embedding = 12
dropout = 0.0
[model.encoder]
hidden = 12
[model.decoder]
hidden = 12
heads = 2
feedforward = 16
[model.attention]
hidden = 8
[training]
epochs = {epochs}
batch_tokens = 200
learning_rate = 0.01
threads = 1
[decoding]
max_length = 12
"""


def caption_recipe(preset: str = "caption-soft", epochs: int = 1, n_images: int = 24) -> str:
    """Return a recipe for the scenes world with patches as features."""
    return RECIPE.format(preset=preset, epochs=epochs, n_images=n_images)
