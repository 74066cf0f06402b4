"""A backbone of one's own: a picture's patches as they are. Named `eyes:Patches` in a recipe."""

from __future__ import annotations

import numpy as np
import torch

SIDE, CELL = 48, 8  # pixels


class Patches:
    size = SIDE
    grid = (SIDE // CELL, SIDE // CELL)
    width = CELL * CELL * 3

    def __call__(self, pictures: np.ndarray) -> torch.Tensor:
        count, rows = len(pictures), self.grid[0]
        cut = torch.from_numpy(pictures.astype(np.float32)).view(count, rows, CELL, rows, CELL, 3)
        return ((cut - 127) / 128).permute(0, 1, 3, 2, 4, 5).reshape(count, rows * rows, self.width)

    def fingerprint(self) -> str:
        return "patches"


class Learner:
    """The same grid through a layer that can learn. Named `eyes:Learner`."""

    size, grid, width = SIDE, Patches.grid, 10

    def __init__(self) -> None:
        torch.manual_seed(5)
        self.net: torch.nn.Module = torch.nn.Sequential(
            torch.nn.Conv2d(3, self.width, CELL, CELL), torch.nn.BatchNorm2d(self.width)
        ).eval()

    @torch.inference_mode()
    def __call__(self, pictures: np.ndarray) -> torch.Tensor:
        return self.maps(torch.from_numpy(pictures.copy()))

    def maps(self, pictures: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.net((pictures.permute(0, 3, 1, 2).float() - 127) / 128)
        return made.flatten(2).transpose(1, 2).contiguous()

    def fingerprint(self) -> str:
        return "learner"


RECIPE = """
[task]
kind = "caption"
[data.world]
name = "scenes"
train = {pictures}
valid = 6
test = 6
pixels = 48
[data.pictures]
backbone = "eyes:Patches"
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
rate = 0.01
threads = 1
[decoding]
max_length = 12
"""


def seeing(preset: str = "caption-soft", epochs: int = 1, pictures: int = 24) -> str:
    """A recipe for scenes seen through patches."""
    return RECIPE.format(preset=preset, epochs=epochs, pictures=pictures)
