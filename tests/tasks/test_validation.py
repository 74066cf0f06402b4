"""What a validation measures: the chosen metric, small letters where there are no others, so many pairs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from heedful.config import load_recipe
from heedful.data.readers import TextPair
from heedful.errors import TrainingError
from heedful.models import Seq2Seq, build
from heedful.tasks.text import TextTask, learn

PAIRS = [TextPair("Ein Hund", "A Dog"), TextPair("Eine Katze", "A Cat"), TextPair("Zwei Hunde", "Two Dogs")]


def task(tmp_path: Path, *settings: str) -> tuple[TextTask, Seq2Seq]:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text("[data.world]\n")
    plan = load_recipe(recipe, ["model.embedding=8", "decoding.max_length=5", *settings]).recipe
    words = learn(PAIRS, plan)
    made = TextTask(plan, {"train": PAIRS, "valid": PAIRS}, words)
    torch.manual_seed(1)
    return made, build(plan.model, len(words.source), len(words.target)).eval()


def test_the_metric_that_chooses_is_measured(tmp_path: Path) -> None:
    made, model = task(tmp_path, "training.metric=rouge-l")
    assert set(made.validate(model).figures) == {"loss", "exact", "bleu", "rouge-l"}


def test_an_unknown_metric_is_refused_before_any_training(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r'metric = "rouge-k": .*did you mean "rouge-l"\?'):
        task(tmp_path, "training.metric=rouge-k")


def test_without_capitals_references_have_none(tmp_path: Path) -> None:
    made, model = task(tmp_path, "tokenizer.lowercase=true")
    assert [sample.reference for sample in made.validate(model).samples] == ["a dog", "a cat", "two dogs"]


def test_only_the_first_pairs(tmp_path: Path) -> None:
    made, _ = task(tmp_path, "training.validate_pairs=2")
    assert (made.valid, len(made.valid_corpus)) == (PAIRS[:2], 2)
