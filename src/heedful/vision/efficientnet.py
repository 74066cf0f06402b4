"""EfficientNet-Lite (Tan & Le 2019; the Lite kind: no squeezing, ReLU6): a map of what is where in a picture.

Written from the published table; the weights' names are those of the package that ships them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

EPSILON = 1e-3
HEAD = 1280


class Stage(NamedTuple):
    """Blocks of one kind; the first of them has the stride."""

    repeats: int
    kernel: int
    stride: int
    expand: int
    out: int


STAGES = (
    Stage(1, 3, 1, 1, 16),
    Stage(2, 3, 2, 6, 24),
    Stage(2, 5, 2, 6, 40),
    Stage(3, 3, 2, 6, 80),
    Stage(3, 5, 1, 6, 112),
    Stage(4, 5, 2, 6, 192),
    Stage(1, 3, 1, 6, 320),
)
SCALES = {0: (1.0, 1.0), 1: (1.0, 1.1), 2: (1.1, 1.2), 3: (1.2, 1.4), 4: (1.4, 1.8)}  # width, depth


def _wide(filters: int, scale: float) -> int:
    """Filters scaled, in eights, and never by more than a tenth less.

    >>> _wide(112, 1.1), _wide(24, 1.0)
    (120, 24)
    """
    if scale == 1.0:
        return filters
    wanted = filters * scale
    rounded = max(8, int(wanted + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * wanted else rounded


class SameConv(nn.Conv2d):
    """A convolution padded as TensorFlow does: so much that the output is the input over the stride, the odd
    pixel behind."""

    def forward(self, x: Tensor) -> Tensor:
        padding = []
        for size, kernel, stride in zip(
            x.shape[:1:-1], self.kernel_size[::-1], self.stride[::-1], strict=True
        ):
            total = max((math.ceil(size / stride) - 1) * stride + kernel - size, 0)
            padding += [total // 2, total - total // 2]
        return super().forward(F.pad(x, padding))


class Block(nn.Module):
    """Expand, filter each channel, project; what came in is added where it fits."""

    def __init__(self, given: int, stage: Stage, stride: int) -> None:
        super().__init__()
        inner = given * stage.expand
        self.adds = stride == 1 and given == stage.out
        if stage.expand != 1:
            self._expand_conv = SameConv(given, inner, 1, bias=False)
            self._bn0 = nn.BatchNorm2d(inner, EPSILON)
        self._depthwise_conv = SameConv(inner, inner, stage.kernel, stride, groups=inner, bias=False)
        self._bn1 = nn.BatchNorm2d(inner, EPSILON)
        self._project_conv = SameConv(inner, stage.out, 1, bias=False)
        self._bn2 = nn.BatchNorm2d(stage.out, EPSILON)

    def forward(self, x: Tensor) -> Tensor:
        inner = x
        if hasattr(self, "_expand_conv"):
            inner = F.relu6(self._bn0(self._expand_conv(inner)))
        inner = F.relu6(self._bn1(self._depthwise_conv(inner)))
        inner = self._bn2(self._project_conv(inner))
        made: Tensor = x + inner if self.adds else inner
        return made


def _blocks(width: float, depth: float) -> Iterator[Block]:
    given = 32
    for number, stage in enumerate(STAGES):
        scaled = stage._replace(out=_wide(stage.out, width))
        ends = number in (0, len(STAGES) - 1)  # the Lite kind leaves the ends as they are
        repeats = stage.repeats if ends else math.ceil(stage.repeats * depth)
        for repeat in range(repeats):
            yield Block(given, scaled, stage.stride if repeat == 0 else 1)
            given = scaled.out


class EfficientNetLite(nn.Module):
    """Pictures in, maps out: `head` (1280 channels), `top` (320) and `middle` (112, twice as fine)."""

    def __init__(self, size: int = 0) -> None:
        super().__init__()
        width, depth = SCALES[size]
        self._conv_stem = SameConv(3, 32, 3, 2, bias=False)
        self._bn0 = nn.BatchNorm2d(32, EPSILON)
        blocks = list(_blocks(width, depth))
        self.coarse = max(i for i, block in enumerate(blocks) if block._depthwise_conv.stride[0] == 2)
        self.middle, self.top = (
            block._project_conv.out_channels for block in (blocks[self.coarse - 1], blocks[-1])
        )
        self._blocks = nn.ModuleList(blocks)
        self._conv_head = SameConv(self.top, HEAD, 1, bias=False)
        self._bn1 = nn.BatchNorm2d(HEAD, EPSILON)
        self._fc = nn.Linear(HEAD, 1000)

    def forward(self, pictures: Float[Tensor, "batch 3 height width"], layer: str = "head") -> Tensor:
        x = F.relu6(self._bn0(self._conv_stem(pictures)))
        for number, block in enumerate(self._blocks):
            if layer == "middle" and number == self.coarse:
                return x
            x = block(x)
        if layer == "top":
            return x
        made: Tensor = F.relu6(self._bn1(self._conv_head(x)))
        return made

    def classes(self, pictures: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch 1000"]:
        """ImageNet's classes: how one sees that the weights are in their places."""
        scores: Tensor = self._fc(self(pictures).mean(dim=(2, 3)))
        return scores
