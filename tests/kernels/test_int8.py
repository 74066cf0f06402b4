"""Products with int8 weights: every C build and instruction set against torch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from heedful import kernels
from heedful.fused.packed_gru import run_packed_gru

pytestmark = pytest.mark.usefixtures("c_int8")


@pytest.mark.parametrize("size", [(1, 1, 1), (1, 16, 4), (5, 70, 33), (2, 33, 7), (13, 129, 512), (1, 129, 33)])
def test_a_product_equals_torch_and_is_close_to_float32(
    size: tuple[int, int, int], use_torch: Callable[[], None]
) -> None:
    rows, n, k = size
    weight, bias, x = torch.randn(n, k), torch.randn(n), torch.randn(rows, k)
    x[0] = 0.0
    from_c = kernels.Int8Product(weight, bias)(x)
    use_torch()
    torch.testing.assert_close(from_c, kernels.Int8Product(weight, bias)(x), rtol=1e-5, atol=1e-4)
    exact = x @ weight.T + bias
    torch.testing.assert_close(from_c[0], exact[0], rtol=1e-5, atol=3e-6)
    assert (from_c - exact).norm() <= 0.03 * exact.norm() + 0.1


def test_products_of_the_largest_bytes_do_not_overflow(use_torch: Callable[[], None]) -> None:
    signs = torch.tensor([1.0, -1.0])[torch.randint(2, (70, 512))]
    weight, x = signs, torch.cat([signs[:9], torch.ones(4, 512)])
    from_c = kernels.Int8Product(weight)(x)
    use_torch()
    torch.testing.assert_close(from_c, kernels.Int8Product(weight)(x), rtol=1e-6, atol=1e-3)
    torch.testing.assert_close(from_c[:9].diagonal(), torch.full((9,), 512.0), rtol=1e-6, atol=1e-3)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("sizes", [[1], [1, 1, 1], [3, 3, 2, 1]])
def test_a_gru_over_packed_sentences_by_one_call_equals_step_by_step(sizes: list[int], reverse: bool) -> None:
    hidden = kernels.Int8Product(torch.randn(3 * 20, 20), torch.randn(60))
    gi = torch.randn(sum(sizes), 60)
    states = kernels.int8_gru_sequence(gi, sizes, hidden, reverse)
    assert states is not None
    before, new = torch.empty(2, len(gi), 20)
    expected = run_packed_gru(gi, sizes, hidden, reverse, before, new, torch.empty_like(gi))
    torch.testing.assert_close(states, expected, rtol=1e-5, atol=3e-6)
