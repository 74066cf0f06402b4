"""Several processes, by torchrun over gloo."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.training.loop import train
from training import toy

TESTS = Path(__file__).parent.parent


def torchrun(out: Path, wish: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    out.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        + ["-m", "training.toy", str(out), json.dumps(wish)],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_two_processes_give_the_loss_curve_of_one_with_the_doubled_batch(tmp_path: Path) -> None:
    """Dropout included, and an odd number of batches: at the end of an epoch one process has none."""
    training = {"epochs": 6, "max_steps": 22, "validate_every": 8, "keep_best": True, "ema": 0.5}
    losses: list[float] = []
    model = toy.fresh()
    outcome = train(
        toy.Toy(9),
        model,
        toy.settings(accumulate=2, **training),
        tmp_path / "one",
        tick=lambda _step, loss: losses.append(loss),
    )
    assert outcome.reason == "max_steps"

    done = torchrun(tmp_path / "two", {"count": 9, "training": training})
    assert done.returncode == 0, done.stderr
    together = json.loads((tmp_path / "two" / "losses-0.json").read_text())
    assert len(together) == 22
    assert together == pytest.approx(losses, abs=1e-4)
    assert json.loads((tmp_path / "two" / "losses-1.json").read_text()) == []  # one talks
    first, second = (torch.load(tmp_path / "two" / f"weights-{rank}.pt") for rank in (0, 1))
    assert torch.equal(first, second)
    assert (first - toy.flat(model)).abs().max() < 1e-4


@pytest.mark.slow
def test_two_processes_resume_too_and_may_have_weights_without_use(tmp_path: Path) -> None:
    wish = {"count": 9, "spare": 1, "training": {"average": 2}}
    assert torchrun(tmp_path / "whole", wish).returncode == 0
    assert torchrun(tmp_path / "killed", {**wish, "die_at_step": 8}).returncode != 0
    done = torchrun(tmp_path / "killed", wish)
    assert done.returncode == 0, done.stderr
    for rank in (0, 1):
        whole, killed = (torch.load(tmp_path / name / f"weights-{rank}.pt") for name in ("whole", "killed"))
        assert torch.equal(whole, killed)
