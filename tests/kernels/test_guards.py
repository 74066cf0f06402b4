"""When a kernel may stand in for torch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from heedful import kernels
from heedful.errors import ShapeError
from heedful.kernels import guards
from heedful.kernels.guards import check_offsets

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


# Every kernel with valid tensors. Whatever is done to one of them, C is not given its address.

A, B, C, H = 3, 5, 4, 6  # rows, keys, width, hidden


def floats(*shape: int) -> Tensor:
    return torch.randn(shape)


def kept(*shape: int) -> Tensor:
    return torch.ones(shape, dtype=torch.bool)


CALLS: dict[str, tuple[Callable[..., object], tuple[Tensor, ...]]] = {
    "additive_attention": (
        kernels.additive_attention,
        (floats(A, H), floats(A, B, H), floats(H), kept(A, B), floats(A, B, C), floats(A, B), floats(A, C)),
    ),
    "additive_attention_backward": (
        kernels.additive_attention_backward,
        (
            *(floats(A, H), floats(A, B, H), floats(H), kept(A, B), floats(A, B, C), floats(A, B), floats(A, C)),
            *(floats(A, H), floats(A, B, H), floats(A, B, C), floats(A, H), floats(A, B)),
        ),
    ),
    "gru_cell": (kernels.gru_cell, (floats(A, 3 * H), floats(A, 3 * H), floats(A, H), floats(A, H), floats(A, 3 * H))),
    "gru_cell_backward": (
        kernels.gru_cell_backward,
        (
            *(floats(A, 3 * H), floats(A, H), floats(A, H), floats(A, H)),
            *(floats(A, 3 * H), floats(A, 3 * H), floats(A, H)),
        ),
    ),
    "lstm_cell": (kernels.lstm_cell, (floats(A, 4 * H), floats(A, H), floats(A, H), floats(A, H), floats(A, H))),
    "lstm_cell_backward": (
        kernels.lstm_cell_backward,
        (floats(A, 4 * H), floats(A, H), floats(A, H), floats(A, H), floats(A, H)),
    ),
    "cross_entropy": (lambda x, y: kernels.cross_entropy(x, y, 0.1), (floats(A, C), torch.tensor([0, 1, C - 1]))),
    "rdrop_cross_entropy": (
        lambda x, y, targets: kernels.rdrop_cross_entropy(x, y, targets, 0.1, 1.0),
        (floats(A, C), floats(A, C), torch.tensor([0, 1, C - 1])),
    ),
    "int8": (lambda x, y: kernels.Int8Product(torch.randn(H, C))(x, y), (floats(A, C), floats(A, H))),
}
ARGUMENTS = [(name, index) for name, (_, tensors) in CALLS.items() for index in range(len(tensors))]
MAY_BE_A_VIEW = {("gru_cell_backward", 1), ("int8", 0)}  # rows apart; made contiguous


def clone_arguments(name: str) -> tuple[Callable[..., object], list[Tensor]]:
    function, tensors = CALLS[name]
    return function, [tensor.clone() for tensor in tensors]


@pytest.mark.parametrize("tensor", [torch.zeros(2, 3).double(), torch.zeros(2, 3, device="meta")])
def test_no_address_of_another_type_or_device_is_admitted(tensor: Tensor) -> None:
    assert guards.admits((2, 3), torch.zeros(2, 3))
    assert not guards.admits((2, 3), torch.zeros(2, 3), tensor)
    assert not guards.admits_rows((2, 3), tensor)
    assert not guards.admits_mask((2, 3), tensor)


@needs_kernels
@pytest.mark.parametrize("name", CALLS)
def test_valid_tensors_pass(name: str) -> None:
    function, tensors = clone_arguments(name)
    function(*tensors)


@needs_kernels
@pytest.mark.parametrize(("name", "index"), ARGUMENTS)
def test_a_tensor_of_another_shape_is_an_error(name: str, index: int) -> None:
    function, tensors = clone_arguments(name)
    tensors[index] = tensors[index][..., :-1].contiguous()
    with pytest.raises(ShapeError):
        function(*tensors)


@needs_kernels
@pytest.mark.parametrize(("name", "index"), [case for case in ARGUMENTS if case not in MAY_BE_A_VIEW])
def test_a_tensor_with_gaps_is_an_error(name: str, index: int) -> None:
    function, tensors = clone_arguments(name)
    tensors[index] = tensors[index].repeat_interleave(2, dim=-1)[..., ::2]
    with pytest.raises(ShapeError, match="contiguous"):
        function(*tensors)


@needs_kernels
@pytest.mark.parametrize("wrong", [-1, C, 2**62])
@pytest.mark.parametrize("name", ["cross_entropy", "rdrop_cross_entropy"])
def test_a_target_outside_the_vocabulary_is_an_error(name: str, wrong: int) -> None:
    function, tensors = clone_arguments(name)
    tensors[-1][1] = wrong
    with pytest.raises(ShapeError, match=rf"token {wrong} does not exist: only 0 to {C - 1} exist"):
        function(*tensors)


@needs_kernels
def test_offsets_start_at_0_never_fall_and_end_with_the_last_item() -> None:
    check_offsets(torch.tensor([0, 2, 2, 5]), 5, "offsets")
    for wrong in ([1, 5], [0, 4], [0, 6], [0, 3, 2, 5], []):
        with pytest.raises(ShapeError, match="offsets must start at 0, never fall and end at 5"):
            check_offsets(torch.tensor(wrong, dtype=torch.long), 5, "offsets")
