"""The assets of a captioner: the tokenizer of captions, and the backbone whose features it reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import torch

from heedful.data.asset_files import asset_file
from heedful.data.batch import Regions
from heedful.data.images.backbone import Backbone
from heedful.data.tokenizer import Tokenizer
from heedful.errors import ModelError
from heedful.models import Seq2Seq
from heedful.tasks.base import LoadedModel

TOKENIZER, BACKBONE = "target.tokenizer.json", "backbone.json"


class BackboneInfo(NamedTuple):
    """The output shape and fingerprint of a backbone; a captioner works only with the one it was trained with."""

    width: int
    grid: tuple[int, int]
    fingerprint: str

    @classmethod
    def of(cls, backbone: Backbone) -> BackboneInfo:
        return cls(backbone.width, backbone.grid, backbone.fingerprint())


class CaptionAssets(NamedTuple):
    """The tokenizer of captions, and the backbone's description."""

    target: Tokenizer
    backbone_info: BackboneInfo

    def save(self, folder: Path) -> None:
        """Write both files."""
        self.target.save(folder / TOKENIZER)
        (folder / BACKBONE).write_text(json.dumps(self.backbone_info._asdict()) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> CaptionAssets:
        """Read what `save` wrote."""
        path = asset_file(folder, BACKBONE)
        try:
            fields = json.loads(path.read_text(encoding="utf-8"))
            rows, columns = fields["grid"]
            info = BackboneInfo(int(fields["width"]), (int(rows), int(columns)), str(fields["fingerprint"]))
        except (OSError, ValueError, KeyError, TypeError):
            raise ModelError(f"{path}: damaged") from None
        return cls(Tokenizer.load(folder / TOKENIZER), info)

    def sizes(self) -> dict[str, int]:
        """Return the size of the vocabulary."""
        return {"target": len(self.target)}

    def random_source(self, rows: int, length: int, rng: torch.Generator) -> Regions:
        """Return random features of images, to measure speed; their number of regions is fixed."""
        regions = self.backbone_info.grid[0] * self.backbone_info.grid[1]
        return all_regions(torch.randn(rows, regions, self.backbone_info.width, generator=rng))


def all_regions(features: torch.Tensor) -> Regions:
    """Return feature maps (image, region, width) as a source whose regions are all readable."""
    return Regions(features, torch.ones(features.shape[:2], dtype=torch.bool))


LoadedCaptioner = LoadedModel[CaptionAssets, Seq2Seq]
