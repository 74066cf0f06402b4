"""One training at a time writes into a folder, and a run removes only what it wrote."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command_line import HEEDFUL, complaint, heedful, here
from heedful.errors import ModelError, TrainingError
from heedful.tasks import model_folder
from heedful.tasks.run_lock import LOCK_FILE, lock_folder

RECIPE = """
[data.world]
train = 60
valid = 10
test = 10
max_words = 5
[model]
preset = "rnnsearch"
embedding = 8
[model.encoder]
hidden = 4
[model.decoder]
hidden = 8
[model.attention]
hidden = 4
[training]
epochs = 1
batch_tokens = 150
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "r.toml"
    path.write_text(RECIPE)
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    (folder / "r.toml").write_text(RECIPE)
    done = here("train", folder / "r.toml", "--out", folder / "m")
    assert done.returncode == 0, done.stderr
    return folder


def test_a_locked_folder_is_refused_with_the_process_id(recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "precious").write_text("mine")
    with lock_folder(tmp_path / "m"):
        error = complaint("train", recipe, "training.learning_rate=1e30", "--out", tmp_path / "m")
        assert f"m is being trained by another process ({os.getpid()})" in error
        assert sorted(path.name for path in (tmp_path / "m").iterdir()) == ["precious", LOCK_FILE]
    assert [path.name for path in (tmp_path / "m").iterdir()] == ["precious"]


def test_the_lock_of_a_killed_process_does_not_block(recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    program = (
        "import sys; from pathlib import Path; from heedful.tasks.run_lock import lock_folder\n"
        "with lock_folder(Path(sys.argv[1])): print('locked', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "m")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        with pytest.raises(TrainingError, match="another process"), lock_folder(tmp_path / "m"):
            pass
        process.kill()
    assert (tmp_path / "m" / LOCK_FILE).exists()
    with lock_folder(tmp_path / "m") as stale:
        assert stale
    assert not (tmp_path / "m" / LOCK_FILE).exists()
    done = here("train", recipe, "--out", tmp_path / "m")
    assert done.returncode == 0, done.stderr


def test_a_failing_run_leaves_the_files_it_found(recipe: Path, tmp_path: Path) -> None:
    own = [tmp_path / "m" / "notes.txt", tmp_path / "m" / "tensorboard" / "events"]
    for path in own:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    assert "the loss became" in complaint("train", recipe, "training.learning_rate=1e30", "--out", tmp_path / "m")
    assert [path.read_text() for path in own] == ["mine", "mine"]
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == ["notes.txt", "tensorboard"]


@pytest.mark.parametrize("name", ["metrics.jsonl", "source.tokenizer.json", "model.safetensors"])
def test_files_that_no_run_wrote_are_not_overwritten(name: str, recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / name).write_text("mine")
    assert f"{name}: would be overwritten; give another --out" in complaint("train", recipe, "--out", tmp_path / "m")
    assert [(path.name, path.read_text()) for path in (tmp_path / "m").iterdir()] == [(name, "mine")]


def test_a_users_file_of_the_locks_name_is_no_lock(recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / LOCK_FILE).write_text("mine")
    (tmp_path / "m" / "recipe.toml").write_text("# mine")
    assert f"{LOCK_FILE}: not a lock of heedful" in complaint("train", recipe, "--out", tmp_path / "m")
    assert (tmp_path / "m" / LOCK_FILE).read_text() == "mine"
    assert (tmp_path / "m" / "recipe.toml").read_text() == "# mine"


def test_the_users_own_recipe_is_not_overwritten(tmp_path: Path) -> None:
    own = tmp_path / "recipe.toml"
    own.write_text(RECIPE)
    assert "recipe.toml: would be overwritten; give another --out" in complaint("train", own, "--out", tmp_path)
    assert own.read_text() == RECIPE
    assert list(tmp_path.iterdir()) == [own]


def test_what_a_killed_run_left_beside_its_model_is_removed(trained: Path) -> None:
    for name in ("resume", ".model.abc.tmp"):
        (trained / "m" / name).mkdir()
        (trained / "m" / name / "x").write_text("")
    done = here("train", trained / "r.toml", "--out", trained / "m")
    assert done.returncode == 0
    assert "removed what an interrupted run left: .model.abc.tmp, resume" in done.stdout + done.stderr
    assert not {"resume", ".model.abc.tmp", LOCK_FILE} & {path.name for path in (trained / "m").iterdir()}


def test_a_model_that_cannot_be_written_leaves_no_draft(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = model_folder.load_model(trained / "m")
    before = {path.name: path.read_bytes() for path in (trained / "m").iterdir()}

    def full_disk(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(model_folder, "sync_file", full_disk)
    with pytest.raises(ModelError, match="m: the model cannot be written: No space left on device"):
        model_folder.save_model(trained / "m", loaded.recipe, loaded.assets, loaded.model, {})
    assert {path.name: path.read_bytes() for path in (trained / "m").iterdir()} == before


def test_a_full_disk_is_an_error_with_the_folder_and_leaves_nothing(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error of a failed write names no file."""

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("heedful.tasks.train.train", full_disk)
    done = here("train", recipe, "--out", tmp_path / "m")
    assert done.returncode == 2
    assert f"error: {tmp_path / 'm'}: cannot be written: No space left on device" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["r.toml"]


def test_many_interrupts_give_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("The cat sleeps on the chair.\n" * 4_000)
    with (tmp_path / "lines").open() as lines:
        process = subprocess.Popen(
            [HEEDFUL, "translate", "--max-seconds", "600", "--batch-size", "8"],
            stdin=lines,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert process.stdout is not None
    assert process.stdout.readline()
    for _ in range(5):
        process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr


@pytest.mark.parametrize("seconds", [0.0, 0.05])
def test_many_interrupts_of_a_training_give_no_traceback(seconds: float, recipe: Path, tmp_path: Path) -> None:
    """The first stops it after a step, the second at once; those after it came while it cleaned up."""
    command = list(map(str, (HEEDFUL, "train", recipe, "training.epochs=1000", "--out", tmp_path / "m")))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    assert any("epoch" in line for line in process.stdout)
    for _ in range(5):
        process.send_signal(signal.SIGINT)
        time.sleep(seconds)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert "Traceback" not in output


def test_a_plain_run_leaves_no_lock(trained: Path) -> None:
    assert not (trained / "m" / LOCK_FILE).exists()
    assert heedful("check", trained / "r.toml").returncode == 0
