"""Which variants a comparison trains, and its budget."""

from __future__ import annotations

from pathlib import Path

import pytest

from heedful.analysis.variants import Budget, expand_variants
from heedful.config import ModelConfig, load_recipe
from heedful.errors import ConfigError
from heedful.tasks.generation import generation_baselines
from heedful.tasks.registry import get_task

RECIPES = Path(__file__).parents[2] / "recipes"
BASELINES = generation_baselines(ModelConfig())


def test_every_combination_of_values_is_a_variant_and_baselines_follow() -> None:
    variants = expand_variants(["model.attention.score=dot,general", "model.dropout=0.1,0.2"], baselines=BASELINES)
    assert [variant.name for variant in variants] == [
        "score=dot, dropout=0.1",
        "score=dot, dropout=0.2",
        "score=general, dropout=0.1",
        "score=general, dropout=0.2",
        "baseline: uniform weights",
        "baseline: no attention",
    ]
    assert variants[1].overrides == ("model.attention.score=dot", "model.dropout=0.2")


def test_groups_of_settings_are_combined_with_varied_values() -> None:
    groups = ["model.attention.score=dot", "model.attention.placement=local-m model.attention.window=4"]
    variants = expand_variants(["model.decoder.input_feeding=none,attentional"], groups, BASELINES)
    assert [variant.name for variant in variants[:4]] == [
        "score=dot, input_feeding=none",
        "score=dot, input_feeding=attentional",
        "placement=local-m, window=4, input_feeding=none",
        "placement=local-m, window=4, input_feeding=attentional",
    ]
    assert len(variants) == 6
    assert variants[2].overrides == (*groups[1].split(), "model.decoder.input_feeding=none")
    assert len(expand_variants([], groups, BASELINES)) == 4
    assert len(expand_variants([], groups)) == 2


def test_quoted_values_may_contain_spaces() -> None:
    (variant,) = expand_variants([], ["data.train='my file.txt' model.dropout=0"])
    assert variant.overrides == ("data.train=my file.txt", "model.dropout=0")


def test_wrong_variants_are_an_error() -> None:
    with pytest.raises(ConfigError, match="nothing to compare"):
        expand_variants([])
    for wrong in ("", "model.dropout", "model.dropout=", "model.tie_embeddings='all"):
        with pytest.raises(ConfigError, match="expected settings separated by spaces"):
            expand_variants([], [wrong])
    with pytest.raises(ConfigError, match="given twice"):
        expand_variants(["model.dropout=0.1,0.2"], ["model.dropout=0.3"])
    with pytest.raises(ConfigError, match=r"expected section\.key=value"):
        expand_variants(["model.attention.score"])


@pytest.mark.parametrize(
    ("text", "budget"),
    [("90s", Budget(minutes=1.5)), ("10m", Budget(minutes=10.0)), ("2h", Budget(minutes=120.0))]
    + [("2000steps", Budget(steps=2000))],
)
def test_a_budget_is_a_duration_or_a_number_of_steps(text: str, budget: Budget) -> None:
    assert Budget.parse(text) == budget
    assert f"training.max_minutes={budget.minutes}" in budget.overrides
    assert f"training.max_steps={budget.steps}" in budget.overrides


@pytest.mark.parametrize(
    "text",
    [
        "soon",
        "",
        "5",
        "0s",
        "-1m",
        "infh",
        "nanm",
        "steps",
        "0steps",
        "-3steps",
        "1.5steps",
        "²steps",
        "9" * 5_000 + "steps",
    ],
)
def test_a_wrong_budget_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match="expected a duration such as 90s, 10m or 1h, or steps such as 2000steps"):
        Budget.parse(text)


@pytest.mark.parametrize(
    ("recipe", "vary", "baselines"),
    [
        ("cgru", "model.dropout=0.1", ["uniform weights", "no attention"]),
        ("flickr8k-soft", "model.dropout=0.1", ["uniform weights", "no attention"]),
        ("flickr8k-hard", "model.dropout=0.1", ["uniform weights", "no attention"]),
        ("seq2seq", "model.dropout=0.1", []),
        ("transformer", "model.dropout=0.1", []),
        ("world-moods", "model.dropout=0.1", ["uniform weights", "last states"]),
        ("world-tastes", "model.embedding=16", ["all items alike"]),
        ("movielens-fism", "model.embedding=16", []),
        ("ptb-lstmn", "model.dropout=0.1", ["a plain LSTM"]),
        ("ptb-lstm", "model.dropout=0.1", []),
    ],
)
def test_every_task_has_its_baselines(recipe: str, vary: str, baselines: list[str]) -> None:
    path = RECIPES / f"{recipe}.toml"
    plan = load_recipe(path).recipe
    first, *others = expand_variants([vary], baselines=get_task(plan.task.kind).baselines(plan.model))
    assert not first.name.startswith("baseline")
    assert [variant.name for variant in others] == [f"baseline: {name}" for name in baselines]
    for variant in others:  # a different model, with valid settings
        assert load_recipe(path, variant.overrides).recipe.model != plan.model
