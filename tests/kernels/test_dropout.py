"""Hashed dropout: every C build against torch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from heedful import kernels

pytestmark = pytest.mark.usefixtures("c_build")


@pytest.mark.parametrize("count", [1, 15, 4099, 70_001])
def test_c_and_torch_keep_the_same_elements(count: int, use_torch: Callable[[], None]) -> None:
    x = torch.randn(count)
    mask = kernels.DropoutMask(0.3, 4_000_000_123)
    from_c = mask.apply(x)
    use_torch()
    torch.testing.assert_close(from_c, mask.apply(x), rtol=1e-5, atol=3e-6)


def test_the_kept_share_is_right_and_elements_and_seeds_are_independent() -> None:
    x = torch.ones(200_000)
    for p in (0.1, 0.5, 0.9):
        first, second = (kernels.DropoutMask(p, seed).apply(x) for seed in (1, 2))
        assert abs(float((first != 0).float().mean()) - (1 - p)) < 0.005
        assert abs(float(first.mean()) - 1) < 0.02
        kept_by_both_seeds = float(((first != 0) & (second != 0)).float().mean())
        assert abs(kept_by_both_seeds - (1 - p) ** 2) < 0.006
        kept_with_neighbor = float(((first[1:] != 0) & (first[:-1] != 0)).float().mean())
        assert abs(kept_with_neighbor - (1 - p) ** 2) < 0.006


def test_gradients_pass_where_elements_were_kept() -> None:
    x = torch.randn(50, 40, requires_grad=True)
    y = kernels.dropout(x, 0.4, training=True)
    y.backward(torch.full_like(y, 3.0))  # type: ignore[no-untyped-call]
    assert x.grad is not None
    torch.testing.assert_close(x.grad, torch.where(y != 0, 3.0 / 0.6, 0.0), rtol=1e-5, atol=3e-6)


def test_dropout_does_nothing_outside_training_or_with_probability_0() -> None:
    x = torch.randn(7)
    assert kernels.dropout(x, 0.4, training=False) is x
    assert kernels.dropout(x, 0.0, training=True) is x


def test_seeded_dropout_repeats_itself_and_leaves_torchs_generator_alone() -> None:
    x = torch.ones(500)

    def drop(seed: int) -> torch.Tensor:
        with kernels.seeded_dropout(seed):
            return kernels.dropout(x, 0.5, training=True)

    state = torch.get_rng_state()
    first, again, other = drop(3), drop(3), drop(4)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), state)
