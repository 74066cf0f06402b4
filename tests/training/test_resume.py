"""A training that is interrupted at any moment and resumed ends with the bits of an uninterrupted one."""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heedful.data.asset_files import RESUME_DIR, has_checkpoint
from heedful.errors import TrainingError, TrainingStopped
from heedful.training import Callbacks
from heedful.training.checkpoint_store import remove_checkpoints
from heedful.training.loop import train
from training import toy

TESTS = Path(__file__).parent.parent


class PowerCutError(Exception):
    """Ends a run without a chance to save anything."""


def interrupt(out: Path, at_step: int, **training: Any) -> None:
    """Train until `at_step` and lose everything since the last checkpoint."""

    def on_step(step: int, _loss: float) -> None:
        if step == at_step:
            raise PowerCutError

    with pytest.raises(PowerCutError):
        train(toy.ToyTask(), toy.build_model(), toy.settings(**training), out, Callbacks(on_step=on_step))


def resume(out: Path, **training: Any) -> tuple[torch.Tensor, list[str]]:
    """Train or resume; return the final weights and the logged lines."""
    lines: list[str] = []
    model = toy.build_model()
    train(toy.ToyTask(), model, toy.settings(**training), out, Callbacks(log=lines.append))
    return toy.flat_weights(model), lines


def disturb_generators() -> None:
    """Draw from the global generators, whose state must not matter."""
    torch.rand(3)
    np.random.random(3)  # noqa: NPY002 - the global generator is meant


def read_metrics(out: Path) -> list[dict[str, Any]]:
    """Read metrics.jsonl without the seconds, which differ."""
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


SETTINGS: dict[str, dict[str, Any]] = {
    "default": {"epochs": 2},
    "accumulated, plateau": {
        "accumulate_grad_batches": 2,
        "schedule": "plateau",
        "plateau_patience": 1,
        "metric": "exact",
    },
    "ema, sgd with momentum": {
        "epochs": 2,
        "ema": 0.9,
        "optimizer": "sgd",
        "momentum": 0.9,
        "validate_every": 4,
    },
    "average, best": {
        "epochs": 1,
        "average_last": 2,
        "keep_best": True,
        "validate_every": 2,
        "optimizer": "adadelta",
    },
}


@pytest.mark.parametrize("training", SETTINGS.values(), ids=SETTINGS)
def test_resume_after_an_interruption_at_any_step(tmp_path: Path, training: dict[str, Any]) -> None:
    expected, full = toy.run(tmp_path / "full", **training)
    for step in range(1, full.reports[-1].step + 1):
        out = tmp_path / str(step)
        interrupt(out, step, **training)
        disturb_generators()
        weights, result = toy.run(out, **training)
        assert torch.equal(weights, expected), step
        assert result.reason == full.reason
        assert result.best.metrics == full.best.metrics
        assert read_metrics(out) == read_metrics(tmp_path / "full")


def test_resume_after_many_interruptions(tmp_path: Path) -> None:
    expected, _ = toy.run(tmp_path / "full", ema=0.9)
    for step in (5, 9, 10, 16, 20):
        interrupt(tmp_path / "often", step, ema=0.9)
    assert torch.equal(toy.run(tmp_path / "often", ema=0.9)[0], expected)
    assert read_metrics(tmp_path / "often") == read_metrics(tmp_path / "full")


def test_resume_after_an_interruption_in_any_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before and after each file is complete: in the sync of the file, and of the folder after renaming."""
    training: dict[str, Any] = {"average_last": 2, "keep_best": True, "epochs": 2}
    expected, _ = toy.run(tmp_path / "full", **training)
    real_fsync, calls, failing_call = os.fsync, 0, 0

    def fsync(file: int) -> None:
        nonlocal calls
        calls += 1
        if calls == failing_call:
            raise PowerCutError
        real_fsync(file)

    monkeypatch.setattr(os, "fsync", fsync)
    for number in range(1, 100):
        calls, failing_call = 0, number
        try:
            toy.run(tmp_path / str(number), **training)
        except PowerCutError:
            failing_call = 0
            assert torch.equal(toy.run(tmp_path / str(number), **training)[0], expected), number
            assert read_metrics(tmp_path / str(number)) == read_metrics(tmp_path / "full")
        else:
            break
    assert number > 12


def test_resume_after_an_interruption_in_a_validation(tmp_path: Path) -> None:
    class FailingValidation(toy.ToyTask):
        def validate(self, model: toy.ToyModel) -> Any:
            if self.validations == 1:
                raise PowerCutError
            return super().validate(model)

    expected, _ = toy.run(tmp_path / "full", keep_best=True, validate_every=3)
    with pytest.raises(PowerCutError):
        toy.run(tmp_path / "failed", FailingValidation(), keep_best=True, validate_every=3)
    assert torch.equal(toy.run(tmp_path / "failed", keep_best=True, validate_every=3)[0], expected)
    assert read_metrics(tmp_path / "failed") == read_metrics(tmp_path / "full")


def test_resume_after_kill_9(tmp_path: Path) -> None:
    """In the middle of an epoch, and while a checkpoint is being written, when half of it is on disk."""
    deaths = {"epoch": {"die_at_step": 11}, "write": {"die_at_sync": 8}}
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    processes = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "training.toy",
                str(tmp_path / name),
                json.dumps({"training": {}, **death}),
            ],
            env={**os.environ, "PYTHONPATH": path},
            stderr=subprocess.PIPE,
            text=True,
        )
        for name, death in deaths.items()
    ]
    expected, _ = toy.run(tmp_path / "full")
    for process, name, newest in zip(processes, deaths, (9, 7), strict=True):
        _, stderr = process.communicate(timeout=240)
        assert process.returncode == -signal.SIGKILL, stderr
        folder = tmp_path / name / RESUME_DIR
        assert max(path.name for path in folder.glob("*.pt")) == f"step-{newest:09d}.pt"
        assert [path.stat().st_size for path in folder.glob("*.tmp*")] == [1000] * (name == "write")
        weights, _ = toy.run(tmp_path / name)
        assert torch.equal(weights, expected)
        assert read_metrics(tmp_path / name) == read_metrics(tmp_path / "full")
        assert not list(folder.glob("*.tmp*"))


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_training_after_the_step_and_loses_nothing(tmp_path: Path, signum: signal.Signals) -> None:
    handler = signal.getsignal(signum)
    steps: list[int] = []

    def on_step(step: int, _loss: float) -> None:
        steps.append(step)
        if step == 10:
            os.kill(os.getpid(), signum)

    expected, _ = toy.run(tmp_path / "full")
    callbacks = Callbacks(on_step=on_step)
    with pytest.raises(TrainingStopped, match="stopped at step 10; the same command resumes from there"):
        train(toy.ToyTask(), toy.build_model(), toy.settings(), tmp_path / "a", callbacks)
    assert signal.getsignal(signum) == handler
    model = toy.build_model()
    train(toy.ToyTask(), model, toy.settings(), tmp_path / "a", callbacks)
    assert steps == list(range(1, 22))
    assert torch.equal(toy.flat_weights(model), expected)


def test_a_second_ctrl_c_interrupts_at_once(tmp_path: Path) -> None:
    def on_step(_step: int, _loss: float) -> None:
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(toy.ToyTask(), toy.build_model(), toy.settings(), tmp_path, Callbacks(on_step=on_step))


def flip_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "best"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path: Path, damage: str) -> None:
    training: dict[str, Any] = {"keep_best": True, "validate_every": 4}
    expected, _ = toy.run(tmp_path / "full", **training)
    out = tmp_path / "damaged"
    interrupt(out, 9, **training)  # checkpoints at 6 and 8, each with other best weights
    newest = out / RESUME_DIR / "step-000000008.pt"
    match damage:
        case "flip":
            flip_bit(newest)
        case "best":
            flip_bit(out / RESUME_DIR / "best-000000008.pt")
        case "cut":
            newest.write_bytes(newest.read_bytes()[:5000])
        case "empty":
            newest.write_bytes(b"")
    weights, lines = resume(out, **training)
    assert lines[0].startswith(f"{newest}: ")
    assert lines[0].endswith("damaged; trying the checkpoint before it")
    assert lines[1] == "resuming from step 6 (epoch 1)"
    assert torch.equal(weights, expected)
    assert read_metrics(out) == read_metrics(tmp_path / "full")


def test_training_starts_over_if_every_checkpoint_is_damaged(tmp_path: Path) -> None:
    expected, _ = toy.run(tmp_path / "full")
    out = tmp_path / "damaged"
    interrupt(out, 7)
    for path in (out / RESUME_DIR).iterdir():
        flip_bit(path)
    (out / RESUME_DIR / "note.txt").write_text("left over")
    weights, lines = resume(out)
    assert lines[-1].endswith("has no intact checkpoint; training starts over")
    assert torch.equal(weights, expected)


def test_a_finished_training_is_not_trained_again(tmp_path: Path) -> None:
    steps: list[int] = []
    for training in ({"ema": 0.9}, {"average_last": 2}, {"patience": 1}, {}):
        out = tmp_path / str(training)
        expected, full = toy.run(out, **training)
        model = toy.build_model()
        callbacks = Callbacks(on_step=lambda step, _loss: steps.append(step))
        result = train(toy.ToyTask(), model, toy.settings(**training), out, callbacks)
        assert torch.equal(toy.flat_weights(model), expected)
        assert (result.reason, result.best.metrics) == (full.reason, full.best.metrics)
        assert len(result.reports) == len(full.reports)
    assert steps == []
    assert has_checkpoint(out)
    remove_checkpoints(out)
    assert not has_checkpoint(out)


def test_two_checkpoints_are_kept(tmp_path: Path) -> None:
    toy.run(tmp_path, epochs=6, average_last=2, keep_best=True, validate_every=3)
    kinds = [path.name.split("-")[0] for path in (tmp_path / RESUME_DIR).iterdir()]
    assert kinds.count("step") == 2
    assert kinds.count("snapshot") == 3
    assert kinds.count("best") <= 2
    assert len(kinds) == kinds.count("step") + kinds.count("snapshot") + kinds.count("best")


def test_settings_may_change_on_resume_and_are_logged(tmp_path: Path) -> None:
    toy.run(tmp_path)
    lines: list[str] = []
    config = toy.settings(epochs=4, learning_rate=0.01, schedule="constant", patience=9)
    result = train(toy.ToyTask(), toy.build_model(), config, tmp_path, Callbacks(log=lines.append))
    assert lines[1] == (
        "with changed settings: training.epochs: 3 -> 4, training.learning_rate: 0.03 -> 0.01,"
        " training.schedule: cosine -> constant, training.patience: 0 -> 9"
    )
    assert [report.epoch for report in result.reports] == [1, 2, 3, 4]
    assert result.best.learning_rate == 0.01


def test_a_checkpoint_of_another_training_is_an_error(tmp_path: Path) -> None:
    toy.run(tmp_path)
    with pytest.raises(TrainingError, match=r"other settings \(training.seed: 1 -> 2\); give another --out"):
        toy.run(tmp_path, seed=2)
    with pytest.raises(
        TrainingError,
        match=r"another model: its embedding.weight is 11 x 7, this model's is 11 x 8 \(and 1 more\);",
    ):
        toy.run(tmp_path, toy.ToyTask(), toy.build_model(8))
    assert len(list((tmp_path / RESUME_DIR).iterdir())) == 2, "no file was removed"


def test_a_checkpoint_cannot_run_code(tmp_path: Path) -> None:
    toy.run(tmp_path)
    buffer = io.BytesIO()
    torch.save({"format": 2, "progress": toy.ToyTask()}, buffer)
    newest = max((tmp_path / RESUME_DIR).glob("step-*"))
    newest.write_bytes(hashlib.sha256(buffer.getvalue()).digest() + buffer.getvalue())
    _, lines = resume(tmp_path)
    assert lines[0].endswith(
        "not loaded, because it holds more than tensors and plain containers; trying the checkpoint before it"
    )


def test_a_checkpoint_of_another_format_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    toy.run(tmp_path)
    buffer = io.BytesIO()
    torch.save({"format": 1, "progress": {"step": 3, "seen": 0}}, buffer)
    newest = max((tmp_path / RESUME_DIR).glob("step-*"))
    newest.write_bytes(hashlib.sha256(buffer.getvalue()).digest() + buffer.getvalue())
    with pytest.raises(
        TrainingError,
        match="has checkpoint format 1, this version of heedful reads format 2: finish the training with the"
        " version that started it, give another --out, or remove that folder",
    ):
        toy.run(tmp_path)
    assert newest.is_file(), "nothing was removed"
