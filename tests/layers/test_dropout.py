"""Dropout per element and per sequence."""

from __future__ import annotations

import pytest
import torch

from heedful.layers.dropout import Dropout, VariationalDropout


@pytest.mark.parametrize("kind", [Dropout, VariationalDropout])
def test_evaluation_and_probability_zero_change_nothing(kind: type[Dropout]) -> None:
    x = torch.randn(3, 7, 5)
    assert torch.equal(kind(0.5).eval()(x), x)
    assert torch.equal(kind(0.0).train()(x), x)


def test_dropout_zeroes_a_fraction_and_scales_the_rest() -> None:
    torch.manual_seed(1)
    dropped = Dropout(0.2).train()(torch.ones(100, 100))
    assert set(dropped.unique().tolist()) == {0.0, 1.25}
    assert dropped.mean().item() == pytest.approx(1, abs=0.05)


def test_variational_dropout_has_one_mask_per_sequence() -> None:
    torch.manual_seed(1)
    dropped = VariationalDropout(0.5).train()(torch.ones(3, 7, 40))
    assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert not torch.equal(dropped[0], dropped[1])
