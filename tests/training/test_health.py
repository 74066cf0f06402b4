"""Health checks against values computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from heedful.training.health import (
    LossMonitor,
    Movement,
    attention_warnings,
    check_end_mass,
    check_loss,
    check_movement,
    measure_end_mass,
    measure_movement,
)

CONSTANT = np.full((4, 3), 1 / 3)
MOVING = np.eye(4)[:, :, None].repeat(2, axis=2).transpose(0, 2, 1)  # (query, head, key)


def test_movement_has_the_values_computed_by_hand() -> None:
    assert measure_movement([CONSTANT, CONSTANT]) == Movement(0.0, 0.0)
    assert measure_movement([MOVING]) == Movement(1.0, 1.0)
    assert measure_movement([np.array([[1.0, 0.0], [0.9, 0.1], [0.6, 0.4]])]) == pytest.approx((0.3, 0.2))
    assert measure_movement([np.ones((1, 5)), np.ones((5, 1))]) is None  # nothing can move


def test_attention_that_does_not_move_gives_a_warning() -> None:
    assert "does not move: every output step has the same weights" in str(check_movement("cross", [CONSTANT]))
    noise = np.random.default_rng(1).normal(scale=1e-18, size=CONSTANT.shape)
    assert "does not move" in str(check_movement("cross", [CONSTANT + noise]))
    nearly = CONSTANT + np.array([[0.001, 0, -0.001], [0, 0, 0]] * 2)
    assert check_movement("cross", [nearly]) == (
        "attention cross hardly moves: on average 0.10% of its mass changes position from one output step to the next"
    )
    assert check_movement("cross", [MOVING]) is None
    assert check_movement("cross", [CONSTANT, MOVING]) is None
    assert check_movement("cross", []) is None


def test_attention_on_the_end_token_gives_a_warning() -> None:
    weights = np.array([[0.1, 0.9], [0.3, 0.7], [1.0, 0.0]])
    assert measure_end_mass([weights], [1]) == pytest.approx(0.8)
    assert "it gets 80% of the mass" in str(check_end_mass("cross", [weights], [1]))
    assert check_end_mass("cross", [weights[:, ::-1]], [1]) is None
    assert check_end_mass("cross", [np.ones((1, 2))], [1]) is None  # the last step may attend to it
    padded = np.pad(weights, ((0, 0), (0, 3)))
    assert measure_end_mass([padded, weights], [1, 1]) == pytest.approx(0.8)


def test_attention_warnings_runs_both_checks() -> None:
    on_end = np.tile([0.0, 1.0], (3, 1))
    movement, end = attention_warnings("cross", [on_end], [1])
    assert "does not move" in movement
    assert "attends mostly to the end token" in end
    assert len(attention_warnings("cross", [on_end])) == 1
    assert attention_warnings("cross", [MOVING], [3]) == []


def test_a_collapsed_loss_gives_one_warning_until_it_recovers() -> None:
    assert check_loss(2.0, 1.0) is None
    assert "rose to 3.00 per token from a minimum of 1.00" in str(check_loss(3.0, 1.0))
    monitor = LossMonitor()
    warned = [bool(monitor.update(loss)) for loss in [1.0] * 60 + [9.0] * 100]
    assert sum(warned) == 1
    assert warned.index(True) > 60
    resumed = LossMonitor(monitor.state())
    assert not any(resumed.update(9.0) for _ in range(50))
    for _ in range(400):
        resumed.update(1.0)
    assert sum(bool(resumed.update(9.0)) for _ in range(100)) == 1
    assert not any(LossMonitor().update(loss) for loss in np.linspace(9, 1, 300))
