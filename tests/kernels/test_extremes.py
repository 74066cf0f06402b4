"""Sources of any length, indices out of range, and numbers that are not finite: every C build."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from fresh_python import run_python
from heedful import kernels
from heedful.errors import ShapeError

NAN, INF = float("nan"), float("inf")

# In a thread with a small stack a sentence of some thousand words does what one of a million does elsewhere.
LONG_SOURCE = """
import sys, threading
import torch
from heedful import kernels
from heedful.attention import NO_HOOKS
from heedful.inference.transformer_structs import CEncoder
from heedful.layers.transformer import TransformerEncoder
from small_models import small_preset

LENGTH = 16_000

def gru():
    hidden = kernels.Int8Product(torch.randn(3, 1), torch.randn(3))
    states = kernels.int8_gru_sequence(torch.randn(4 * LENGTH, 3), [1] * 4 * LENGTH, hidden, True)
    return states.shape == (4 * LENGTH, 1)

def transformer():
    encoder = TransformerEncoder(small_preset("transformer", encoder__layers=1, encoder__heads=1)).eval()
    with torch.no_grad():
        embedded = torch.randn(1, LENGTH, encoder.width)
        keep = torch.ones(1, LENGTH, dtype=torch.bool)
        return bool(CEncoder(encoder)(embedded, keep, NO_HOOKS).keys.isfinite().all())

def additive_backward():
    keys, row = torch.randn(1, 4 * LENGTH, 1), torch.randn(1, 1)
    weights = torch.rand(1, 4 * LENGTH)
    keep = torch.ones(1, 4 * LENGTH, dtype=torch.bool)
    gradients = [torch.zeros_like(t) for t in (row, keys, keys, row)]
    kernels.additive_attention_backward(row, keys, torch.randn(1), keep, keys, weights, row, *gradients)
    return bool(gradients[1].any())

results = []
threading.stack_size(128 * 1024)
thread = threading.Thread(target=lambda: results.append(globals()[sys.argv[1]]()))
thread.start()
thread.join()
print(results)
"""


@pytest.mark.skipif(kernels.library() is None, reason="the kernels are not built")
@pytest.mark.parametrize("name", ["gru", "transformer", "additive_backward"])
def test_a_long_source_needs_no_stack(name: str) -> None:
    done = run_python(LONG_SOURCE, name, OMP_NUM_THREADS="1")
    assert done.stdout == "[True]\n", (done.returncode, done.stderr)


@pytest.mark.usefixtures("c_build")
def test_c_writes_nothing_for_a_target_outside_the_vocabulary() -> None:
    library = kernels.library()
    assert library is not None
    for wrong in (-1, 4, 2**40):
        rows, targets = torch.randn(2, 3, 4), torch.tensor([1, wrong, 2])
        before = rows.clone()
        loss, nll = torch.zeros(2, 3)
        x, y = rows
        addresses = (targets.data_ptr(), 3, 4, 0.1)
        library.heed_rdrop_cross_entropy(x.data_ptr(), y.data_ptr(), *addresses, 1.0, loss.data_ptr(), nll.data_ptr())
        assert loss.isnan().tolist() == nll.isnan().tolist() == [False, True, False]
        assert torch.equal(rows[:, 1], before[:, 1])
        x = before[0].clone()
        library.heed_cross_entropy(x.data_ptr(), *addresses, loss.data_ptr(), nll.data_ptr())
        assert loss.isnan().tolist() == nll.isnan().tolist() == [False, True, False]
        assert torch.equal(x[1], before[0, 1])


@pytest.mark.usefixtures("c_build")
def test_c_marks_the_words_that_a_small_vocabulary_does_not_have() -> None:
    library, logits = kernels.library(), torch.tensor([[1.0, 3.0, 2.0]])
    assert library is not None
    words, logp = torch.full((1, 5), 77), torch.zeros(1, 5)
    library.heed_top_k(logits.data_ptr(), 1, 3, 5, words.data_ptr(), logp.data_ptr())
    assert words.tolist() == [[1, 2, 0, -1, -1]]
    assert (logp[0, 3:] < -1e38).all()


@pytest.mark.parametrize("k", [-1, 0, 5])
@pytest.mark.parametrize("in_c", [True, False])
@pytest.mark.usefixtures("c_build")
def test_more_words_than_the_vocabulary_has_are_an_error(k: int, in_c: bool, use_torch: Callable[[], None]) -> None:
    if not in_c:
        use_torch()
    with pytest.raises(ShapeError, match=rf"the {k} most likely of 4 words .* k must be from 1 to 4"):
        kernels.top_k(torch.randn(2, 4), k)


@pytest.mark.parametrize("value", [NAN, INF, -INF])
@pytest.mark.usefixtures("c_build")
def test_an_int8_product_of_a_row_that_is_not_finite_is_nan(value: float, use_torch: Callable[[], None]) -> None:
    weight, bias, x = torch.randn(33, 21), torch.randn(33), torch.randn(3, 21)
    x[1, 20] = value
    for product in (kernels.Int8Product(weight, bias), None):
        if product is None:
            use_torch()
        y = (product or kernels.Int8Product(weight, bias))(x)
        assert y.isnan().all(dim=1).tolist() == y.isnan().any(dim=1).tolist() == [False, True, False]


@pytest.mark.usefixtures("c_build")
def test_an_int8_product_of_tiny_numbers_is_the_bias(use_torch: Callable[[], None]) -> None:
    weight, bias, x = torch.randn(33, 21), torch.randn(33), torch.full((2, 21), 1e-42)
    from_c = kernels.Int8Product(weight, bias)(x)
    use_torch()
    for y in (from_c, kernels.Int8Product(weight, bias)(x)):
        assert torch.equal(y, bias.expand(2, -1))


@pytest.mark.parametrize("in_c", [True, False])
@pytest.mark.usefixtures("c_build")
def test_attention_to_a_key_that_is_nan_is_nan(in_c: bool, use_torch: Callable[[], None]) -> None:
    if not in_c:
        use_torch()
    keys, values = torch.randn(3, 7, 1, 4), torch.randn(3, 7, 1, 5)
    keys[1, 2] = NAN
    keep = torch.ones(3, 7, dtype=torch.bool)
    keep[2] = False
    context, weights = kernels.dot_attention(torch.randn(3, 1, 1, 4), keys, values, keep[:, None], 1.0)
    additive_weights, additive_context = torch.empty(3, 7), torch.empty(3, 5)
    kernels.additive_attention(
        torch.randn(3, 4), keys[:, :, 0], torch.randn(4), keep, values[:, :, 0], additive_weights, additive_context
    )
    for tensor in (context.flatten(1), weights.flatten(1), additive_weights, additive_context):
        assert tensor.isnan().all(dim=1).tolist() == tensor.isnan().any(dim=1).tolist() == [False, True, False]
        assert not tensor[2].any()


@pytest.mark.usefixtures("c_build")
def test_the_loss_without_smoothing_ignores_words_that_cannot_occur(use_torch: Callable[[], None]) -> None:
    logits, targets = torch.randn(2, 30), torch.tensor([20, 25])
    logits[:, :10] = -INF
    expected = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
    for in_c in (True, False):
        if not in_c:
            use_torch()
        loss, _ = kernels.cross_entropy(logits.clone(), targets, 0.0)
        torch.testing.assert_close(loss, expected)
