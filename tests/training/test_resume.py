"""Stopped at any moment and started again, a training ends with the very bits of an uninterrupted one."""

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

from heedful.errors import TrainingError
from heedful.training import TrainingStopped
from heedful.training.checkpoint import FOLDER, forget, under_way
from heedful.training.loop import train
from training import toy

TESTS = Path(__file__).parent.parent


class PowerCutError(Exception):
    pass


def broken_off(out: Path, at_step: int, **training: Any) -> None:
    """A run that ends without a chance to save anything."""

    def tick(step: int, _loss: float) -> None:
        if step == at_step:
            raise PowerCutError

    with pytest.raises(PowerCutError):
        train(toy.Toy(), toy.fresh(), toy.settings(**training), out, tick=tick)


def disturbed() -> None:
    """Nothing that happened to the global generators in between may matter."""
    torch.rand(3)
    np.random.random(3)  # noqa: NPY002 - the global one is meant


def lines(out: Path) -> list[dict[str, Any]]:
    """The metrics, without the time, which differs."""
    found = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in found]


KINDS: dict[str, dict[str, Any]] = {
    "plain": {"epochs": 2},
    "accumulated, plateau": {"accumulate": 2, "schedule": "plateau", "decay_after": 1, "metric": "exact"},
    "ema, sgd with momentum": {
        "epochs": 2,
        "ema": 0.9,
        "optimizer": "sgd",
        "momentum": 0.9,
        "validate_every": 4,
    },
    "average, best": {
        "epochs": 1,
        "average": 2,
        "keep_best": True,
        "validate_every": 2,
        "optimizer": "adadelta",
    },
}


@pytest.mark.parametrize("training", KINDS.values(), ids=KINDS)
def test_after_a_break_at_any_step(tmp_path: Path, training: dict[str, Any]) -> None:
    expected, whole = toy.run(tmp_path / "whole", **training)
    for step in range(1, whole.reports[-1].step + 1):
        out = tmp_path / str(step)
        broken_off(out, step, **training)
        disturbed()
        weights, outcome = toy.run(out, **training)
        assert torch.equal(weights, expected), step
        assert outcome.reason == whole.reason
        assert outcome.best.figures == whole.best.figures
        assert lines(out) == lines(tmp_path / "whole")


def test_after_many_breaks(tmp_path: Path) -> None:
    expected, _ = toy.run(tmp_path / "whole", ema=0.9)
    for step in (5, 9, 10, 16, 20):
        broken_off(tmp_path / "often", step, ema=0.9)
    assert torch.equal(toy.run(tmp_path / "often", ema=0.9)[0], expected)
    assert lines(tmp_path / "often") == lines(tmp_path / "whole")


def test_after_a_break_in_any_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before and after each file is whole: the file's own sync, and the folder's behind the renaming."""
    training: dict[str, Any] = {"average": 2, "keep_best": True, "epochs": 2}
    expected, _ = toy.run(tmp_path / "whole", **training)
    sync, calls, breaks = os.fsync, 0, 0

    def breaking(file: int) -> None:
        nonlocal calls
        calls += 1
        if calls == breaks:
            raise PowerCutError
        sync(file)

    monkeypatch.setattr(os, "fsync", breaking)
    for moment in range(1, 100):
        calls, breaks = 0, moment
        try:
            toy.run(tmp_path / str(moment), **training)
        except PowerCutError:
            breaks = 0
            assert torch.equal(toy.run(tmp_path / str(moment), **training)[0], expected), moment
            assert lines(tmp_path / str(moment)) == lines(tmp_path / "whole")
        else:
            break
    assert moment > 12


def test_after_a_break_in_a_validation(tmp_path: Path) -> None:
    class Failing(toy.Toy):
        def validate(self, model: toy.Net) -> Any:
            if self.validations == 1:
                raise PowerCutError
            return super().validate(model)

    expected, _ = toy.run(tmp_path / "whole", keep_best=True, validate_every=3)
    with pytest.raises(PowerCutError):
        toy.run(tmp_path / "broken", Failing(), keep_best=True, validate_every=3)
    assert torch.equal(toy.run(tmp_path / "broken", keep_best=True, validate_every=3)[0], expected)
    assert lines(tmp_path / "broken") == lines(tmp_path / "whole")


def test_after_kill_9(tmp_path: Path) -> None:
    """In the middle of an epoch, and in the writing of a state, of which half is on the disk by then."""
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
    expected, _ = toy.run(tmp_path / "whole")
    for process, name, newest in zip(processes, deaths, (9, 7), strict=True):
        _, complaint = process.communicate(timeout=120)
        assert process.returncode == -signal.SIGKILL, complaint
        folder = tmp_path / name / FOLDER
        assert max(path.name for path in folder.glob("*.pt")) == f"step-{newest:09d}.pt"
        assert [path.stat().st_size for path in folder.glob("*.tmp")] == [1000] * (name == "write")
        weights, _ = toy.run(tmp_path / name)
        assert torch.equal(weights, expected)
        assert lines(tmp_path / name) == lines(tmp_path / "whole")
        assert not list(folder.glob("*.tmp"))


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_at_the_next_step_and_loses_nothing(tmp_path: Path, which: signal.Signals) -> None:
    before = signal.getsignal(which)
    steps: list[int] = []

    def tick(step: int, _loss: float) -> None:
        steps.append(step)
        if step == 10:
            os.kill(os.getpid(), which)

    expected, _ = toy.run(tmp_path / "whole")
    with pytest.raises(TrainingStopped, match="stopped at step 10; nothing is lost"):
        train(toy.Toy(), toy.fresh(), toy.settings(), tmp_path / "a", tick=tick)
    assert signal.getsignal(which) == before
    model = toy.fresh()
    train(toy.Toy(), model, toy.settings(), tmp_path / "a", tick=tick)
    assert steps == list(range(1, 22))
    assert torch.equal(toy.flat(model), expected)


def test_a_second_ctrl_c_is_obeyed_at_once(tmp_path: Path) -> None:
    def tick(_step: int, _loss: float) -> None:
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(toy.Toy(), toy.fresh(), toy.settings(), tmp_path, tick=tick)


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "best"])
def test_a_damaged_state_falls_back_to_the_one_before(tmp_path: Path, damage: str) -> None:
    training: dict[str, Any] = {"keep_best": True, "validate_every": 4}
    expected, _ = toy.run(tmp_path / "whole", **training)
    out = tmp_path / "damaged"
    broken_off(out, 9, **training)  # states at 6 and 8, each with another best
    newest = out / FOLDER / "step-000000008.pt"
    victim = out / FOLDER / "best-000000008.pt" if damage == "best" else newest
    match damage:
        case "flip" | "best":
            flipped(victim)
        case "cut":
            victim.write_bytes(victim.read_bytes()[:5000])
        case "empty":
            victim.write_bytes(b"")
    said: list[str] = []
    model = toy.fresh()
    train(toy.Toy(), model, toy.settings(**training), out, say=said.append)
    assert said[0].startswith(f"{newest}: ")
    assert said[0].endswith("damaged; trying the state before it")
    assert said[1] == "going on from step 6 (epoch 1)"
    assert torch.equal(toy.flat(model), expected)
    assert lines(out) == lines(tmp_path / "whole")


def test_when_every_state_is_damaged_it_begins_again_and_says_so(tmp_path: Path) -> None:
    expected, _ = toy.run(tmp_path / "whole")
    out = tmp_path / "damaged"
    broken_off(out, 7)
    for path in (out / FOLDER).iterdir():
        flipped(path)
    (out / FOLDER / "note.txt").write_text("left over")
    said: list[str] = []
    model = toy.fresh()
    train(toy.Toy(), model, toy.settings(), out, say=said.append)
    assert said[-1].endswith("holds no whole state; training begins at the beginning")
    assert torch.equal(toy.flat(model), expected)


def test_a_finished_training_is_not_trained_again(tmp_path: Path) -> None:
    ticks: list[int] = []
    for training in ({"ema": 0.9}, {"average": 2}, {"patience": 1}, {}):
        out = tmp_path / str(training)
        expected, whole = toy.run(out, **training)
        model = toy.fresh()
        config = toy.settings(**training)
        outcome = train(toy.Toy(), model, config, out, tick=lambda step, _loss: ticks.append(step))
        assert torch.equal(toy.flat(model), expected)
        assert (outcome.reason, outcome.best.figures) == (whole.reason, whole.best.figures)
        assert len(outcome.reports) == len(whole.reports)
    assert ticks == []
    assert under_way(out)
    forget(out)
    assert not under_way(out)


def test_two_states_are_kept_and_no_more(tmp_path: Path) -> None:
    toy.run(tmp_path, epochs=6, average=2, keep_best=True, validate_every=3)
    kinds = [path.name.split("-")[0] for path in (tmp_path / FOLDER).iterdir()]
    assert kinds.count("step") == 2
    assert kinds.count("raw") == 3
    assert kinds.count("best") <= 2
    assert len(kinds) == kinds.count("step") + kinds.count("raw") + kinds.count("best")


def test_settings_that_may_change_are_said_and_obeyed(tmp_path: Path) -> None:
    toy.run(tmp_path)
    said: list[str] = []
    config = toy.settings(epochs=4, rate=0.01, schedule="constant", patience=9)
    outcome = train(toy.Toy(), toy.fresh(), config, tmp_path, say=said.append)
    assert said[1] == (
        "with changed settings: training.epochs: 3 -> 4, training.rate: 0.03 -> 0.01,"
        " training.schedule: cosine -> constant, training.patience: 0 -> 9"
    )
    assert [report.epoch for report in outcome.reports] == [1, 2, 3, 4]
    assert outcome.best.rate == 0.01


def test_a_state_of_another_training_is_refused_in_words(tmp_path: Path) -> None:
    toy.run(tmp_path)
    with pytest.raises(TrainingError, match=r"other settings \(training.seed: 1 -> 2\); give another --out"):
        toy.run(tmp_path, seed=2)
    with pytest.raises(
        TrainingError, match=r"another model: its table.weight is 11 x 7, here it is 11 x 8 \(and 1 more\);"
    ):
        toy.run(tmp_path, toy.Toy(), toy.fresh(8))
    state = tmp_path / FOLDER
    assert len(list(state.iterdir())) == 2, "nothing was touched"


def test_a_state_cannot_run_code(tmp_path: Path) -> None:
    toy.run(tmp_path)
    buffer = io.BytesIO()
    torch.save({"format": 1, "progress": toy.Toy()}, buffer)
    newest = max((tmp_path / FOLDER).glob("step-*"))
    newest.write_bytes(hashlib.sha256(buffer.getvalue()).digest() + buffer.getvalue())
    said: list[str] = []
    train(toy.Toy(), toy.fresh(), toy.settings(), tmp_path, say=said.append)
    assert said[0].endswith(
        "holds more than tensors and plain containers, so it is not read; trying the state before it"
    )


def test_a_state_of_another_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy.run(tmp_path)
    monkeypatch.setattr("heedful.training.checkpoint.FORMAT", 2)
    with pytest.raises(TrainingError, match="format 1, but this heedful reads format 2; give another --out"):
        toy.run(tmp_path)
