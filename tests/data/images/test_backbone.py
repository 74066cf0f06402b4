"""Backbones have the grids they state; the convolution equals plain loops."""

from __future__ import annotations

import math
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from torch import nn

import heedful
from heedful import registry
from heedful.data.images.backbone import open_backbone
from heedful.data.images.efficientnet import EfficientNetLite, SameConv
from heedful.errors import ConfigError, DataError, PluginError
from toy_backbones import Patches

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


def test_a_backbone_of_ones_own_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_backbone("toy-patches")(IMAGES[:, :48, :48]).shape == (1, 36, 192)
    monkeypatch.setattr(registry, "_registered", {kind: {} for kind in registry.KINDS})
    patches = Patches()
    for name, registered in (("class", Patches), ("object", patches), ("function", lambda: patches)):
        heedful.register("backbone", name, registered)
        assert open_backbone(name)(IMAGES[:, :48, :48]).shape == (1, 36, 192)
    with pytest.raises(PluginError, match="there is a built-in backbone"):
        heedful.register("backbone", "efficientnet-lite0", Patches)


def test_a_name_is_never_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stranger.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("stranger:Net", "os:getcwd", "toy_backbones:Patches", "heedful.data.images.backbone:Backbone"):
        with pytest.raises(
            ConfigError, match=r'no such backbone; .*register your own with heedful.register\("backbone"'
        ):
            open_backbone(name)
    assert "stranger" not in sys.modules


def test_a_package_is_asked_only_for_its_own_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    created: list[str] = []
    package = ModuleType("timm")
    package.list_models = lambda: ["resnet18"]  # type: ignore[attr-defined]

    def create_model(name: str, **_options: object) -> nn.Module:
        created.append(name)
        return nn.Conv2d(3, 4, 8, 8)

    package.create_model = create_model  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "timm", package)
    assert open_backbone("timm:resnet18.a1_in1k", size=16).grid == (2, 2)
    for name in ("hf-hub:stranger/model", "local-dir:/tmp", "", "create_model"):
        with pytest.raises(DataError, match="timm has no such network"):
            open_backbone(f"timm:{name}")
    assert created == ["resnet18.a1_in1k"]


def test_compressed_weights_are_not_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "w.pth", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(10_000_000))
    with pytest.raises(DataError, match="compressed, as torch does not write it"):
        open_backbone("efficientnet-lite0", weights=tmp_path / "w.pth")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("efficientnet-lit0", 'did you mean "efficientnet-lite0"'),
        ("toy-patchez", 'did you mean "toy-patches"'),
        ("toy-nothing", "needs size, grid, width"),
        ("timm:resnet18", "pip install timm"),
    ],
)
def test_an_unknown_backbone_is_an_error(name: str, message: str) -> None:
    with pytest.raises((ConfigError, DataError), match=message):
        open_backbone(name)


class Touch:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


def test_code_in_a_file_of_weights_is_neither_run_nor_advised(tmp_path: Path) -> None:
    torch.save({"x": Touch(tmp_path / "touched")}, tmp_path / "w.pth")
    with pytest.raises(DataError, match="something else than tensors, which is not loaded") as error:
        open_backbone("efficientnet-lite0", "head", 224, tmp_path / "w.pth")
    assert "weights_only" not in str(error.value)
    assert not (tmp_path / "touched").exists()


def test_weights_of_another_network_are_an_error(tmp_path: Path) -> None:
    torch.save({"x": torch.zeros(1)}, tmp_path / "w.pth")
    with pytest.raises(DataError, match="not the weights of EfficientNet-Lite0"):
        open_backbone("efficientnet-lite0", "head", 224, tmp_path / "w.pth")
    (tmp_path / "w.pth").write_bytes(b"nonsense")
    with pytest.raises(DataError, match="not the weights of EfficientNet-Lite0"):
        open_backbone("efficientnet-lite0", "head", 224, tmp_path / "w.pth")
