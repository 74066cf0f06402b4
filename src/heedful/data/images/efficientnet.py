"""EfficientNet-Lite (Tan & Le 2019): the Lite variants have no squeeze-and-excitation, and ReLU6.

Implemented from the published table; the names of the weights are those of the package that ships them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

EPSILON = 1e-3
HEAD_WIDTH = 1280


class Stage(NamedTuple):
    """Repeated blocks; the first of them has the stride."""

    repeats: int
    kernel_size: int
    stride: int
    expansion: int
    out_channels: int


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


def _scale_channels(channels: int, scale: float) -> int:
    """Scale a number of channels to a multiple of 8, rounded down by at most 10 %.

    >>> _scale_channels(112, 1.1), _scale_channels(24, 1.0)
    (120, 24)
    """
    if scale == 1.0:
        return channels
    exact = channels * scale
    rounded = max(8, int(exact + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * exact else rounded


class SameConv(nn.Conv2d):
    """A convolution with TensorFlow's "same" padding: the output has ceil(input / stride) pixels per axis, and an odd
    pixel of padding is at the end."""

    def forward(self, x: Tensor) -> Tensor:
        padding = []
        for size, kernel, stride in zip(x.shape[:1:-1], self.kernel_size[::-1], self.stride[::-1], strict=True):
            total = max((math.ceil(size / stride) - 1) * stride + kernel - size, 0)
            padding += [total // 2, total - total // 2]
        return super().forward(F.pad(x, padding))


class Block(nn.Module):
    """Inverted residual block: expand, depthwise convolution, project; a residual connection where shapes match."""

    def __init__(self, in_channels: int, stage: Stage, stride: int) -> None:
        super().__init__()
        inner = in_channels * stage.expansion
        self.residual = stride == 1 and in_channels == stage.out_channels
        if stage.expansion != 1:
            self._expand_conv = SameConv(in_channels, inner, 1, bias=False)
            self._bn0 = nn.BatchNorm2d(inner, EPSILON)
        self._depthwise_conv = SameConv(inner, inner, stage.kernel_size, stride, groups=inner, bias=False)
        self._bn1 = nn.BatchNorm2d(inner, EPSILON)
        self._project_conv = SameConv(inner, stage.out_channels, 1, bias=False)
        self._bn2 = nn.BatchNorm2d(stage.out_channels, EPSILON)

    def forward(self, x: Tensor) -> Tensor:
        inner = x
        if hasattr(self, "_expand_conv"):
            inner = F.relu6(self._bn0(self._expand_conv(inner)))
        inner = F.relu6(self._bn1(self._depthwise_conv(inner)))
        inner = self._bn2(self._project_conv(inner))
        output: Tensor = x + inner if self.residual else inner
        return output


def _blocks(width: float, depth: float) -> Iterator[Block]:
    in_channels = 32
    for number, stage in enumerate(STAGES):
        scaled = stage._replace(out_channels=_scale_channels(stage.out_channels, width))
        ends = number in (0, len(STAGES) - 1)  # the Lite variants do not scale the first and last stage
        repeats = stage.repeats if ends else math.ceil(stage.repeats * depth)
        for repeat in range(repeats):
            yield Block(in_channels, scaled, stage.stride if repeat == 0 else 1)
            in_channels = scaled.out_channels


class EfficientNetLite(nn.Module):
    """The network; its feature maps are `head` (1280 channels), `top` (320) and `middle` (112, twice as fine)."""

    def __init__(self, variant: int = 0) -> None:
        super().__init__()
        width, depth = SCALES[variant]
        self._conv_stem = SameConv(3, 32, 3, 2, bias=False)
        self._bn0 = nn.BatchNorm2d(32, EPSILON)
        blocks = list(_blocks(width, depth))
        self.last_stride = max(i for i, block in enumerate(blocks) if block._depthwise_conv.stride[0] == 2)
        self.middle_width = blocks[self.last_stride - 1]._project_conv.out_channels
        self.top_width = blocks[-1]._project_conv.out_channels
        self._blocks = nn.ModuleList(blocks)
        self._conv_head = SameConv(self.top_width, HEAD_WIDTH, 1, bias=False)
        self._bn1 = nn.BatchNorm2d(HEAD_WIDTH, EPSILON)
        self._fc = nn.Linear(HEAD_WIDTH, 1000)

    def forward(self, images: Float[Tensor, "batch 3 height width"], layer: str = "head") -> Tensor:
        x = F.relu6(self._bn0(self._conv_stem(images)))
        for number, block in enumerate(self._blocks):
            if layer == "middle" and number == self.last_stride:
                return x
            x = block(x)
        if layer == "top":
            return x
        output: Tensor = F.relu6(self._bn1(self._conv_head(x)))
        return output
