"""Training in several processes, started by torchrun over gloo."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.training import Callbacks
from heedful.training.loop import train
from training import toy

TESTS = Path(__file__).parent.parent


def torchrun(out: Path, options: dict[str, Any], *words: str) -> subprocess.CompletedProcess[str]:
    """Run `training.toy` in two processes."""
    out.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *words]
        + ["-m", "training.toy", str(out), json.dumps(options)],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_two_processes_give_the_loss_curve_of_one_with_twice_the_batch(tmp_path: Path) -> None:
    """With dropout, and with an odd number of batches: at the end of an epoch one process has none."""
    training = {"epochs": 6, "max_steps": 22, "validate_every": 8, "keep_best": True, "ema": 0.5}
    losses: list[float] = []
    model = toy.build_model()
    result = train(
        toy.ToyTask(9),
        model,
        toy.settings(accumulate_grad_batches=2, **training),
        tmp_path / "one",
        Callbacks(on_step=lambda _step, loss: losses.append(loss)),
    )
    assert result.reason == "max_steps"

    done = torchrun(tmp_path / "two", {"n_batches": 9, "training": training})
    assert done.returncode == 0, done.stderr
    joint_losses = json.loads((tmp_path / "two" / "losses-0.json").read_text())
    assert len(joint_losses) == 22
    assert joint_losses == pytest.approx(losses, abs=1e-4)
    assert json.loads((tmp_path / "two" / "losses-1.json").read_text()) == []  # only rank 0 calls back
    first, second = (torch.load(tmp_path / "two" / f"weights-{rank}.pt") for rank in (0, 1))
    assert torch.equal(first, second)
    assert (first - toy.flat_weights(model)).abs().max() < 1e-4


@pytest.mark.slow
def test_two_processes_resume_and_may_have_unused_weights(tmp_path: Path) -> None:
    options = {"n_batches": 9, "n_unused": 1, "training": {"average_last": 2}}
    assert torchrun(tmp_path / "full", options).returncode == 0
    assert torchrun(tmp_path / "killed", {**options, "die_at_step": 8}).returncode != 0
    done = torchrun(tmp_path / "killed", options)
    assert done.returncode == 0, done.stderr
    for rank in (0, 1):
        full, killed = (torch.load(tmp_path / name / f"weights-{rank}.pt") for name in ("full", "killed"))
        assert torch.equal(full, killed)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_training_goes_on_when_a_rank_is_lost(rank: int, tmp_path: Path) -> None:
    options = {"n_batches": 9, "training": {"average_last": 2}}
    assert torchrun(tmp_path / "full", options).returncode == 0
    lossy = {**options, "lost_rank": rank, "lost_at_batch": 9}
    done = torchrun(tmp_path / "lossy", lossy, "--max-restarts", "1")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "lossy" / "lost").exists()
    for each in (0, 1):
        full, restarted = (torch.load(tmp_path / name / f"weights-{each}.pt") for name in ("full", "lossy"))
        assert torch.equal(full, restarted)
