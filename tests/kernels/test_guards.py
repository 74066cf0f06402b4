"""When a kernel may stand in for torch."""

from __future__ import annotations

import pytest
import torch

from heedful import kernels

FLOAT32 = torch.zeros(2)
needs_kernels = pytest.mark.skipif(kernels.library() is None, reason="the kernels are not built")


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(torch.float32, True), (torch.float64, True), (torch.float16, False), (torch.bfloat16, False)],
)
def test_full_precision_is_float32_or_float64(dtype: torch.dtype, expected: bool) -> None:
    assert kernels.is_full_precision(FLOAT32, torch.zeros(1, dtype=dtype)) is expected


def test_autocast_is_not_full_precision() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        assert not kernels.is_full_precision(FLOAT32)


@needs_kernels
def test_kernels_support_float32_on_the_cpu_alone() -> None:
    assert kernels.supports(FLOAT32, FLOAT32)
    assert not kernels.supports(FLOAT32, FLOAT32.double())
    assert not kernels.supports(FLOAT32.to("meta"))


@needs_kernels
def test_under_autocast_kernels_accept_tensors_but_do_not_replace_torch() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        assert kernels.accepts(FLOAT32)
        assert not kernels.supports(FLOAT32)


@needs_kernels
def test_a_kernel_without_a_backward_pass_runs_only_where_no_gradients_are_recorded() -> None:
    assert not kernels.supports(FLOAT32, gradients=False)
    with torch.no_grad():
        assert kernels.supports(FLOAT32, gradients=False)


@pytest.mark.parametrize(
    ("p", "training", "expected"), [(0.5, True, True), (0.5, False, False), (0.0, True, False), (0.0, False, False)]
)
def test_dropout_drops_in_training_with_a_probability_above_0(p: float, training: bool, expected: bool) -> None:
    assert kernels.is_dropout_active(p, training) is expected
