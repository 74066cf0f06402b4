"""Comparing variants: what is varied, what stands beside, and one small comparison from end to end."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from heedful.config import ModelConfig
from heedful.errors import ConfigError, TrainingError
from heedful.studies.compare import Budget, Row, Trainings, Variant, compare, markdown, variants
from test_cli import heedful, refused

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


def test_every_combination_is_tried_and_the_baselines_stand_beside() -> None:
    made = variants(["model.attention.score=dot,general", "model.dropout=0.1,0.2"], ModelConfig())
    assert [v.name for v in made] == [
        "score=dot, dropout=0.1",
        "score=dot, dropout=0.2",
        "score=general, dropout=0.1",
        "score=general, dropout=0.2",
        "baseline: uniform weights",
        "baseline: no attention",
    ]
    assert made[1].overrides == ("model.attention.score=dot", "model.dropout=0.2")


def test_settings_that_go_together_are_crossed_with_what_varies() -> None:
    sets = ["model.attention.score=dot", "model.attention.placement=local-m model.attention.window=4"]
    made = variants(["model.decoder.feed=none,attentional"], ModelConfig(), sets)
    assert [v.name for v in made[:4]] == [
        "score=dot, feed=none",
        "score=dot, feed=attentional",
        "placement=local-m, window=4, feed=none",
        "placement=local-m, window=4, feed=attentional",
    ]
    assert len(made) == 6
    assert made[2].overrides == (*sets[1].split(), "model.decoder.feed=none")
    assert len(variants([], ModelConfig(), sets)) == 4
    assert len(variants([], ModelConfig(), sets, baselines=False)) == 2


def test_a_wrong_budget_or_vary_is_refused() -> None:
    with pytest.raises(ConfigError, match="nothing to compare"):
        variants([], ModelConfig())
    for wrong in ("", "model.dropout", "model.dropout=", "model.tie='all"):
        with pytest.raises(ConfigError, match="expected settings with spaces between them"):
            variants([], ModelConfig(), [wrong])
    with pytest.raises(ConfigError, match="given twice"):
        variants(["model.dropout=0.1,0.2"], ModelConfig(), ["model.dropout=0.3"])
    with pytest.raises(ConfigError, match="expected a time such as 90s"):
        Budget.of("soon")
    for wrong in ("steps", "0steps", "-3steps", "1.5steps", "²steps"):
        with pytest.raises(ConfigError, match="or updates such as 2000steps"):
            Budget.of(wrong)
    with pytest.raises(ConfigError, match=r"expected section\.key=value"):
        variants(["model.attention.score"], ModelConfig())


def test_the_table_has_spread_cost_and_significance() -> None:
    rows = [
        Row("a", 1234, {"BLEU": (12.345, 0.5)}, 100, 0.02, 300.0, None),
        Row("b", 999, {"BLEU": (10.0, 0.1)}, 90, 0.03, 310.0, 0.04),
    ]
    lines = markdown(rows).splitlines()
    assert lines[0] == "| variant | parameters | BLEU | p | steps | ms/step | MB |"
    assert lines[2] == "| a | 1,234 | 12.35 ± 0.50 |  | 100 | 20 | 300 |"
    assert lines[3] == "| b | 999 | 10.00 ± 0.10 | 0.040 | 90 | 30 | 310 |"
    rows[0] = rows[0]._replace(seconds_per_word=0.00125)
    lines = markdown(rows).splitlines()
    assert lines[0] == "| variant | parameters | BLEU | p | steps | ms/step | ms/step of writing | MB |"
    assert lines[2] == "| a | 1,234 | 12.35 ± 0.50 |  | 100 | 20 | 1.25 | 300 |"
    assert lines[3] == "| b | 999 | 10.00 ± 0.10 | 0.040 | 90 | 30 |  | 310 |"


def test_a_comparison_from_end_to_end_and_again(tmp_path: Path) -> None:
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(TINY)
    command: list[str | Path] = [
        "compare",
        recipe,
        "--vary",
        "model.attention.score=additive,dot",
        "--seeds",
        "1",
    ]
    done = heedful(*command, "--budget", "2s", "--out", tmp_path / "c")
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "c" / "compare.json").read_text())
    assert [row["name"] for row in rows] == [
        "score=additive",
        "score=dot",
        "baseline: uniform weights",
        "baseline: no attention",
    ]
    assert "±" not in done.stdout, "one seed has no spread"
    assert all(row["megabytes"] > 50 for row in rows)
    assert all(0 < row["seconds_per_word"] < 1 for row in rows)
    assert (tmp_path / "c" / "compare.png").read_bytes().startswith(b"\x89PNG")
    again = heedful(*command, "--budget", "2s", "--out", tmp_path / "c")
    assert again.stdout == done.stdout, "nothing is trained twice"
    wrong = refused("compare", recipe, "--vary", "model.attention.score=dto", "--out", tmp_path / "d")
    assert 'did you mean "dot"?' in wrong


def test_equal_updates_in_place_of_equal_time(tmp_path: Path) -> None:
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(TINY)
    vary = ("--vary", "model.attention.score=additive,dot", "--seeds", "1")
    done = heedful("compare", recipe, *vary, "--budget", "7steps", "--out", tmp_path / "c")
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "c" / "compare.json").read_text())
    assert [row["steps"] for row in rows] == [7] * 4


def test_a_recipe_that_changes_meanwhile_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(TINY)

    def train(*_: object) -> None:
        recipe.write_text(f"{TINY}# another\n")

    monkeypatch.setattr("heedful.studies.compare.Trainings._process", train)
    with pytest.raises(TrainingError, match="was changed meanwhile, so variants would not be alike"):
        compare(recipe, ["model.attention.score=additive,dot"], 1, "2s", tmp_path / "c", lambda _: None)


def test_trainings_side_by_side_give_what_they_give_one_by_one(tmp_path: Path) -> None:
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(TINY)
    command: list[str | Path] = ["compare", recipe, "--vary", "model.attention.score=additive,dot"]
    command += ["--seeds", "1", "--budget", "7steps", "--no-baselines"]
    tables = []
    for jobs in ("1", "3"):
        done = heedful(*command, "--jobs", jobs, "--out", tmp_path / jobs)
        assert done.returncode == 0, done.stderr
        rows = json.loads((tmp_path / jobs / "compare.json").read_text())
        tables.append([(row["name"], row["figures"], row["steps"]) for row in rows])
    assert tables[0] == tables[1]
    assert "7steps of training each, 3 side by side" in (tmp_path / "3" / "compare.md").read_text()
    wrong = refused(*command[:4], "--budget", "2s", "--jobs", "2", "--out", tmp_path / "d")
    assert "trainings side by side take time from one another; give updates" in wrong


def test_one_that_fails_stops_those_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import sys, time\ntime.sleep(0 if 'a=1' in sys.argv else 600)\nsys.exit('no such thing')\n"
    )
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(TINY)
    trainings = Trainings(recipe, Budget(steps=1), 2)
    monkeypatch.setattr("heedful.studies.compare.COMMAND", [sys.executable, str(script)])
    todo = [(Variant(f"a={n}", (f"a={n}",)), 1, tmp_path / str(n)) for n in (2, 1, 3)]
    with pytest.raises(TrainingError, match="a=1, seed 1 could not be trained:\nno such thing"):
        list(trainings.run(todo))
    assert not trainings.running
