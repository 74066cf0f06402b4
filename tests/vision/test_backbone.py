"""Backbones give the maps they promise; the convolution is what plain loops make of it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from heedful.errors import ConfigError, DataError
from heedful.vision.backbone import open_backbone
from heedful.vision.efficientnet import EfficientNetLite, SameConv

PICTURES = np.random.default_rng(1).integers(0, 255, (1, 224, 224, 3), dtype=np.uint8)


def looped(conv: nn.Conv2d, x: np.ndarray) -> np.ndarray:
    """One picture through a depthwise convolution, padded as TensorFlow does, in plain loops."""
    weight = conv.weight.detach().double().numpy()
    stride, kernel = conv.stride[0], conv.kernel_size[0]
    channels, high, wide = x.shape
    rows, columns = math.ceil(high / stride), math.ceil(wide / stride)
    before = [max((n - 1) * stride + kernel - size, 0) // 2 for n, size in ((rows, high), (columns, wide))]
    made = np.zeros((channels, rows, columns))
    for c in range(channels):
        for r in range(rows):
            for k in range(columns):
                for i in range(kernel):
                    for j in range(kernel):
                        at, to = r * stride + i - before[0], k * stride + j - before[1]
                        if 0 <= at < high and 0 <= to < wide:
                            made[c, r, k] += weight[c, 0, i, j] * x[c, at, to]
    return made


@pytest.mark.parametrize(("kernel", "stride", "size"), [(3, 1, 5), (3, 2, 6), (5, 2, 7), (5, 2, 8)])
def test_the_convolution_is_what_loops_make_of_it(kernel: int, stride: int, size: int) -> None:
    torch.manual_seed(1)
    conv = SameConv(2, 2, kernel, stride, groups=2, bias=False).double()
    x = torch.randn(1, 2, size, size + 1, dtype=torch.double)
    with torch.no_grad():
        found = conv(x)[0].numpy()
    assert np.abs(found - looped(conv, x[0].numpy())).max() < 1e-12


@pytest.mark.parametrize(
    ("layer", "size", "grid", "width"),
    [("head", 224, 7, 1280), ("top", 224, 7, 320), ("middle", 224, 14, 112), ("head", 448, 14, 1280)],
)
def test_maps_are_of_the_size_they_promise(layer: str, size: int, grid: int, width: int) -> None:
    backbone = open_backbone("efficientnet-lite0", layer, size)
    pictures = PICTURES if size == 224 else PICTURES.repeat(2, axis=1).repeat(2, axis=2)
    assert (backbone.grid, backbone.width) == ((grid, grid), width)
    assert backbone(pictures).shape == (1, grid * grid, width)


@pytest.mark.parametrize("number", [1, 2])
def test_larger_ones_are_plugged_in_by_a_file_of_weights(number: int, tmp_path: Path) -> None:
    torch.save(EfficientNetLite(number).state_dict(), tmp_path / "w.pth")
    backbone = open_backbone(f"efficientnet-lite{number}", "top", 96, tmp_path / "w.pth")
    assert backbone(PICTURES[:, :96, :96]).shape == (1, 9, backbone.width)
    other = open_backbone(f"efficientnet-lite{number}", "head", 96, tmp_path / "w.pth")
    assert other.fingerprint() != backbone.fingerprint()


def test_a_backbone_of_ones_own_is_named_by_its_module() -> None:
    backbone = open_backbone("eyes:Patches")
    assert backbone(PICTURES[:, :48, :48]).shape == (1, 36, 192)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("efficientnet-lit0", 'did you mean "efficientnet-lite0"'),
        ("eyes:Nothing", "has no attribute"),
        ("no_such_module:X", "No module named"),
        ("eyes:seeing", "needs size, grid, width"),
        ("timm:resnet18", "pip install timm"),
    ],
)
def test_what_is_no_backbone_is_refused(name: str, said: str) -> None:
    with pytest.raises((ConfigError, DataError), match=said):
        open_backbone(name)


def test_weights_of_another_network_are_refused(tmp_path: Path) -> None:
    torch.save({"x": torch.zeros(1)}, tmp_path / "w.pth")
    with pytest.raises(DataError, match="not the weights of EfficientNet-Lite0"):
        open_backbone("efficientnet-lite0", "head", 224, tmp_path / "w.pth")
    (tmp_path / "w.pth").write_bytes(b"nonsense")
    with pytest.raises(DataError, match="not the weights of EfficientNet-Lite0"):
        open_backbone("efficientnet-lite0", "head", 224, tmp_path / "w.pth")
