"""`heedful train` with data instead of a recipe."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import complaint, here
from heedful.config import load_recipe

pytestmark = pytest.mark.usefixtures("as_users_run")

SMALL = ("training.max_steps=2", "model.encoder.hidden=8", "model.embedding=8", "model.attention.hidden=8")


def test_a_classifier_is_trained_from_a_csv_file(tmp_path: Path) -> None:
    rows = [f'"a film, number {n}",{("good", "bad")[n % 2]}\n' for n in range(80)]
    (tmp_path / "a.csv").write_text("text,label\n" + "".join(rows))
    words = ("train", tmp_path / "a.csv", "--task", "classify", "--out", tmp_path / "m", *SMALL)
    done = here(*words)
    assert done.returncode == 0, done.stderr
    assert "settings for 80 texts: preset classify-learned" in done.stderr
    assert "a.csv: comma-separated, header: text, label" in done.stderr
    assert "training.warmup_steps = " in done.stderr
    recipe = load_recipe(tmp_path / "m" / "recipe.toml").recipe
    assert recipe.data.columns == ("text", "label")
    assert (recipe.training.max_steps, recipe.training.keep_best) == (2, True)
    assert "already trained" in here(*words).stdout
    done = here("evaluate", "-m", tmp_path / "m", "--data", tmp_path / "a.csv")
    assert done.returncode == 0, done.stderr
    assert "80 texts" in done.stdout
    assert "a.csv: comma-separated, header: text, label" in done.stderr


def test_a_translator_is_trained_from_two_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"the cat {n}\n" for n in range(60)))
    (tmp_path / "b.txt").write_text("".join(f"le chat {n}\n" for n in range(60)))
    files = (tmp_path / "a.txt", tmp_path / "b.txt")
    done = here("train", *files, "--task", "translate", "--out", tmp_path / "m", *SMALL, "model.decoder.hidden=8")
    assert done.returncode == 0, done.stderr
    assert "settings for 60 pairs: preset cgru" in done.stderr


def test_data_without_a_task_and_a_recipe_with_one_are_errors(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,label\nx,y\n")
    (tmp_path / "r.toml").write_text("")
    out = ("--out", tmp_path / "m")
    assert "to train on data without a recipe give --task" in complaint("train", tmp_path / "a.csv", *out)
    assert "is a recipe, which names its task" in complaint("train", tmp_path / "r.toml", "--task", "read", *out)
    assert "expected a recipe, or data and --task" in complaint("train", "training.epochs=1", *out)
    assert not (tmp_path / "m").exists()
