"""Every pooling against its equations in plain loops; the texts of a batch never mix."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

import small_classifiers
from heedful.attention import Detail, Hooks
from heedful.config import ModelConfig
from heedful.layers.pooling import POOL, Pooling
from heedful.layers.state import EncoderOutput

LENGTHS = (5, 2, 1, 3)
Row = Sequence[float]


def make_pooling(config: ModelConfig, seed: int = 5) -> tuple[Pooling, EncoderOutput]:
    """Return a pooling with random weights, and states of ragged texts whose padding is not zero."""
    torch.manual_seed(seed)
    pooling = Pooling(config).double()
    for parameter in pooling.parameters():
        torch.nn.init.uniform_(parameter, -1.0, 1.0)
    states = torch.randn(len(LENGTHS), 5, 6, dtype=torch.float64)
    keep = torch.arange(5) < torch.tensor(LENGTHS)[:, None]
    return pooling, EncoderOutput(states, states, keep)


def softmax(scores: Row) -> list[float]:
    total = sum(math.exp(score) for score in scores)
    return [math.exp(score) / total for score in scores]


def dot(a: Row, b: Row) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def times(matrix: Tensor, x: Row, bias: Tensor | None = None) -> list[float]:
    rows = [dot(row, x) for row in matrix.tolist()]
    return rows if bias is None else [a + b for a, b in zip(rows, bias.tolist(), strict=True)]


def weighted_sum(weights: Row, rows: Sequence[Row]) -> list[float]:
    return [sum(w * row[d] for w, row in zip(weights, rows, strict=True)) for d in range(len(rows[0]))]


def final_dot(pooling: Pooling, rows: list[list[float]]) -> tuple[list[list[float]], list[float]]:
    """The final state of both directions is the query of a dot product without scale."""
    query = rows[-1][:3] + rows[0][3:]
    weights = softmax([dot(query, row) for row in rows])
    return [weights], weighted_sum(weights, rows)


def learned(pooling: Pooling, rows: list[list[float]]) -> tuple[list[list[float]], list[float]]:
    """Yang 2016, eq. 5-7: `u_i = tanh(W h_i + b)`, `a = softmax(u_i' u_w)`, `s = sum a_i h_i`."""
    score = pooling.attention.score  # type: ignore[union-attr]
    b = times(score.query.weight, pooling.query.tolist())  # type: ignore[union-attr,arg-type]
    u = [[math.tanh(x + y) for x, y in zip(times(score.key.weight, row), b, strict=True)] for row in rows]  # type: ignore[union-attr,arg-type]
    weights = softmax([dot(score.v.tolist(), one) for one in u])  # type: ignore[operator]
    return [weights], weighted_sum(weights, rows)


def zhou(pooling: Pooling, rows: list[list[float]]) -> tuple[list[list[float]], list[float]]:
    """Zhou 2016, eq. 9-12: `H` the sum of both directions, `a = softmax(w' tanh(H))`, `h* = tanh(H a)`."""
    h = [[a + b for a, b in zip(row[:3], row[3:], strict=True)] for row in rows]
    w = pooling.query.tolist()  # type: ignore[union-attr]
    weights = softmax([dot(w, [math.tanh(x) for x in row]) for row in h])
    return [weights], [math.tanh(x) for x in weighted_sum(weights, h)]


def heads(pooling: Pooling, rows: list[list[float]]) -> tuple[list[list[float]], list[float]]:
    """Vaswani 2017, eq. 1, for one query: each head has its columns of every projection."""
    projections = pooling.attention.heads  # type: ignore[union-attr]
    assert projections is not None
    q = times(projections.to_query.weight, pooling.query.tolist(), projections.to_query.bias)  # type: ignore[union-attr]
    keys = [times(projections.to_key.weight, row, projections.to_key.bias) for row in rows]
    values = [times(projections.to_value.weight, row, projections.to_value.bias) for row in rows]
    weights, joined = [], []
    for head in range(2):
        columns = slice(3 * head, 3 * head + 3)
        weights.append(softmax([dot(q[columns], key[columns]) / math.sqrt(3) for key in keys]))
        joined += weighted_sum(weights[-1], [value[columns] for value in values])
    return weights, times(projections.out.weight, joined, projections.out.bias)


def mean(pooling: Pooling, rows: list[list[float]]) -> tuple[list[list[float]], list[float]]:
    return [], [sum(row[d] for row in rows) / len(rows) for d in range(6)]


def maximum(pooling: Pooling, rows: list[list[float]]) -> tuple[list[list[float]], list[float]]:
    return [], [max(row[d] for row in rows) for d in range(6)]


def last(pooling: Pooling, rows: list[list[float]]) -> tuple[list[list[float]], list[float]]:
    return [], rows[-1][:3] + rows[0][3:]


@pytest.mark.parametrize(
    ("preset", "reference"),
    [
        ("classify-final", final_dot),
        ("classify-learned", learned),
        ("classify-zhou", zhou),
        ("classify-heads", heads),
        ("classify-mean", mean),
        ("classify-max", maximum),
        ("classify-last", last),
    ],
)
def test_every_pooling_follows_its_equations(preset: str, reference: object) -> None:
    pooling, encoder_output = make_pooling(small_classifiers.small_preset(preset))
    output = pooling(encoder_output, Hooks(Detail.FULL))
    for text, length in enumerate(LENGTHS):
        weights, vector = reference(pooling, encoder_output.values[text, :length].tolist())  # type: ignore[operator]
        assert output.vector[text].tolist() == pytest.approx(vector, abs=1e-12)
        if weights:
            recorded = output.attentions[POOL].weights
            assert recorded[text, 0, :, :length].tolist() == [pytest.approx(w, abs=1e-12) for w in weights]
            assert not recorded[text, 0, :, length:].any(), "padding has no weight"
        else:
            assert not output.attentions


@pytest.mark.parametrize("preset", ["classify-final", "classify-learned", "classify-zhou", "classify-max"])
def test_a_text_without_any_position_gives_zeros(preset: str) -> None:
    pooling, encoder_output = make_pooling(small_classifiers.small_preset(preset))
    empty = encoder_output._replace(keep=torch.zeros_like(encoder_output.keep))
    assert not pooling(empty, Hooks(Detail.WEIGHTS)).vector.any()
