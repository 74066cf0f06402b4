"""Backbones have the grids they state; the convolution equals plain loops."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from heedful.data.images.backbone import open_backbone
from heedful.data.images.efficientnet import EfficientNetLite, SameConv
from heedful.errors import ConfigError, DataError

IMAGES = np.random.default_rng(1).integers(0, 255, (1, 224, 224, 3), dtype=np.uint8)


def convolve_in_loops(conv: nn.Conv2d, x: np.ndarray) -> np.ndarray:
    """Return a depthwise convolution of one image with TensorFlow's "same" padding, in plain loops."""
    weight = conv.weight.detach().double().numpy()
    stride, kernel = conv.stride[0], conv.kernel_size[0]
    channels, height, width = x.shape
    rows, columns = math.ceil(height / stride), math.ceil(width / stride)
    before = [max((n - 1) * stride + kernel - size, 0) // 2 for n, size in ((rows, height), (columns, width))]
    output = np.zeros((channels, rows, columns))
    for c in range(channels):
        for r in range(rows):
            for k in range(columns):
                for i in range(kernel):
                    for j in range(kernel):
                        y, x_ = r * stride + i - before[0], k * stride + j - before[1]
                        if 0 <= y < height and 0 <= x_ < width:
                            output[c, r, k] += weight[c, 0, i, j] * x[c, y, x_]
    return output


@pytest.mark.parametrize(("kernel", "stride", "size"), [(3, 1, 5), (3, 2, 6), (5, 2, 7), (5, 2, 8)])
def test_the_convolution_equals_plain_loops(kernel: int, stride: int, size: int) -> None:
    torch.manual_seed(1)
    conv = SameConv(2, 2, kernel, stride, groups=2, bias=False).double()
    x = torch.randn(1, 2, size, size + 1, dtype=torch.double)
    with torch.no_grad():
        output = conv(x)[0].numpy()
    assert np.abs(output - convolve_in_loops(conv, x[0].numpy())).max() < 1e-12


@pytest.mark.parametrize(
    ("layer", "size", "grid", "width"),
    [("head", 224, 7, 1280), ("top", 224, 7, 320), ("middle", 224, 14, 112), ("head", 448, 14, 1280)],
)
def test_the_grid_and_width_are_those_stated(layer: str, size: int, grid: int, width: int) -> None:
    backbone = open_backbone("efficientnet-lite0", layer, size)
    images = IMAGES if size == 224 else IMAGES.repeat(2, axis=1).repeat(2, axis=2)
    assert (backbone.grid, backbone.width) == ((grid, grid), width)
    assert backbone(images).shape == (1, grid * grid, width)


@pytest.mark.parametrize("number", [1, 2])
def test_larger_variants_take_a_file_of_weights(number: int, tmp_path: Path) -> None:
    torch.save(EfficientNetLite(number).state_dict(), tmp_path / "w.pth")
    backbone = open_backbone(f"efficientnet-lite{number}", "top", 96, tmp_path / "w.pth")
    assert backbone(IMAGES[:, :96, :96]).shape == (1, 9, backbone.width)
    other = open_backbone(f"efficientnet-lite{number}", "head", 96, tmp_path / "w.pth")
    assert other.fingerprint() != backbone.fingerprint()


def test_a_plugin_is_named_by_its_module() -> None:
    backbone = open_backbone("toy_backbones:Patches")
    assert backbone(IMAGES[:, :48, :48]).shape == (1, 36, 192)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("efficientnet-lit0", 'did you mean "efficientnet-lite0"'),
        ("toy_backbones:Nothing", "has no attribute"),
        ("no_such_module:X", "No module named"),
        ("toy_backbones:caption_recipe", "needs size, grid, width"),
        ("timm:resnet18", "pip install timm"),
    ],
)
def test_an_unknown_backbone_is_an_error(name: str, message: str) -> None:
    with pytest.raises((ConfigError, DataError), match=message):
        open_backbone(name)


def test_weights_of_another_network_are_an_error(tmp_path: Path) -> None:
    torch.save({"x": torch.zeros(1)}, tmp_path / "w.pth")
    with pytest.raises(DataError, match="not the weights of EfficientNet-Lite0"):
        open_backbone("efficientnet-lite0", "head", 224, tmp_path / "w.pth")
    (tmp_path / "w.pth").write_bytes(b"nonsense")
    with pytest.raises(DataError, match="not the weights of EfficientNet-Lite0"):
        open_backbone("efficientnet-lite0", "head", 224, tmp_path / "w.pth")
