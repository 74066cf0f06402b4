"""`metrics.jsonl` and TensorBoard."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path

import pytest

from heedful.errors import TrainingError
from heedful.training import Report, Sample
from heedful.training.metrics_log import MetricsLog
from training import toy


def report(step: int) -> Report:
    return Report(epoch=1, step=step, seconds=1.0, train_loss=2.0, metrics={"loss": float(step)})


def test_a_report_survives_json() -> None:
    full = report(3)._replace(samples=(Sample("a", "b", "c"),), warnings=("it is slow",), improved=True)
    assert Report.from_dict(json.loads(json.dumps(full.to_dict()))) == full


def test_the_log_drops_torn_lines_and_those_a_resumed_run_writes_again(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path)
    assert log.truncate_after(0) == []
    for step in (5, 10, 15):
        log.write(report(step))
    with log.path.open("a") as file:
        file.write('{"epoch": 2, "st')
    assert MetricsLog(tmp_path).truncate_after(10) == [report(5), report(10)]
    assert [json.loads(text)["step"] for text in log.path.read_text().splitlines()] == [5, 10]


def test_missing_tensorboard_is_an_error_that_names_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(TrainingError, match=r"pip install 'heedful\[tensorboard\]'"):
        toy.run(tmp_path, tensorboard=True)


def test_tensorboard_gets_every_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points: list[tuple[str, int]] = []

    class FakeWriter:
        def __init__(self, folder: str, purge_step: int) -> None:
            points.append((Path(folder).name, purge_step))

        def add_scalar(self, name: str, value: float, step: int) -> None:
            points.append((name, step))

        def close(self) -> None:
            points.append(("closed", 0))

    module = types.ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = FakeWriter  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    toy.run(tmp_path, tensorboard=True, max_steps=2)
    assert points[0] == ("tensorboard", 1)
    assert points[-1] == ("closed", 0)
    curves = {("train/loss", 1), ("train/learning_rate", 2), ("train/grad_norm", 2), ("valid/loss", 2)}
    assert curves <= set(points)
