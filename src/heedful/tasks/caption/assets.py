"""The assets of a captioner: the tokenizer of captions, and the backbone whose features it reads."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from heedful.data.asset_files import asset_file, read_json
from heedful.data.batch import Regions
from heedful.data.images.backbone import Backbone
from heedful.data.images.image_statistics import ImageStatistics
from heedful.data.tokenizer import Tokenizer
from heedful.errors import ModelError
from heedful.models import Seq2Seq
from heedful.tasks.base import LoadedModel

TOKENIZER, BACKBONE = "target.tokenizer.json", "backbone.json"
BACKBONE_WEIGHTS = "backbone.pth"  # only of a backbone whose weights no installed package contains
MAX_WIDTH, MAX_GRID = 65_536, 256


class BackboneInfo(NamedTuple):
    """The output shape and fingerprint of a backbone; a captioner works only with the one it was trained with."""

    width: int
    grid: tuple[int, int]
    fingerprint: str

    @classmethod
    def of(cls, backbone: Backbone) -> BackboneInfo:
        return cls(backbone.width, backbone.grid, backbone.fingerprint())


class CaptionAssets(NamedTuple):
    """The tokenizer of captions, the backbone's description, and its weights unless an installed package has them.

    The weights are a file, or a network that another package downloaded. They are stored in the model folder, so that
    opening a model reads no file outside it and makes no connection.
    """

    target: Tokenizer
    backbone_info: BackboneInfo
    weights: Path | None = None
    network: nn.Module | None = None
    statistics: ImageStatistics | None = None  # of the training images; None if the backbone was trained

    def save(self, folder: Path) -> None:
        """Write the files."""
        self.target.save(folder / TOKENIZER)
        (folder / BACKBONE).write_text(json.dumps(self.backbone_info._asdict()) + "\n", encoding="utf-8")
        if self.statistics is not None:
            self.statistics.save(folder)
        if self.weights is not None:
            shutil.copyfile(self.weights, folder / BACKBONE_WEIGHTS)
        elif self.network is not None:
            torch.save(self.network.state_dict(), folder / BACKBONE_WEIGHTS)

    @classmethod
    def load(cls, folder: Path) -> CaptionAssets:
        """Read what `save` wrote."""
        path = asset_file(folder, BACKBONE)
        try:
            info = _parse_info(read_json(path))
        except (OSError, ValueError, KeyError, TypeError):
            raise ModelError(f"{path}: damaged: not the description of a backbone") from None
        weights = asset_file(folder, BACKBONE_WEIGHTS)
        statistics = ImageStatistics.load(folder, info.width)
        tokenizer = Tokenizer.load(asset_file(folder, TOKENIZER))
        return cls(tokenizer, info, weights if weights.is_file() else None, statistics=statistics)

    def sizes(self) -> dict[str, int]:
        """Return the size of the vocabulary."""
        return {"target": len(self.target)}

    def random_source(self, rows: int, length: int, rng: torch.Generator) -> Regions:
        """Return random features of images, to measure speed; their number of regions is fixed."""
        regions = self.backbone_info.grid[0] * self.backbone_info.grid[1]
        return all_regions(torch.randn(rows, regions, self.backbone_info.width, generator=rng))


def _parse_info(fields: dict[str, Any]) -> BackboneInfo:
    """Return the description of a backbone; raise ValueError, KeyError or TypeError if it is none."""
    width, (rows, columns), fingerprint = fields["width"], fields["grid"], fields["fingerprint"]
    sizes = ((width, MAX_WIDTH), (rows, MAX_GRID), (columns, MAX_GRID))
    if not all(type(size) is int and 0 < size <= limit for size, limit in sizes) or not isinstance(fingerprint, str):
        raise ValueError("impossible sizes")
    return BackboneInfo(width, (rows, columns), fingerprint)


def all_regions(features: torch.Tensor) -> Regions:
    """Return feature maps (image, region, width) as a source whose regions are all readable."""
    return Regions(features, torch.ones(features.shape[:2], dtype=torch.bool))


LoadedCaptioner = LoadedModel[CaptionAssets, Seq2Seq]
