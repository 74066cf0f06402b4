"""The loop: it learns, it repeats exactly, it keeps to its bounds, and it says what goes wrong."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.config import TrainingConfig
from heedful.errors import TrainingError
from heedful.training import Loss, Report, Sample, Validation
from heedful.training.loop import train
from training import toy


def test_it_learns_and_writes_down_what_it_measured(tmp_path: Path) -> None:
    _, outcome = toy.run(tmp_path, epochs=40)
    assert outcome.reason == "epochs"
    assert outcome.best == outcome.reports[-1]
    assert outcome.best.figures["exact"] == 1.0
    assert outcome.best.figures["loss"] < 0.1 * outcome.reports[0].figures["loss"]
    assert outcome.best.samples == (Sample("0", "1", "1"),)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == list(range(1, 41))
    assert [line["step"] for line in lines] == [7 * epoch for epoch in range(1, 41)]
    assert lines[-1]["samples"] == [{"source": "0", "reference": "1", "output": "1"}]


@pytest.mark.parametrize(
    "training",
    [
        {"optimizer": "adamw", "weight_decay": 0.1, "betas": [0.9, 0.98]},
        {"optimizer": "sgd", "momentum": 0.5, "rate": 0.3},
        {"optimizer": "adadelta", "rate": 1.0},
        {"precision": "bf16-mixed"},
        {"precision": "64-true"},
        {"clip": 0.0},
    ],
    ids=str,
)
def test_other_optimizers_and_precisions_learn_too(tmp_path: Path, training: dict[str, Any]) -> None:
    _, outcome = toy.run(tmp_path, epochs=12, **training)
    assert outcome.best.figures["loss"] < 0.97 * outcome.reports[0].figures["loss"]


def test_the_same_seed_gives_the_same_weights_and_another_others(tmp_path: Path) -> None:
    first, again, other = (
        toy.run(tmp_path / str(number), seed=seed)[0] for number, seed in enumerate((1, 1, 2))
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)  # through dropout: this task's order has a seed of its own


def test_validations_do_not_disturb_the_training(tmp_path: Path) -> None:
    often, _ = toy.run(tmp_path / "often", validate_every=1)
    seldom, _ = toy.run(tmp_path / "seldom", validate_every=100)
    assert torch.equal(often, seldom)


def test_accumulated_batches_equal_one_large_batch(tmp_path: Path) -> None:
    class Joined(toy.Toy):
        def batches(self, epoch: int, start: int = 0, rank: int = 0, world: int = 1) -> Any:
            parts = list(super().batches(epoch))
            for first in range(2 * start, len(parts), 2):
                some = parts[first : first + 2]
                yield toy.Pairs(torch.cat([p.asked for p in some]), torch.cat([p.wanted for p in some]))

        def steps_per_epoch(self, world: int = 1) -> int:
            return math.ceil(self.count / 2)

    weights = []
    for task, accumulate in ((toy.Toy(), 2), (Joined(), 1)):
        model = toy.fresh()
        model.drop.p = 0.0
        weights.append(toy.run(tmp_path / str(accumulate), task, model, accumulate=accumulate)[0])
    torch.testing.assert_close(*weights, rtol=0, atol=1e-5)


def test_one_update_by_hand(tmp_path: Path) -> None:
    """Plain gradient descent: the gradient is that of the mean over all tokens of the step."""
    config = {"optimizer": "sgd", "rate": 0.5, "schedule": "constant", "warmup": 0, "clip": 0.0}
    model, twin, task = toy.fresh(), toy.fresh(), toy.Toy()
    model.drop.p = twin.drop.p = 0.0
    toy.run(tmp_path, task, model, accumulate=3, max_steps=1, **config)
    losses = [task.loss(twin, batch) for batch in list(task.batches(1))[:3]]
    total = torch.stack([loss.total for loss in losses]).sum() / sum(loss.tokens for loss in losses)
    gradients = torch.autograd.grad(total, list(twin.parameters()))
    expected = toy.flat(twin) - 0.5 * torch.cat([g.flatten() for g in gradients])
    torch.testing.assert_close(toy.flat(model), expected, rtol=0, atol=1e-6)


def test_every_bound_ends_it_with_a_last_validation(tmp_path: Path) -> None:
    _, steps = toy.run(tmp_path / "steps", epochs=99, max_steps=10)
    assert (steps.reason, [(r.epoch, r.step) for r in steps.reports]) == ("max_steps", [(1, 7), (2, 10)])
    _, minutes = toy.run(tmp_path / "minutes", epochs=10**6, max_minutes=0.005)
    assert minutes.reason == "max_minutes"
    assert 0.3 <= minutes.best.seconds < 5
    _, often = toy.run(tmp_path / "often", epochs=2, validate_every=5)
    assert [(r.epoch, r.step) for r in often.reports] == [(1, 5), (2, 10), (2, 14)]


def falling_until_3(validation: int) -> dict[str, float]:
    return {"loss": abs(validation - 3.0), "exact": validation / 100}


def test_patience_ends_it_with_the_best_weights(tmp_path: Path) -> None:
    seen: dict[int, torch.Tensor] = {}
    model = toy.fresh()

    def after(report: Report) -> None:
        seen[report.step] = toy.flat(model)

    task = toy.Toy(figures=falling_until_3)
    outcome = train(task, model, toy.settings(epochs=50, patience=2), tmp_path, after=after)
    assert (outcome.reason, outcome.best.epoch, len(outcome.reports)) == ("patience", 3, 5)
    assert [r.improved for r in outcome.reports] == [True, True, True, False, False]
    assert torch.equal(toy.flat(model), seen[21])
    assert not torch.equal(toy.flat(model), seen[35])


def test_the_metric_is_a_choice_with_a_direction(tmp_path: Path) -> None:
    _, outcome = toy.run(
        tmp_path / "a", toy.Toy(figures=falling_until_3), epochs=5, metric="exact", keep_best=True
    )
    assert outcome.best.epoch == 5
    with pytest.raises(
        TrainingError, match=r'metric = "exatc": .* did you mean "exact"\? known: loss, exact'
    ):
        toy.run(tmp_path / "b", metric="exatc")
    _, outcome = toy.run(tmp_path / "b", metric="exact")  # nothing was lost by the mistake
    assert [report.epoch for report in outcome.reports] == [1, 2, 3]


def test_plateau_lowers_the_rate_when_nothing_is_gained(tmp_path: Path) -> None:
    _, outcome = toy.run(
        tmp_path, toy.Toy(figures=falling_until_3), epochs=8, schedule="plateau", rate=0.08, decay_after=2
    )
    rates = [round(report.rate, 4) for report in outcome.reports]
    assert rates == [0.08, 0.08, 0.08, 0.08, 0.08, 0.04, 0.04, 0.02]


class Broken(toy.Toy):
    def loss(self, model: toy.Net, batch: toy.Pairs) -> Loss:
        good = super().loss(model, batch)
        return Loss(good.total * float("nan"), good.tokens)


class Steep(toy.Toy):
    def loss(self, model: toy.Net, batch: toy.Pairs) -> Loss:
        good = super().loss(model, batch)
        flat = (good.total - good.total.detach()).sqrt()  # 0, with an endless slope
        return Loss(good.total.detach() + flat, good.tokens)


@pytest.mark.parametrize(("task", "what"), [(Broken(), "loss"), (Steep(), "gradient")])
def test_what_is_no_number_stops_it_in_words(tmp_path: Path, task: toy.Toy, what: str) -> None:
    complaint = rf"^the {what} became (nan|inf) at step 1; a lower training.rate may help: "
    model = toy.fresh()
    before = toy.flat(model).clone()
    with pytest.raises(TrainingError, match=complaint):
        toy.run(tmp_path, task, model)
    assert torch.equal(toy.flat(model), before)


def test_no_data_is_said(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="gives no batch"):
        toy.run(tmp_path, toy.Toy(count=0))


def test_a_device_that_is_not_there_is_said(tmp_path: Path) -> None:
    if torch.backends.mps.is_available():
        pytest.skip("this machine has it")
    with pytest.raises(TrainingError, match=r'training.device = "mps" .* cannot be used here'):
        toy.run(tmp_path, device="mps")


def test_warnings_are_said_and_written_down(tmp_path: Path) -> None:
    class Odd(toy.Toy):
        def validate(self, model: toy.Net) -> Validation:
            return Validation({"loss": 1.0}, warnings=["attention cross does not move"])

        def loss(self, model: toy.Net, batch: toy.Pairs) -> Loss:
            good = super().loss(model, batch)
            collapsed = self.validations_begun > 10
            return Loss(good.total * (50.0 if collapsed else 1.0), good.tokens)

        validations_begun = 0

        def batches(self, epoch: int, start: int = 0, rank: int = 0, world: int = 1) -> Any:
            self.validations_begun = epoch
            return super().batches(epoch, start, rank, world)

    said: list[str] = []
    outcome = train(Odd(), toy.fresh(), toy.settings(epochs=14, rate=1e-5), tmp_path, say=said.append)
    assert said.count("warning: attention cross does not move") == 14
    (collapse,) = [line for line in said if "collapsed" in line]
    assert "the training loss rose to" in collapse
    written = [warning for report in outcome.reports for warning in report.warnings]
    assert sum("collapsed" in warning for warning in written) == 1


def test_the_bar_knows_how_far_it_is(tmp_path: Path) -> None:
    heard: list[object] = []
    for config in (toy.settings(epochs=2, accumulate=2, max_steps=6), toy.settings(epochs=2, accumulate=2)):
        train(
            toy.Toy(),
            toy.fresh(),
            config,
            tmp_path,
            begin=lambda *numbers: heard.append(numbers),
            tick=lambda step, _loss: heard.append(step),
        )
    assert heard == [(6, 0), 1, 2, 3, 4, 5, 6, (8, 6), 7, 8]


def test_averages_exclude_one_another() -> None:
    with pytest.raises(ValueError, match="take one"):
        TrainingConfig(ema=0.9, average=3)
