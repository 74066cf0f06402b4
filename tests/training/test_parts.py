"""Schedules, averages, health and the log, against values made by hand."""

from __future__ import annotations

import json
import math
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heedful.errors import TrainingError
from heedful.training import Report
from heedful.training.average import MovingAverage, holding, mean_of, snapshot
from heedful.training.log import Log
from heedful.training.loop import train
from heedful.training.schedule import better, share, steps_planned
from heedful.training.watch import (
    LossWatch,
    Movement,
    attention_warnings,
    collapse,
    end_mass,
    movement,
    on_the_end,
    standing_still,
)
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
def test_schedules_by_hand(schedule: str, expected: list[float]) -> None:
    config = toy.settings(schedule=schedule, warmup=4, decay=0.2)
    assert [share(config, step, total=8, decays=2) for step in range(9)] == pytest.approx(expected)


def test_schedules_without_a_rise_and_beyond_the_end() -> None:
    for name in ("constant", "linear", "cosine", "inverse-sqrt", "plateau"):
        config = toy.settings(schedule=name, warmup=0)
        assert share(config, 0, total=5) == 1.0
        assert 0.0 <= share(config, 50, total=5) <= 1.0


def test_the_loop_sets_the_rate_of_the_schedule(tmp_path: Path) -> None:
    _, outcome = toy.run(tmp_path, schedule="inverse-sqrt", warmup=4, rate=0.1, validate_every=1, epochs=1)
    expected = [0.1 * min(step / 4, math.sqrt(4 / step)) for step in range(1, 8)]
    assert [report.rate for report in outcome.reports] == pytest.approx(expected)


def test_planned_steps() -> None:
    assert steps_planned(7, toy.settings(epochs=3)) == 21
    assert steps_planned(7, toy.settings(epochs=3, accumulate=4)) == 6
    assert steps_planned(7, toy.settings(epochs=3, max_steps=5)) == 5


def test_better_knows_directions_and_no_number() -> None:
    assert better("loss", 1.0, None)
    assert not better("loss", 1.0, 1.0)
    assert better("bleu", 2.0, 1.0)
    assert better("loss", 5.0, math.nan)
    assert not better("loss", math.nan, 5.0)


def test_moving_average_by_hand() -> None:
    model = torch.nn.Linear(1, 1, bias=False)
    count = torch.tensor(3)
    model.register_buffer("count", count)
    with torch.no_grad():
        model.weight.fill_(0.0)
    ema = MovingAverage(model, decay=0.75)
    expected = 0.0
    for step, value in enumerate((1.0, 3.0, -2.0), start=1):
        with torch.no_grad():
            model.weight.fill_(value)
            count += 1
        ema.update(model, step)
        stay = min(0.75, (1 + step) / (10 + step))
        expected = stay * expected + (1 - stay) * value
    assert float(ema.weights["weight"]) == pytest.approx(expected)
    assert int(ema.weights["count"]) == 6
    ema.update(model, 10_000)
    assert float(ema.weights["weight"]) == pytest.approx(0.75 * expected - 0.25 * 2)


def test_mean_of_snapshots_by_hand() -> None:
    shots = [{"w": torch.tensor([value, 1.0]), "n": torch.tensor(int(value))} for value in (1.0, 2.0, 6.0)]
    mean = mean_of(shots)
    assert mean["w"].tolist() == [3.0, 1.0]
    assert mean["n"] == 6


def test_holding_other_weights_gives_the_own_ones_back() -> None:
    model = toy.fresh()
    own = toy.flat(model).clone()
    other = {name: tensor + 1 for name, tensor in snapshot(model).items()}
    with holding(model, other):
        torch.testing.assert_close(toy.flat(model), own + 1)
    assert torch.equal(toy.flat(model), own)


def test_the_mean_of_the_last_validations_is_judged_and_returned(tmp_path: Path) -> None:
    model = toy.fresh()
    seen: list[torch.Tensor] = []
    judged: list[torch.Tensor] = []

    class Curious(toy.Toy):
        def validate(self, net: toy.Net) -> Any:
            judged.append(toy.flat(net).clone())
            return super().validate(net)

    config = toy.settings(epochs=4, average=3)
    train(Curious(), model, config, tmp_path, after=lambda _: seen.append(toy.flat(model).clone()))
    torch.testing.assert_close(judged[0], seen[0])
    torch.testing.assert_close(judged[3], torch.stack(seen[1:]).mean(dim=0))
    assert torch.equal(toy.flat(model), judged[3])


def test_ema_weights_are_judged_and_returned(tmp_path: Path) -> None:
    raw, _ = toy.run(tmp_path / "raw")
    averaged, outcome = toy.run(tmp_path / "ema", ema=0.95)
    assert not torch.equal(raw, averaged)
    model = toy.fresh()
    torch.nn.utils.vector_to_parameters(averaged, model.parameters())
    assert toy.Toy().validate(model.eval()).figures == outcome.best.figures


STILL = np.full((4, 3), 1 / 3)
MOVING = np.eye(4)[:, :, None].repeat(2, axis=2).transpose(0, 2, 1)  # (query, head, key)


def test_movement_by_hand() -> None:
    assert movement([STILL, STILL]) == Movement(0.0, 0.0)
    assert movement([MOVING]) == Movement(1.0, 1.0)
    assert movement([np.array([[1.0, 0.0], [0.9, 0.1], [0.6, 0.4]])]) == pytest.approx((0.3, 0.2))
    assert movement([np.ones((1, 5)), np.ones((5, 1))]) is None  # nothing could have moved


def test_attention_that_does_not_move_is_said() -> None:
    assert "does not move: every output step has the same weights" in str(standing_still("cross", [STILL]))
    noise = np.random.default_rng(1).normal(scale=1e-18, size=STILL.shape)
    assert "does not move" in str(standing_still("cross", [STILL + noise]))
    nearly = STILL + np.array([[0.001, 0, -0.001], [0, 0, 0]] * 2)
    assert standing_still("cross", [nearly]) == (
        "attention cross hardly moves: from one output step to the next 0.10% of its mass changes place"
        " on average"
    )
    assert standing_still("cross", [MOVING]) is None
    assert standing_still("cross", [STILL, MOVING]) is None
    assert standing_still("cross", []) is None


def test_attention_on_the_end_token_is_said() -> None:
    onto_end = np.array([[0.1, 0.9], [0.3, 0.7], [1.0, 0.0]])
    assert end_mass([onto_end], [1]) == pytest.approx(0.8)
    assert "it holds 80% of the mass" in str(on_the_end("cross", [onto_end], [1]))
    assert on_the_end("cross", [onto_end[:, ::-1]], [1]) is None
    assert on_the_end("cross", [np.ones((1, 2))], [1]) is None  # the last step may look there
    padded = np.pad(onto_end, ((0, 0), (0, 3)))
    assert end_mass([padded, onto_end], [1, 1]) == pytest.approx(0.8)


def test_attention_warnings_gathers() -> None:
    fallen = np.tile([0.0, 1.0], (3, 1))
    both = attention_warnings("cross", [fallen], [1])
    assert ["does not move" in both[0], "falls on the end token" in both[1], len(both)] == [True, True, 2]
    assert attention_warnings("cross", [MOVING], [3]) == []


def test_a_collapsed_loss_is_said_once_until_it_recovers() -> None:
    assert collapse(2.0, 1.0) is None
    assert "rose to 3.00 a token after having been 1.00" in str(collapse(3.0, 1.0))
    watch = LossWatch()
    said = [bool(watch.see(loss)) for loss in [1.0] * 60 + [9.0] * 100]
    assert sum(said) == 1
    assert said.index(True) > 60
    resumed = LossWatch(watch.state())
    assert not any(resumed.see(9.0) for _ in range(50))
    for _ in range(400):
        resumed.see(1.0)
    assert sum(bool(resumed.see(9.0)) for _ in range(100)) == 1
    assert not any(LossWatch().see(loss) for loss in np.linspace(9, 1, 300))


def line(step: int) -> Report:
    return Report(epoch=1, step=step, seconds=1.0, train_loss=2.0, figures={"loss": float(step)})


def test_the_log_drops_what_will_be_written_again_and_torn_lines(tmp_path: Path) -> None:
    log = Log(tmp_path)
    assert log.rewind(0) == []
    for step in (5, 10, 15):
        log.write(line(step))
    with log.path.open("a") as file:
        file.write('{"epoch": 2, "st')
    assert Log(tmp_path).rewind(10) == [line(5), line(10)]
    assert [json.loads(text)["step"] for text in log.path.read_text().splitlines()] == [5, 10]


def test_tensorboard_is_asked_for_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(TrainingError, match=r"pip install 'heedful\[tensorboard\]'"):
        toy.run(tmp_path, tensorboard=True)


def test_tensorboard_gets_every_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points: list[tuple[str, int]] = []

    class Writer:
        def __init__(self, folder: str, purge_step: int) -> None:
            points.append((Path(folder).name, purge_step))

        def add_scalar(self, name: str, value: float, step: int) -> None:
            points.append((name, step))

        def close(self) -> None:
            points.append(("closed", 0))

    fake = types.ModuleType("torch.utils.tensorboard")
    fake.SummaryWriter = Writer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", fake)
    toy.run(tmp_path, tensorboard=True, max_steps=2)
    assert points[0] == ("tensorboard", 1)
    assert points[-1] == ("closed", 0)
    assert {("train/loss", 1), ("train/rate", 2), ("train/norm", 2), ("valid/loss", 2)} <= set(points)
