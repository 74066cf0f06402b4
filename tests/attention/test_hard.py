"""Hard attention: draws as often as it should, the same from the same seed, and says how likely it was."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from attention import reference
from attention.helpers import SEEN, build, close, mask, rng
from heedful.attention import Attention, Look

SCORES = [1.0, -1.0, 0.0, 2.0, 5.0]
KEEP = "11110"  # the best score may not be read


def hard(read: str = "sample", generate: str = "expectation", normaliser: str = "softmax") -> Attention:
    """A look whose scores are the keys."""
    return build("dot", normaliser, "hard sample", query=1, key=1, read=read, generate=generate)


def drawn(
    attention: Attention, queries: int, scores: list[float] = SCORES, keep: str = KEEP, seed: int = 5
) -> tuple[Tensor, Look]:
    keys = torch.tensor(scores, dtype=torch.float64).view(1, -1, 1)
    memory = attention.prepare(keys, mask(keep), torch.eye(len(scores), dtype=torch.float64)[None])
    query = torch.ones(1, queries, 1, dtype=torch.float64)
    context, look, _ = attention.look(query, memory, watch=SEEN, rng=rng(seed))
    return context, look


@pytest.mark.parametrize("normaliser", ["softmax", "sparsemax", "entmax15"])
def test_positions_are_drawn_as_often_as_they_weigh(normaliser: str) -> None:
    count = 50_000
    _, look = drawn(hard(normaliser=normaliser), count)
    found = torch.bincount(look.extra["sample"].flatten(), minlength=5).tolist()
    readable = [letter == "1" for letter in KEEP]
    alpha = getattr(reference, normaliser)(SCORES, readable)
    assert all(n == 0 for n, a in zip(found, alpha, strict=True) if a == 0.0)
    chi = sum((n - count * a) ** 2 / (count * a) for n, a in zip(found, alpha, strict=True) if a > 0.0)
    assert chi < 16.27  # three degrees of freedom, one in a thousand


def test_one_seed_one_draw() -> None:
    once, again, other = (drawn(hard(), 200, seed=seed)[1].extra["sample"] for seed in (5, 5, 6))
    assert torch.equal(once, again)
    assert not torch.equal(once, other)


def test_without_a_generator_torchs_own_seed_decides() -> None:
    attention = hard()
    memory = attention.prepare(torch.zeros(1, 5, 1, dtype=torch.float64), mask(KEEP))
    samples = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        _, look, _ = attention.look(torch.ones(1, 50, 1, dtype=torch.float64), memory)
        samples.append(look.extra["sample"])
    assert torch.equal(samples[0], samples[1])
    assert not torch.equal(samples[0], samples[2])


def test_queries_and_sentences_draw_apart() -> None:
    attention = hard()
    keys = torch.zeros(7, 5, 1, dtype=torch.float64)
    memory = attention.prepare(keys, mask("11111").expand(7, 5))
    _, look, _ = attention.look(torch.ones(7, 11, 1, dtype=torch.float64), memory, rng=rng())
    sample = look.extra["sample"][..., 0]
    assert len({tuple(row) for row in sample.tolist()}) > 1
    assert len({tuple(row) for row in sample.T.tolist()}) > 1


def test_the_draw_is_read_alone_and_its_probability_and_the_entropy_recorded() -> None:
    context, look = drawn(hard(), 30)
    alpha = reference.softmax(SCORES, [True] * 4 + [False])
    assert look.weights is not None
    for q, index in enumerate(look.extra["sample"][0, :, 0].tolist()):
        assert context[0, q].tolist() == look.weights[0, q, 0].tolist() == reference.hard_sample(alpha, index)
        close(look.extra["logp"][0, q, 0], math.log(alpha[index]))
        close(look.extra["entropy"][0, q, 0], reference.entropy(alpha))
        close(look.extra["alpha"][0, q, 0], alpha)


def test_the_gradient_of_the_log_probability_is_one_hot_minus_weights() -> None:
    attention = hard("argmax")
    keys = torch.tensor(SCORES, dtype=torch.float64).view(1, -1, 1).requires_grad_()
    memory = attention.prepare(keys, mask(KEEP))
    _, look, _ = attention.look(torch.ones(1, 1, 1, dtype=torch.float64), memory)
    alpha = reference.softmax(SCORES, [True] * 4 + [False])
    (slope,) = torch.autograd.grad(look.extra["logp"].sum(), keys, retain_graph=True)
    close(slope.flatten(), [(i == 3) - a for i, a in enumerate(alpha)])
    # d H / d e_i = -a_i (ln a_i + H)
    (slope,) = torch.autograd.grad(look.extra["entropy"].sum(), keys)
    entropy = reference.entropy(alpha)
    close(slope.flatten(), [-a * (math.log(a) + entropy) if a else 0.0 for a in alpha])


@pytest.mark.parametrize(("scores", "keep", "first"), [
    ([0.0, 1.0, 1.0, 1.0], "1111", 1),
    ([2.0, 2.0, 2.0, 2.0], "1111", 0),
    ([2.0, 2.0, 2.0, 2.0], "0011", 2),
    ([3.0, 1.0, 0.0, 1.0], "0111", 1),
    ([-9.0, 3.0, 3.0, 9.0], "0110", 1),
])  # fmt: skip
def test_argmax_takes_the_first_of_equals(scores: list[float], keep: str, first: int) -> None:
    context, look = drawn(hard("argmax"), 2, scores, keep)
    assert look.extra["sample"].flatten().tolist() == [first] * 2
    assert context[0].tolist() == [[float(i == first) for i in range(4)]] * 2


def test_argmax_takes_the_first_of_a_thousand_equals() -> None:
    _, look = drawn(hard("argmax"), 1, [0.0] * 1000, "0" * 3 + "1" * 997)
    assert look.extra["sample"].flatten().tolist() == [3]


def test_read_holds_in_training_and_generate_in_evaluation() -> None:
    """Recognised by what comes out: a one-hot that varies, a one-hot that does not, a mixture."""

    def kind(attention: Attention) -> str:
        context, _ = drawn(attention, 60)
        if not ((context == 0) | (context == 1)).all():
            return "expectation"
        return "argmax" if (context == context[:, :1]).all() else "sample"

    ways: list[Any] = ["sample", "argmax", "expectation"]
    for read in ways:
        for generate in ways:
            attention = hard(read, generate)
            assert kind(attention) == read
            assert kind(attention.eval()) == generate
            assert kind(attention.train()) == read


def test_where_nothing_can_be_read_nothing_is_drawn() -> None:
    for how in ("sample", "argmax", "expectation"):
        context, look = drawn(hard(how), 3, keep="00000")
        assert (context == 0).all()
        assert look.extra["sample"].flatten().tolist() == [-1] * 3
        assert (look.extra["logp"] == 0).all()
        assert (look.extra["entropy"] == 0).all()
