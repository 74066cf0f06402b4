"""The faithfulness tests on a toy model against plain loops."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Generator, Tensor

from heedful.analysis.faithfulness import FRACTIONS, TESTS, FaithfulnessOptions, run_faithfulness_tests
from heedful.data.tokenizer import END
from heedful.errors import DataError
from heedful.tasks.probes import Decision

FIRST, N_TOKENS = 10, 20  # token ids; the end token has score and value 0
SCORES = torch.randn(FIRST + N_TOKENS, generator=Generator().manual_seed(1)).double()
VALUES = 3 * torch.randn(FIRST + N_TOKENS, generator=Generator().manual_seed(2)).double()
SOURCES = [[11, 14, 17, 20, END], [12, 13, 25, END], [19, 10, 28, 15, 22, 16, END]]


def attend(source: Sequence[int]) -> Tensor:
    """The weights of the toy model: a softmax over the scores of the tokens, the end token excluded."""
    tokens = torch.tensor(source[:-1], dtype=torch.long)
    return torch.cat([SCORES[tokens].softmax(dim=0), torch.zeros(1)]) if len(tokens) else torch.zeros(1).double()


def classify(weights: Tensor, source: Sequence[int]) -> Tensor:
    """Its two classes: the sigmoid of the weighted mean of the token values, and the rest."""
    probability = (weights.double() @ VALUES[torch.tensor(source)]).sigmoid()
    return torch.stack([probability, 1 - probability], dim=-1)


@dataclass(frozen=True)
class ToyProbe:
    """The decisions of some items, padded to the longest."""

    items: list[int]
    step: int = 0

    def _padded(self, rows: Sequence[Tensor]) -> Tensor:
        return torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True)

    @property
    def weights(self) -> Tensor:
        return self._padded([attend(SOURCES[item]) for item in self.items])[:, None]

    @property
    def token_weights(self) -> Tensor:
        return self.weights[:, 0]

    @property
    def readable(self) -> Tensor:
        return self._padded([torch.tensor(SOURCES[item]) != END for item in self.items])

    valid = readable

    @property
    def probabilities(self) -> Tensor:
        return torch.stack([classify(attend(SOURCES[item]), SOURCES[item]) for item in self.items])

    def predict(self, weights: Tensor) -> Tensor:
        rows = [
            classify(weights[row, :, 0, : len(SOURCES[item])], SOURCES[item]) for row, item in enumerate(self.items)
        ]
        return torch.stack(rows)


class ToyTarget:
    """The toy model and its decisions about all items."""

    decision_name, metric_name, position_name = "label", "accuracy", "words"
    sources = SOURCES

    def __init__(self, has_decisions: bool = True) -> None:
        self.has_decisions = has_decisions

    def sample_steps(self, per_item: int, seed: int) -> list[set[int]]:
        return [{0} for _ in SOURCES]

    def probes(self, steps: Sequence[set[int]]) -> Iterator[ToyProbe]:
        yield ToyProbe([item for item, item_steps in enumerate(steps) if item_steps])

    def predict_from(self, decisions: Sequence[Decision], sources: Sequence[Sequence[int]]) -> Tensor:
        return torch.stack([classify(attend(source), source) for source in sources])

    def saliency(self, decisions: Sequence[Decision]) -> list[Tensor]:
        return [VALUES[torch.tensor(SOURCES[item])].abs() for item, _ in decisions]

    def output_metrics(self, seed: int) -> dict[str, float]:
        return {"unchanged": 90.0, "uniform": 80.0, "permuted": 70.0}


def run(*tests: str) -> dict[str, Any]:
    options = FaithfulnessOptions(tests, counterfactuals=2, search_steps=20)
    results = run_faithfulness_tests(ToyTarget(), options)
    assert json.loads(json.dumps(results)) == results, "plain numbers"
    return results


def total_variation(p: Tensor, q: Tensor) -> float:
    return 0.5 * sum(abs(float(a) - float(b)) for a, b in zip(p, q, strict=True))


def test_every_test_has_a_result_and_only_the_chosen_ones_run() -> None:
    keys = {test.replace("-", "_") for test in TESTS}
    assert keys <= set(run(*TESTS))
    results = run("correlation")
    assert keys & set(results) == {"correlation"}
    assert "outputs" not in results
    assert (results["decisions"], results["decision"], results["positions"]) == (3, "label", "words")


def test_uniform_weights_change_the_outcome_as_a_plain_loop_says() -> None:
    changes = []
    for source in SOURCES:
        n = len(source) - 1
        uniform = torch.tensor([1 / n] * n + [0.0]).double()
        changes.append(total_variation(classify(uniform, source), classify(attend(source), source)))
    results = run("uniform")
    assert results["uniform"]["tvd"]["mean"] == pytest.approx(sum(changes) / 3)
    assert results["uniform"]["tvd"]["median"] == pytest.approx(sorted(changes)[1])
    assert results["outputs"] == {"unchanged": 90.0, "uniform": 80.0, "permuted": 70.0}


def test_input_erasure_loses_the_probability_that_a_plain_loop_says() -> None:
    without: list[float] = []
    alone: list[float] = []
    for source in SOURCES:
        weights, original = attend(source)[:-1], classify(attend(source), source)
        decision = int(original.argmax())
        order = sorted(range(len(weights)), key=lambda i: -float(weights[i]))
        for fraction in FRACTIONS:
            top = set(order[: max(1, math.ceil(fraction * len(weights)))])
            kept = [token for i, token in enumerate(source[:-1]) if i not in top]
            removed = [token for i, token in enumerate(source[:-1]) if i in top]
            for tokens, losses in ((kept, without), (removed, alone)):
                changed = classify(attend([*tokens, END]), [*tokens, END])
                losses.append(float(original[decision] - changed[decision]))
    result = run("input-erasure")["input_erasure"]
    assert result["decisions"] == 3
    assert result["weight"]["comprehensiveness"] == pytest.approx(sum(without) / len(without))
    assert result["weight"]["sufficiency"] == pytest.approx(sum(alone) / len(alone))


def test_leave_one_out_correlates_as_a_plain_loop_says() -> None:
    from scipy.stats import kendalltau  # type: ignore[import-untyped]

    taus = []
    for source in SOURCES:
        original, effects = classify(attend(source), source), []
        for position in range(len(source) - 1):
            shorter = source[:position] + source[position + 1 :]
            effects.append(total_variation(classify(attend(shorter), shorter), original))
        taus.append(kendalltau(attend(source)[:-1].numpy(), effects).statistic)
    result = run("correlation")["correlation"]["weight_vs_leave_one_out"]
    assert result["decisions"] == 3
    assert result["mean"] == pytest.approx(sum(taus) / 3)


def test_fractions_of_flips_sum_to_one_and_orders_are_compared() -> None:
    result = run("erasure")["erasure"]
    assert sum(result["flips"].values()) == pytest.approx(1)
    assert set(result["until_flip"]) == {"weight", "gradient", "gradient_x_weight", "random"}
    for order in result["until_flip"].values():
        assert 0 <= order["never"] <= 1
        assert order["fraction_erased"] is None or 0 < order["fraction_erased"] < 1


def test_a_task_without_single_decisions_is_tested_on_complete_outputs_only() -> None:
    target = ToyTarget(has_decisions=False)
    results = run_faithfulness_tests(target, FaithfulnessOptions(("permutation", "erasure")))
    assert set(results) == {"decisions", "decision", "metric", "positions", "outputs"}
    with pytest.raises(DataError, match="no single decision to probe: use --test permutation or --test uniform"):
        run_faithfulness_tests(target, FaithfulnessOptions(("erasure",)))


def test_progress_is_logged() -> None:
    lines: list[str] = []
    run_faithfulness_tests(ToyTarget(), FaithfulnessOptions(("uniform", "correlation"), log=lines.append))
    assert lines == ["complete outputs", "decisions", "correlation"]
