"""Averaged weights against values computed by hand, and averaging in the loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.training import Callbacks
from heedful.training.averaging import MovingAverage, average_weights, copy_weights, use_weights
from heedful.training.loop import train
from training import toy


def test_the_moving_average_has_the_values_computed_by_hand() -> None:
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
        decay = min(0.75, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * value
    assert float(ema.weights["weight"]) == pytest.approx(expected)
    assert int(ema.weights["count"]) == 6
    ema.update(model, 10_000)
    assert float(ema.weights["weight"]) == pytest.approx(0.75 * expected - 0.25 * 2)


def test_the_mean_of_snapshots_takes_integers_from_the_last() -> None:
    snapshots = [{"w": torch.tensor([value, 1.0]), "n": torch.tensor(int(value))} for value in (1.0, 2.0, 6.0)]
    mean = average_weights(snapshots)
    assert mean["w"].tolist() == [3.0, 1.0]
    assert mean["n"] == 6


def test_use_weights_restores_the_original_weights() -> None:
    model = toy.build_model()
    original = toy.flat_weights(model).clone()
    other = {name: tensor + 1 for name, tensor in copy_weights(model).items()}
    with use_weights(model, other):
        torch.testing.assert_close(toy.flat_weights(model), original + 1)
    assert torch.equal(toy.flat_weights(model), original)
    with pytest.raises(ValueError, match="in validation"), use_weights(model, other):
        raise ValueError("in validation")
    assert torch.equal(toy.flat_weights(model), original)


def test_the_mean_of_the_last_snapshots_is_validated_and_returned(tmp_path: Path) -> None:
    model = toy.build_model()
    trained: list[torch.Tensor] = []
    validated: list[torch.Tensor] = []

    class RecordingTask(toy.ToyTask):
        def validate(self, model: toy.ToyModel) -> Any:
            validated.append(toy.flat_weights(model).clone())
            return super().validate(model)

    callbacks = Callbacks(on_validation=lambda _: trained.append(toy.flat_weights(model).clone()))
    train(RecordingTask(), model, toy.settings(epochs=4, average_last=3), tmp_path, callbacks)
    torch.testing.assert_close(validated[0], trained[0])
    torch.testing.assert_close(validated[3], torch.stack(trained[1:]).mean(dim=0))
    assert torch.equal(toy.flat_weights(model), validated[3])


def test_the_moving_average_is_validated_and_returned(tmp_path: Path) -> None:
    last, _ = toy.run(tmp_path / "last")
    averaged, result = toy.run(tmp_path / "ema", ema=0.95)
    assert not torch.equal(last, averaged)
    model = toy.build_model()
    torch.nn.utils.vector_to_parameters(averaged, model.parameters())
    assert toy.ToyTask().validate(model.eval()).metrics == result.best.metrics
