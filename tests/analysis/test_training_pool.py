"""Trainings in parallel processes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from heedful.analysis.training_pool import COST_FILE, TrainingJob, TrainingPool
from heedful.analysis.variants import Budget
from heedful.errors import TrainingError
from heedful.tasks.base import Variant

FAKE_TRAINING = """
import sys, time
from pathlib import Path
options = dict(option.split("=") for option in sys.argv[2:] if "=" in option)
if options["a"] == "hang":
    time.sleep(600)
if options["a"] == "fail":
    print("the data is missing", file=sys.stderr)
    sys.exit(2)
out = Path(sys.argv[-1])
out.mkdir()
(out / "options.txt").write_text(" ".join(sys.argv[1:-2]))
"""


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recipe; trainings are replaced by a short script."""
    script = tmp_path / "train.py"
    script.write_text(FAKE_TRAINING)
    monkeypatch.setattr("heedful.analysis.training_pool.COMMAND", [sys.executable, str(script)])
    path = tmp_path / "recipe.toml"
    path.write_text("")
    return path


def jobs(folder: Path, *values: str) -> list[TrainingJob]:
    variants = [Variant(f"a={value}", (f"a={value}",)) for value in values]
    return [TrainingJob(variant, 3, folder / f"{number}") for number, variant in enumerate(variants)]


def test_every_job_is_trained_once_with_its_overrides_seed_and_budget(recipe: Path, tmp_path: Path) -> None:
    listed = jobs(tmp_path, "1", "2", "4")
    pool = TrainingPool(recipe, Budget(steps=7), 2)
    assert sorted(pool.run(listed)) == sorted(listed)
    for job in listed:
        options = (job.folder / "options.txt").read_text().split()
        assert options[0] == str(recipe)
        assert {*job.variant.overrides, "training.seed=3", "training.max_steps=7"} <= set(options)
        assert json.loads((job.folder / COST_FILE).read_text())["peak_memory_mb"] > 1
    assert not pool.running


def test_a_failed_training_stops_the_others_and_shows_its_last_lines(recipe: Path, tmp_path: Path) -> None:
    pool = TrainingPool(recipe, Budget(steps=1), 2)
    with pytest.raises(TrainingError, match="training of a=fail, seed 3, failed:\nthe data is missing"):
        list(pool.run(jobs(tmp_path, "hang", "fail", "hang")))
    assert not pool.running


def test_parallel_trainings_share_the_cores(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert TrainingPool(recipe, Budget(steps=1), 2).environment["OMP_NUM_THREADS"] == "4"
    assert "OMP_NUM_THREADS" not in TrainingPool(recipe, Budget(steps=1), 1).environment
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert TrainingPool(recipe, Budget(steps=1), 2).environment["OMP_NUM_THREADS"] == "3"


def test_a_recipe_that_changes_during_the_comparison_is_an_error(recipe: Path, tmp_path: Path) -> None:
    pool = TrainingPool(recipe, Budget(steps=1), 1)
    recipe.write_text("# changed\n")
    with pytest.raises(TrainingError, match="has changed since the comparison started"):
        list(pool.run(jobs(tmp_path, "1")))
    assert not (tmp_path / "0").exists()
