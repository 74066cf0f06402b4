"""The training loop: it learns, is reproducible, respects its limits, and reports problems."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.config import TrainingConfig
from heedful.errors import TrainingError
from heedful.training import Callbacks, Loss, Report, Sample, Validation
from heedful.training import loop as loop_module
from heedful.training.loop import train
from training import toy


def test_training_learns_and_writes_its_metrics(tmp_path: Path) -> None:
    _, result = toy.run(tmp_path, epochs=40)
    assert result.reason == "epochs"
    assert result.best == result.reports[-1]
    assert result.best.metrics["exact"] == 100.0
    assert result.best.metrics["loss"] < 0.1 * result.reports[0].metrics["loss"]
    assert result.best.samples == (Sample("0", "1", "1"),)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == list(range(1, 41))
    assert [line["step"] for line in lines] == [7 * epoch for epoch in range(1, 41)]
    assert lines[-1]["samples"] == [{"source": "0", "reference": "1", "output": "1"}]


@pytest.mark.parametrize(
    "training",
    [
        {"optimizer": "adamw", "weight_decay": 0.1, "adam_betas": [0.9, 0.98]},
        {"optimizer": "sgd", "momentum": 0.5, "learning_rate": 0.3},
        {"optimizer": "adadelta", "learning_rate": 1.0},
        {"optimizer": "adagrad", "learning_rate": 0.1},
        {"precision": "bf16-mixed"},
        {"precision": "64-true"},
        {"grad_clip": 0.0},
    ],
    ids=str,
)
def test_every_optimizer_and_precision_learns(tmp_path: Path, training: dict[str, Any]) -> None:
    _, result = toy.run(tmp_path, epochs=12, **training)
    assert result.best.metrics["loss"] < 0.97 * result.reports[0].metrics["loss"]


def test_the_same_seed_gives_the_same_weights_and_another_seed_does_not(tmp_path: Path) -> None:
    first, second, other = (toy.run(tmp_path / str(number), seed=seed)[0] for number, seed in enumerate((1, 1, 2)))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)  # through dropout: the order of this task's batches has its own seed


def test_validations_do_not_change_the_training(tmp_path: Path) -> None:
    often, _ = toy.run(tmp_path / "often", validate_every=1)
    seldom, _ = toy.run(tmp_path / "seldom", validate_every=100)
    assert torch.equal(often, seldom)


def test_accumulated_batches_equal_one_large_batch(tmp_path: Path) -> None:
    class JoinedBatches(toy.ToyTask):
        def batches(self, epoch: int, start: int = 0, rank: int = 0, world_size: int = 1) -> Any:
            batches = list(super().batches(epoch))
            for first in range(2 * start, len(batches), 2):
                pair = batches[first : first + 2]
                yield toy.ToyBatch(torch.cat([b.letters for b in pair]), torch.cat([b.targets for b in pair]))

        def steps_per_epoch(self, world_size: int = 1) -> int:
            return math.ceil(self.n_batches / 2)

    weights = []
    for task, accumulate in ((toy.ToyTask(), 2), (JoinedBatches(), 1)):
        model = toy.build_model()
        model.dropout.p = 0.0
        weights.append(toy.run(tmp_path / str(accumulate), task, model, accumulate_grad_batches=accumulate)[0])
    torch.testing.assert_close(*weights, rtol=0, atol=1e-5)


def test_one_update_equals_the_gradient_of_the_mean_loss_over_all_tokens(tmp_path: Path) -> None:
    config = {"optimizer": "sgd", "learning_rate": 0.5, "schedule": "constant", "warmup_steps": 0, "grad_clip": 0.0}
    model, reference, task = toy.build_model(), toy.build_model(), toy.ToyTask()
    model.dropout.p = reference.dropout.p = 0.0
    toy.run(tmp_path, task, model, accumulate_grad_batches=3, max_steps=1, **config)
    losses = [task.loss(reference, batch) for batch in list(task.batches(1))[:3]]
    mean = torch.stack([loss.total for loss in losses]).sum() / sum(loss.tokens for loss in losses)
    gradients = torch.autograd.grad(mean, list(reference.parameters()))
    expected = toy.flat_weights(reference) - 0.5 * torch.cat([g.flatten() for g in gradients])
    torch.testing.assert_close(toy.flat_weights(model), expected, rtol=0, atol=1e-6)


def test_every_limit_ends_training_with_a_validation(tmp_path: Path) -> None:
    _, steps = toy.run(tmp_path / "steps", epochs=99, max_steps=10)
    assert (steps.reason, [(r.epoch, r.step) for r in steps.reports]) == ("max_steps", [(1, 7), (2, 10)])
    _, minutes = toy.run(tmp_path / "minutes", epochs=10**6, max_minutes=0.005)
    assert minutes.reason == "max_minutes"
    assert minutes.best.seconds >= 0.3
    assert minutes.best.step == minutes.reports[-1].step
    _, often = toy.run(tmp_path / "often", epochs=2, validate_every=5)
    assert [(r.epoch, r.step) for r in often.reports] == [(1, 5), (2, 10), (2, 14)]


def best_at_3(validation: int) -> dict[str, float]:
    """The loss falls until validation 3 and then rises; exact match always rises."""
    return {"loss": abs(validation - 3.0), "exact": validation / 100}


def test_patience_ends_training_with_the_best_weights(tmp_path: Path) -> None:
    weights: dict[int, torch.Tensor] = {}
    model = toy.build_model()

    def on_validation(report: Report) -> None:
        weights[report.step] = toy.flat_weights(model)

    task = toy.ToyTask(metrics=best_at_3)
    config = toy.settings(epochs=50, patience=2)
    result = train(task, model, config, tmp_path, Callbacks(on_validation=on_validation))
    assert (result.reason, result.best.epoch, len(result.reports)) == ("patience", 3, 5)
    assert [r.improved for r in result.reports] == [True, True, True, False, False]
    assert torch.equal(toy.flat_weights(model), weights[21])
    assert not torch.equal(toy.flat_weights(model), weights[35])


def test_the_metric_that_selects_the_best_weights_has_a_direction(tmp_path: Path) -> None:
    _, result = toy.run(tmp_path / "a", toy.ToyTask(metrics=best_at_3), epochs=5, metric="exact", keep_best=True)
    assert result.best.epoch == 5
    with pytest.raises(TrainingError, match=r'metric = "exatc": .* did you mean "exact"\? known: loss, exact'):
        toy.run(tmp_path / "b", metric="exatc")
    _, result = toy.run(tmp_path / "b", metric="exact")  # the typo lost no training
    assert [report.epoch for report in result.reports] == [1, 2, 3]


def test_the_plateau_schedule_lowers_the_rate_when_the_metric_stalls(tmp_path: Path) -> None:
    task = toy.ToyTask(metrics=best_at_3)
    _, result = toy.run(tmp_path, task, epochs=8, schedule="plateau", learning_rate=0.08, plateau_patience=2)
    rates = [round(report.learning_rate, 4) for report in result.reports]
    assert rates == [0.08, 0.08, 0.08, 0.08, 0.08, 0.04, 0.04, 0.02]


class NanLoss(toy.ToyTask):
    def loss(self, model: toy.ToyModel, batch: toy.ToyBatch) -> Loss:
        loss = super().loss(model, batch)
        return Loss(loss.total * float("nan"), loss.tokens)


class InfiniteGradient(toy.ToyTask):
    def loss(self, model: toy.ToyModel, batch: toy.ToyBatch) -> Loss:
        loss = super().loss(model, batch)
        zero = (loss.total - loss.total.detach()).sqrt()  # 0, with an infinite derivative
        return Loss(loss.total.detach() + zero, loss.tokens)


@pytest.mark.parametrize(("task", "name"), [(NanLoss(), "loss"), (InfiniteGradient(), "gradient")])
def test_nonfinite_numbers_end_training_with_an_error(tmp_path: Path, task: toy.ToyTask, name: str) -> None:
    model = toy.build_model()
    before = toy.flat_weights(model).clone()
    with pytest.raises(
        TrainingError, match=rf"^the {name} became (nan|inf) at step 1; try a lower training.learning_rate: "
    ):
        toy.run(tmp_path, task, model)
    assert torch.equal(toy.flat_weights(model), before)


def test_data_without_batches_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="contains no batches"):
        toy.run(tmp_path, toy.ToyTask(n_batches=0))


def test_an_unavailable_device_is_an_error(tmp_path: Path) -> None:
    if torch.backends.mps.is_available():
        pytest.skip("this machine has the device")
    with pytest.raises(TrainingError, match=r'training.device = "mps" .* cannot be used here'):
        toy.run(tmp_path, device="mps")


def test_warnings_are_logged_and_written(tmp_path: Path) -> None:
    class CollapsingTask(toy.ToyTask):
        epoch = 0

        def validate(self, model: toy.ToyModel) -> Validation:
            return Validation({"loss": 1.0}, warnings=["attention cross does not move"])

        def loss(self, model: toy.ToyModel, batch: toy.ToyBatch) -> Loss:
            loss = super().loss(model, batch)
            return Loss(loss.total * (50.0 if self.epoch > 10 else 1.0), loss.tokens)

        def batches(self, epoch: int, start: int = 0, rank: int = 0, world_size: int = 1) -> Any:
            self.epoch = epoch
            return super().batches(epoch, start, rank, world_size)

    lines: list[str] = []
    config = toy.settings(epochs=14, learning_rate=1e-5)
    result = train(CollapsingTask(), toy.build_model(), config, tmp_path, Callbacks(log=lines.append))
    assert lines.count("warning: attention cross does not move") == 14
    (collapse,) = [line for line in lines if "collapsed" in line]
    assert "the training loss rose to" in collapse
    warnings = [warning for report in result.reports for warning in report.warnings]
    assert sum("collapsed" in warning for warning in warnings) == 1


def test_callbacks_get_the_planned_steps_and_every_step(tmp_path: Path) -> None:
    calls: list[object] = []
    callbacks = Callbacks(
        on_start=lambda *numbers: calls.append(numbers),
        on_step=lambda step, _loss: calls.append(step),
    )
    for limit in ({"max_steps": 6}, {}):
        config = toy.settings(epochs=2, accumulate_grad_batches=2, **limit)
        train(toy.ToyTask(), toy.build_model(), config, tmp_path, callbacks)
    assert calls == [(6, 0), 1, 2, 3, 4, 5, 6, (8, 6), 7, 8]


def test_long_runs_log_their_duration_once_after_the_first_steps(tmp_path: Path) -> None:
    log: list[object] = []
    callbacks = Callbacks(on_step=lambda step, _loss: log.append(step), log=log.append)
    train(toy.ToyTask(), toy.build_model(), toy.settings(epochs=30), tmp_path / "long", callbacks)
    assert sum(isinstance(entry, str) for entry in log) == 1
    estimate = str(log[7])
    assert estimate.startswith("203 steps left at ")  # 30 epochs of 7 steps, after 7 of them
    assert estimate.endswith(" s plus validations")
    log.clear()
    train(toy.ToyTask(), toy.build_model(), toy.settings(epochs=2), tmp_path / "short", callbacks)
    assert log == list(range(1, 15))


def test_the_estimate_respects_max_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "format_duration", lambda seconds: f"{seconds:.3f}")
    lines: list[str] = []
    config = toy.settings(epochs=10**6, max_minutes=0.005)
    train(toy.ToyTask(), toy.build_model(), config, tmp_path, Callbacks(log=lines.append))
    (estimate,) = [line for line in lines if "steps left" in line]
    assert float(estimate.split("training.max_minutes stops it after ")[1].split()[0]) < 0.3  # of 0.005 minutes
    per_step, total = float(estimate.split(" at ")[1].split()[0]), float(estimate.split(": ")[1].split(",")[0])
    assert total == pytest.approx(per_step * 7 * 10**6, rel=0.1), "the time of all steps, not of those that are allowed"


def test_two_kinds_of_averaging_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="use one"):
        TrainingConfig(ema=0.9, average_last=3)
