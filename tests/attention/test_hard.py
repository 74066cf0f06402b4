"""Hard attention: frequencies, seeds, log-probabilities and modes of its samples."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from attention import reference
from attention.helpers import WEIGHTS, attend, build, close, mask, rng
from heedful.attention import Attention, AttentionOutput

SCORES = [1.0, -1.0, 0.0, 2.0, 5.0]
KEEP = "11110"  # the best score may not be read


def hard(training: str = "sample", inference: str = "expectation", normalizer: str = "softmax") -> Attention:
    """Build hard attention whose scores are the keys."""
    return build("dot", normalizer, "hard sample", query=1, key=1, hard_training=training, hard_inference=inference)


def attend_hard(
    attention: Attention, queries: int, scores: list[float] = SCORES, keep: str = KEEP, seed: int = 5
) -> tuple[Tensor, AttentionOutput]:
    keys = torch.tensor(scores, dtype=torch.float64).view(1, -1, 1)
    memory = attention.prepare(keys, mask(keep), torch.eye(len(scores), dtype=torch.float64)[None])
    query = torch.ones(1, queries, 1, dtype=torch.float64)
    context, output, _ = attend(attention, query, memory, hooks=WEIGHTS, rng=rng(seed))
    return context, output


@pytest.mark.parametrize("normalizer", ["softmax", "sparsemax", "entmax15"])
def test_positions_are_sampled_in_proportion_to_their_weights(normalizer: str) -> None:
    count = 50_000
    _, output = attend_hard(hard(normalizer=normalizer), count)
    actual = torch.bincount(output.extras["sample"].flatten(), minlength=5).tolist()
    readable = [letter == "1" for letter in KEEP]
    alpha = getattr(reference, normalizer)(SCORES, readable)
    assert all(n == 0 for n, a in zip(actual, alpha, strict=True) if a == 0.0)
    chi = sum((n - count * a) ** 2 / (count * a) for n, a in zip(actual, alpha, strict=True) if a > 0.0)
    assert chi < 16.27  # three degrees of freedom, one in a thousand


def test_the_same_seed_gives_the_same_samples() -> None:
    once, again, other = (attend_hard(hard(), 200, seed=seed)[1].extras["sample"] for seed in (5, 5, 6))
    assert torch.equal(once, again)
    assert not torch.equal(once, other)


def test_without_a_generator_torchs_global_seed_is_used() -> None:
    attention = hard()
    memory = attention.prepare(torch.zeros(1, 5, 1, dtype=torch.float64), mask(KEEP))
    samples = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        output, _ = attention(torch.ones(1, 50, 1, dtype=torch.float64), memory)
        samples.append(output.extras["sample"])
    assert torch.equal(samples[0], samples[1])
    assert not torch.equal(samples[0], samples[2])


def test_queries_and_sentences_sample_independently() -> None:
    attention = hard()
    keys = torch.zeros(7, 5, 1, dtype=torch.float64)
    memory = attention.prepare(keys, mask("11111").expand(7, 5))
    output, _ = attention(torch.ones(7, 11, 1, dtype=torch.float64), memory, rng=rng())
    sample = output.extras["sample"][..., 0]
    assert len({tuple(row) for row in sample.tolist()}) > 1
    assert len({tuple(row) for row in sample.T.tolist()}) > 1


def test_the_context_is_the_sampled_value_and_log_probability_and_entropy_are_reported() -> None:
    context, output = attend_hard(hard(), 30)
    alpha = reference.softmax(SCORES, [True] * 4 + [False])
    assert output.weights is not None
    for q, index in enumerate(output.extras["sample"][0, :, 0].tolist()):
        assert context[0, q].tolist() == output.weights[0, q, 0].tolist() == reference.hard_sample(alpha, index)
        close(output.extras["logp"][0, q, 0], math.log(alpha[index]))
        close(output.extras["entropy"][0, q, 0], reference.entropy(alpha))
        close(output.extras["alpha"][0, q, 0], alpha)


def test_the_gradient_of_the_log_probability_is_one_hot_minus_weights() -> None:
    attention = hard("argmax")
    keys = torch.tensor(SCORES, dtype=torch.float64).view(1, -1, 1).requires_grad_()
    memory = attention.prepare(keys, mask(KEEP))
    output, _ = attention(torch.ones(1, 1, 1, dtype=torch.float64), memory)
    alpha = reference.softmax(SCORES, [True] * 4 + [False])
    (slope,) = torch.autograd.grad(output.extras["logp"].sum(), keys, retain_graph=True)
    close(slope.flatten(), [(i == 3) - a for i, a in enumerate(alpha)])
    # d H / d e_i = -a_i (ln a_i + H)
    (slope,) = torch.autograd.grad(output.extras["entropy"].sum(), keys)
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
    context, output = attend_hard(hard("argmax"), 2, scores, keep)
    assert output.extras["sample"].flatten().tolist() == [first] * 2
    assert context[0].tolist() == [[float(i == first) for i in range(4)]] * 2


def test_argmax_takes_the_first_of_a_thousand_equals() -> None:
    _, output = attend_hard(hard("argmax"), 1, [0.0] * 1000, "0" * 3 + "1" * 997)
    assert output.extras["sample"].flatten().tolist() == [3]


def test_the_mode_depends_on_training_and_evaluation() -> None:
    """The modes differ in the context: one-hot and varying, one-hot and constant, a mixture."""

    def current_mode(attention: Attention) -> str:
        context, _ = attend_hard(attention, 60)
        if not ((context == 0) | (context == 1)).all():
            return "expectation"
        return "argmax" if (context == context[:, :1]).all() else "sample"

    modes: list[Any] = ["sample", "argmax", "expectation"]
    for training in modes:
        for inference in modes:
            attention = hard(training, inference)
            assert current_mode(attention) == training
            assert current_mode(attention.eval()) == inference
            assert current_mode(attention.train()) == training


def test_without_a_readable_key_nothing_is_sampled() -> None:
    for mode in ("sample", "argmax", "expectation"):
        context, output = attend_hard(hard(mode), 3, keep="00000")
        assert (context == 0).all()
        assert output.extras["sample"].flatten().tolist() == [-1] * 3
        assert (output.extras["logp"] == 0).all()
        assert (output.extras["entropy"] == 0).all()
