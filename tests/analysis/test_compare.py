"""Small comparisons from end to end, and their report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import heedful, refused
from heedful.analysis.compare_report import ComparisonRow, markdown, steps_warning, write_report

TINY = """
[data.world]
train = 200
valid = 20
test = 20
max_words = 4
[model]
embedding = 16
[model.encoder]
hidden = 8
[model.decoder]
hidden = 16
[model.attention]
hidden = 8
[training]
batch_tokens = 400
threads = 1
"""

ROWS = [
    ComparisonRow("a", 1234, {"BLEU": (12.345, 0.5)}, 100, 0.02, 300.0, None),
    ComparisonRow("b", 999, {"BLEU": (10.0, None)}, 90, 0.03, 310.0, 0.04),
]


def test_the_table_has_metrics_significance_and_cost() -> None:
    lines = markdown(ROWS).splitlines()
    assert lines[0] == "| variant | parameters | BLEU | p | steps | ms/step | MB |"
    assert lines[2] == "| a | 1,234 | 12.35 ± 0.50 |  | 100 | 20 | 300 |"
    assert lines[3] == "| b | 999 | 10.00 | 0.040 | 90 | 30 | 310 |"


def test_the_table_has_the_decoding_cost_of_models_that_generate() -> None:
    lines = markdown([ROWS[0]._replace(seconds_per_decoding_step=0.00125), ROWS[1]]).splitlines()
    assert lines[0] == "| variant | parameters | BLEU | p | steps | ms/step | ms/decoding step | MB |"
    assert lines[2] == "| a | 1,234 | 12.35 ± 0.50 |  | 100 | 20 | 1.25 | 300 |"
    assert lines[3] == "| b | 999 | 10.00 | 0.040 | 90 | 30 |  | 310 |"


def test_very_different_numbers_of_steps_are_a_warning(tmp_path: Path) -> None:
    assert steps_warning(ROWS) == ""
    assert steps_warning([ROWS[0]._replace(steps=0), ROWS[1]]) == "", "a count is not trained"
    rows = [ROWS[0], ROWS[1]._replace(steps=20)]
    warning = steps_warning(rows)
    assert "a was trained for 100 steps, b for 20 (5.0 times as many)" in warning
    assert "repeat with --budget 100steps" in warning
    write_report(rows, tmp_path, Path("recipes/tiny.toml"), "60s", 1, 1)
    text = (tmp_path / "compare.md").read_text()
    assert "1 seed, 60s" in text
    assert warning in text
    write_report(ROWS, tmp_path, Path("r.toml"), "7steps", 1, 1)
    assert "Warning" not in (tmp_path / "compare.md").read_text()


def test_the_report_is_markdown_json_and_an_image(tmp_path: Path) -> None:
    write_report(ROWS, tmp_path, Path("recipes/tiny.toml"), "7steps", 2, 3)
    text = (tmp_path / "compare.md").read_text()
    assert text.startswith("`tiny.toml`, 2 seeds, 7steps of training each, 3 at the same time; mean")
    assert text.endswith(markdown(ROWS))
    first, second = json.loads((tmp_path / "compare.json").read_text())
    assert (first["name"], first["metrics"], first["p_value"]) == ("a", {"BLEU": [12.345, 0.5]}, None)
    assert second["metrics"] == {"BLEU": [10.0, None]}
    assert (tmp_path / "compare.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recipe") / "tiny.toml"
    path.write_text(TINY)
    return path


def vary_score(recipe: Path, folder: Path, *options: str) -> list[str | Path]:
    vary = ["--vary", "model.attention.score=additive,dot"]
    return ["compare", recipe, *vary, "--seeds", "1", "--budget", "7steps", "--out", folder, *options]


def read_rows(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((folder / "compare.json").read_text())
    return rows


@pytest.fixture(scope="module")
def comparison(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder of finished trainings, one after the other, and what the command printed."""
    folder = tmp_path_factory.mktemp("comparison") / "c"
    done = heedful(*vary_score(recipe, folder))
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_a_comparison_from_end_to_end_trains_nothing_twice(
    recipe: Path, comparison: tuple[Path, str], tmp_path: Path
) -> None:
    folder, stdout = comparison
    rows = read_rows(folder)
    assert [row["name"] for row in rows] == [
        "score=additive",
        "score=dot",
        "baseline: uniform weights",
        "baseline: no attention",
    ]
    assert [row["steps"] for row in rows] == [7] * 4
    assert [row["p_value"] is None for row in rows] == [True, False, False, False]
    assert "±" not in stdout, "one seed has no standard deviation"
    assert all(row["peak_memory_mb"] > 50 for row in rows)
    assert all(row["seconds_per_decoding_step"] > 0 for row in rows)
    again = heedful(*vary_score(recipe, folder, "--no-baselines"))
    assert again.stdout.splitlines() == stdout.splitlines()[:4], "the same rows; nothing was trained"
    wrong = refused("compare", recipe, "--vary", "model.attention.score=dto", "--out", tmp_path / "d")
    assert 'did you mean "dot"?' in wrong


def test_parallel_trainings_give_the_results_of_sequential_ones(
    recipe: Path, comparison: tuple[Path, str], tmp_path: Path
) -> None:
    done = heedful(*vary_score(recipe, tmp_path / "c", "--no-baselines", "--jobs", "3"))
    assert done.returncode == 0, done.stderr
    parallel, sequential = (
        [(row["name"], row["metrics"], row["steps"]) for row in read_rows(folder)]
        for folder in (tmp_path / "c", comparison[0])
    )
    assert parallel == sequential[:2]
    wrong = refused(*vary_score(recipe, tmp_path / "d", "--budget", "2s", "--jobs", "2"))
    assert "parallel runs share the CPU cores, so give the budget in steps" in wrong


def test_a_time_budget_limits_every_training(recipe: Path, tmp_path: Path) -> None:
    command: list[str | Path] = ["compare", recipe, "--vary", "model.dropout=0", "--seeds", "1", "--no-baselines"]
    done = heedful(*command, "--budget", "1s", "--out", tmp_path / "c")
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "c").glob("00-seed1")
    reports = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert reports[-1]["seconds"] >= 1.0
