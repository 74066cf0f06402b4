"""Token and position embeddings."""

from __future__ import annotations

import math

import pytest
import torch

from heedful.data.tokenizer import PAD
from heedful.errors import ShapeError
from heedful.layers.embedding import MAX_ROWS, Positions, sinusoids, token_embedding, token_windows


@pytest.mark.parametrize("width", [4, 5])
def test_sinusoids_are_those_of_the_paper(width: int) -> None:
    table = sinusoids(7, width)
    for position in range(7):
        for column in range(width):
            angle = position / 10_000 ** (2 * (column // 2) / width)
            expected = math.sin(angle) if column % 2 == 0 else math.cos(angle)
            assert float(table[position, column]) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("kind", ["sinusoidal", "learned"])
def test_positions_are_counted_from_an_offset(kind: str) -> None:
    positions = Positions(kind, 4, 10)  # type: ignore[arg-type]
    x = torch.randn(2, 6, 4)
    whole = positions(x)
    torch.testing.assert_close(positions(x[:, 2:], 2), whole[:, 2:])
    torch.testing.assert_close(whole - x, positions.first(6).expand_as(x))


def test_sinusoidal_positions_have_no_limit() -> None:
    zeros = torch.zeros(1, 12, 4)
    torch.testing.assert_close(Positions("sinusoidal", 4, 5)(zeros)[0], sinusoids(12, 4))


def test_learned_positions_refuse_a_longer_sentence() -> None:
    positions = Positions("learned", 4, 5)
    with pytest.raises(ShapeError, match="a sentence has 6 positions, but the embedding has 5; raise max_positions"):
        positions(torch.zeros(1, 6, 4))
    assert positions.first(9).shape == (5, 4)


def test_embeddings_have_about_unit_length_and_padding_is_zero() -> None:
    torch.manual_seed(0)
    weight = token_embedding(500, 64).weight
    assert not weight[PAD].any()
    assert weight[PAD + 1 :].norm(dim=1).mean().item() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("token", [-1, 5])
def test_a_token_that_does_not_exist_is_named(token: int) -> None:
    with pytest.raises(ShapeError, match=f"token {token} does not exist: only 0 to 4 exist"):
        token_embedding(5, 2)(torch.tensor([[1, token]]))


def test_windows_slide_over_the_tokens_before() -> None:
    windows = token_windows(torch.tensor([[7, 8, 9]]), torch.tensor([[1, 2, 3]]))
    assert windows.tolist() == [[[2, 3, 7], [3, 7, 8], [7, 8, 9]]]


def test_sinusoids_take_no_memory_for_positions_that_are_not_used() -> None:
    positions = Positions("sinusoidal", 2, 1_000_000)
    assert len(positions.get_buffer("rows")) == MAX_ROWS
    end = torch.zeros(1, MAX_ROWS + 3, 2)
    torch.testing.assert_close(positions(end)[0], sinusoids(MAX_ROWS + 3, 2))
