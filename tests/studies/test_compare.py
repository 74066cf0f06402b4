"""Comparing variants: what is varied, what stands beside, and one small comparison from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heedful.config import ModelConfig
from heedful.errors import ConfigError, TrainingError
from heedful.studies.compare import Budget, Row, compare, markdown, variants
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

    def train(path: Path, *_: object) -> None:
        path.write_text(f"{TINY}# another\n")

    monkeypatch.setattr("heedful.studies.compare._train", train)
    with pytest.raises(TrainingError, match="was changed meanwhile, so variants would not be alike"):
        compare(recipe, ["model.attention.score=additive,dot"], 1, "2s", tmp_path / "c", lambda _: None)
