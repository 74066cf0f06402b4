"""Every task is compared with the same task without attention: a baseline that is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from heedful.config import load_recipe
from heedful.studies.compare import variants

RECIPES = Path(__file__).parents[2] / "recipes"


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
def test_baselines_fit_the_task(recipe: str, vary: str, baselines: list[str]) -> None:
    path = RECIPES / f"{recipe}.toml"
    model = load_recipe(path).recipe.model
    first, *rest = variants([vary], model)
    assert not first.name.startswith("baseline")
    assert [job.name for job in rest] == [f"baseline: {name}" for name in baselines]
    for job in rest:  # another model, and one that can be built
        assert load_recipe(path, job.overrides).recipe.model != model
