"""The self-test of captioners: log-probabilities of a fixed caption of fixed features."""

from __future__ import annotations

from typing import Any

import torch

from heedful.data.batch import TextBatch, pad
from heedful.data.tokenizer import START
from heedful.models import Seq2Seq
from heedful.tasks.base import SelfTest
from heedful.tasks.caption.assets import CaptionAssets, all_regions
from heedful.tasks.text_self_test import encode_line, sample_line, token_logp

MAX_REGIONS = 196


def make_input(assets: CaptionAssets) -> str:
    """Return a caption."""
    return sample_line(assets.target)


def outputs(model: Seq2Seq, assets: CaptionAssets, caption: Any) -> list[float]:
    """Return the log-probability of each token of a caption of features that are sines."""
    rows, columns = assets.backbone_info.grid
    regions, width = min(rows * columns, MAX_REGIONS), assets.backbone_info.width
    features = torch.sin(torch.arange(regions * width, dtype=torch.float64)).float().view(1, regions, width)
    target = encode_line(assets.target, caption)
    return token_logp(model(TextBatch(all_regions(features), pad([[START, *target]]))).logits[0], target)


SELF_TEST = SelfTest(make_input, outputs)
