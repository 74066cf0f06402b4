"""`heedful train`, killed and started again: the very same model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

from heedful.training.checkpoint import under_way
from test_cli import HEEDFUL, heedful, refused

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


def until_a_state_is_written(out: Path) -> None:
    """Wait for a whole state: before the first one there is nothing to go on from, and nothing to refuse."""
    deadline = time.monotonic() + 120
    while not under_way(out):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "r.toml").write_text(RECIPE)
    done = heedful("train", folder / "r.toml", "--out", folder / "m")
    assert done.returncode == 0, done.stderr
    return folder / "m"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_a_run_that_was_stopped_ends_with_the_same_bits(
    how: signal.Signals, whole: Path, tmp_path: Path
) -> None:
    command: list[str | Path] = [HEEDFUL, "train", whole.parent / "r.toml", "--out", tmp_path / "m"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    until_a_state_is_written(tmp_path / "m")
    os.kill(process.pid, how)
    _, said = process.communicate(timeout=120)
    assert process.returncode == (130 if how is signal.SIGINT else -how), said.decode()
    assert not (tmp_path / "m" / "model.json").exists()
    done = heedful("train", whole.parent / "r.toml", "--out", tmp_path / "m")
    assert done.returncode == 0, done.stderr
    assert weights(tmp_path / "m") == weights(whole)
    both = [(folder / "metrics.jsonl").read_text().splitlines() for folder in (tmp_path / "m", whole)]
    for mine, theirs in zip(*both, strict=True):
        assert {**json.loads(mine), "seconds": 0} == {**json.loads(theirs), "seconds": 0}


def test_a_changed_recipe_over_a_run_under_way_is_refused(whole: Path, tmp_path: Path) -> None:
    command: list[str | Path] = [HEEDFUL, "train", whole.parent / "r.toml", "--out", tmp_path / "m"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until_a_state_is_written(tmp_path / "m")
    process.kill()
    process.wait()
    other = heedful("train", whole.parent / "r.toml", "model.dropout=0.3", "--out", tmp_path / "m")
    assert other.returncode == 2
    assert "model.dropout: 0.2 -> 0.3" in other.stderr


def test_a_translator_is_taught_more(whole: Path, tmp_path: Path) -> None:
    """Other sentences, the same words and weights to begin with; what has another shape is refused."""
    first = ("train", whole.parent / "r.toml", f"training.start_from={whole}", "data.world.seed=2")
    still = ("training.epochs=1", "training.rate=1e-12", "training.warmup=0")
    done = heedful(*first, *still, "--out", tmp_path / "n")
    assert done.returncode == 0, done.stderr
    assert "begun with m" in done.stdout + done.stderr
    mine, theirs = (load_file(folder / "model.safetensors") for folder in (tmp_path / "n", whole))
    for name in theirs:
        assert (mine[name] - theirs[name]).abs().max() < 1e-6, name
    for side in ("source", "target"):
        name = f"{side}.tokenizer.json"
        assert (tmp_path / "n" / name).read_bytes() == (whole / name).read_bytes()
    wrong = refused(*first, "model.encoder.hidden=9", "--out", tmp_path / "o")
    assert "is of another shape" in wrong
    assert "model.encoder.hidden: 8 -> 9" in wrong
    assert "words of another kind" in refused(*first, "tokenizer.lowercase=true", "--out", tmp_path / "o")
    assert not (tmp_path / "o").exists()
