"""The encoder of images."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from heedful.config import ModelConfig
from heedful.layers.regions import RegionEncoder


def make_encoder(width: int, **settings: Any) -> RegionEncoder:
    tree = {"encoder": {"kind": "regions", "hidden": 6, **settings}, "decoder": {"state_init": "mean"}}
    return RegionEncoder(ModelConfig.model_validate(tree), width)


def test_regions_of_the_right_width_are_unchanged() -> None:
    vectors, keep = torch.randn(2, 9, 6), torch.ones(2, 9, dtype=torch.bool)
    output = make_encoder(6)(vectors, keep)
    assert torch.equal(output.keys, vectors)
    torch.testing.assert_close(output.hidden[0], vectors.mean(dim=1))
    assert torch.equal(output.cells[0], output.hidden[0])


def test_regions_of_another_width_are_projected() -> None:
    encoder = make_encoder(4)
    assert isinstance(encoder.input_projection, nn.Linear)
    vectors = torch.randn(2, 9, 4)
    output = encoder(vectors, torch.ones(2, 9, dtype=torch.bool))
    torch.testing.assert_close(output.keys, encoder.input_projection(vectors))


@pytest.mark.parametrize("region_embedding", [False, True])
def test_only_an_embedding_tells_equal_regions_apart(region_embedding: bool) -> None:
    same = torch.ones(1, 9, 6)
    keys = make_encoder(6, region_embedding=region_embedding)(same, torch.ones(1, 9, dtype=torch.bool)).keys[0]
    assert torch.equal(keys[0], keys[1]) is not region_embedding
