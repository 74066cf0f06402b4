"""Learning-rate schedules against values computed by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from heedful.training.schedule import is_improvement, learning_rate_factor, planned_steps
from training import toy


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [0.25, 0.5, 0.75, 1, 1, 1, 1, 1, 1]),
        ("linear", [0.25, 0.5, 0.75, 1, 1, 0.75, 0.5, 0.25, 0]),
        ("cosine", [0.25, 0.5, 0.75, 1, 1, 0.5 + 0.5 * math.sqrt(0.5), 0.5, 0.5 - 0.5 * math.sqrt(0.5), 0]),
        ("inverse-sqrt", [0.25, 0.5, 0.75, 1, *(2 / math.sqrt(step) for step in range(5, 10))]),
        ("plateau", [0.25, 0.5, 0.75, 1, *[0.04] * 5]),
    ],
)
def test_schedules_have_the_values_computed_by_hand(schedule: str, expected: list[float]) -> None:
    config = toy.settings(schedule=schedule, warmup_steps=4, plateau_factor=0.2)
    factors = [learning_rate_factor(config, step, total=8, decays=2) for step in range(9)]
    assert factors == pytest.approx(expected)


def test_schedules_work_without_warm_up_and_beyond_the_planned_end() -> None:
    for name in ("constant", "linear", "cosine", "inverse-sqrt", "plateau"):
        config = toy.settings(schedule=name, warmup_steps=0)
        assert learning_rate_factor(config, 0, total=5) == 1.0
        assert 0.0 <= learning_rate_factor(config, 50, total=5) <= 1.0


def test_time_limits_end_the_decay_as_steps_do() -> None:
    config = toy.settings(schedule="linear", warmup_steps=0, max_minutes=1)
    assert learning_rate_factor(config, 2, total=8, seconds=0) == 0.75
    assert learning_rate_factor(config, 2, total=8, seconds=45) == 0.25
    assert learning_rate_factor(config, 2, total=8, seconds=90) == 0.0


def test_the_loop_follows_the_schedule(tmp_path: Path) -> None:
    _, result = toy.run(
        tmp_path, schedule="inverse-sqrt", warmup_steps=4, learning_rate=0.1, validate_every=1, epochs=1
    )
    expected = [0.1 * min(step / 4, math.sqrt(4 / step)) for step in range(1, 8)]
    assert [report.learning_rate for report in result.reports] == pytest.approx(expected)


def test_planned_steps_depend_on_epochs_accumulation_and_max_steps() -> None:
    assert planned_steps(7, toy.settings(epochs=3)) == 21
    assert planned_steps(7, toy.settings(epochs=3, accumulate_grad_batches=4)) == 6
    assert planned_steps(7, toy.settings(epochs=3, max_steps=5)) == 5


@pytest.mark.parametrize("name", ["loss", "perplexity", "ter", "line-error", "symbol-error", "word-error"])
def test_of_errors_and_losses_less_is_better(name: str) -> None:
    assert is_improvement(name, 1.0, 2.0)
    assert not is_improvement(name, 2.0, 1.0)


@pytest.mark.parametrize("name", ["bleu", "exact", "accuracy", "hr@10", "ndcg@10:all", "rouge-l", "cider"])
def test_of_other_metrics_more_is_better(name: str) -> None:
    assert is_improvement(name, 2.0, 1.0)
    assert not is_improvement(name, 1.0, 2.0)


def test_any_value_improves_on_none_and_nan_on_nothing() -> None:
    assert is_improvement("loss", 1.0, None)
    assert not is_improvement("loss", 1.0, 1.0)
    assert is_improvement("loss", 5.0, math.nan)
    assert not is_improvement("loss", math.nan, 5.0)
