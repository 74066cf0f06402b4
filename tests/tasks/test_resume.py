"""`heedful train`, killed and started again, gives the same model bit by bit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

from command_line import HEEDFUL, complaint, heedful, here, stopped
from heedful.data.asset_files import has_checkpoint

RECIPE = """
[data.world]
train = 600
valid = 10
test = 10
max_words = 5
[model]
preset = "rnnsearch"
embedding = 16
dropout = 0.2
[model.encoder]
hidden = 8
[model.decoder]
hidden = 16
[model.attention]
hidden = 8
[training]
epochs = 4
batch_tokens = 150
checkpoint_every = 5
threads = 2
"""


def weights(folder: Path) -> dict[str, bytes]:
    return {name: t.numpy().tobytes() for name, t in load_file(folder / "model.safetensors").items()}


def wait_for_checkpoint(out: Path) -> None:
    """Wait for the first complete checkpoint; before it there is nothing to resume."""
    deadline = time.monotonic() + 120
    while not has_checkpoint(out):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train without interruption."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    (folder / "r.toml").write_text(RECIPE)
    done = heedful("train", folder / "r.toml", "--out", folder / "m")
    assert done.returncode == 0, done.stderr
    return folder / "m"


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_an_interrupted_run_ends_with_the_same_bits(sent: signal.Signals, uninterrupted: Path, tmp_path: Path) -> None:
    command: list[str | Path] = [HEEDFUL, "train", uninterrupted.parent / "r.toml", "--out", tmp_path / "m"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wait_for_checkpoint(tmp_path / "m")
    os.kill(process.pid, sent)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == (130 if sent is signal.SIGINT else -sent), stderr.decode()
    assert not (tmp_path / "m" / "model.json").exists()
    done = heedful("train", uninterrupted.parent / "r.toml", "--out", tmp_path / "m")
    assert done.returncode == 0, done.stderr
    assert weights(tmp_path / "m") == weights(uninterrupted)
    logs = [(folder / "metrics.jsonl").read_text().splitlines() for folder in (tmp_path / "m", uninterrupted)]
    for resumed, expected in zip(*logs, strict=True):
        assert {**json.loads(resumed), "seconds": 0} == {**json.loads(expected), "seconds": 0}


def test_a_run_cannot_be_resumed_with_another_model(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(RECIPE)
    words = ("train", tmp_path / "r.toml", "--out", tmp_path / "m")
    stopped(*words)
    assert "model.dropout: 0.2 -> 0.3" in complaint(*words, "model.dropout=0.3")


def test_a_model_can_be_initialized_from_another(uninterrupted: Path, tmp_path: Path) -> None:
    """New sentences with the vocabulary and the weights of the other model; another shape is refused."""
    words = ("train", uninterrupted.parent / "r.toml", f"training.init_from={uninterrupted}", "data.world.seed=2")
    frozen = ("training.epochs=1", "training.learning_rate=1e-12", "training.warmup_steps=0")
    done = here(*words, *frozen, "--out", tmp_path / "n")
    assert done.returncode == 0, done.stderr
    assert "initialized from m" in done.stdout + done.stderr
    actual, expected = (load_file(folder / "model.safetensors") for folder in (tmp_path / "n", uninterrupted))
    for name in expected:
        assert (actual[name] - expected[name]).abs().max() < 1e-6, name
    for side in ("source", "target"):
        name = f"{side}.tokenizer.json"
        assert (tmp_path / "n" / name).read_bytes() == (uninterrupted / name).read_bytes()
    error = complaint(*words, "model.encoder.hidden=9", "--out", tmp_path / "o")
    assert "m has a different shape" in error
    assert "model.encoder.hidden: 8 -> 9" in error
    assert "m has a different tokenizer" in complaint(*words, "tokenizer.lowercase=true", "--out", tmp_path / "o")
    assert not (tmp_path / "o").exists()
