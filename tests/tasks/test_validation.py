"""The metrics of a validation."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from heedful.config import load_recipe
from heedful.data.pairs import TextPair
from heedful.decoding import Hypothesis
from heedful.errors import TrainingError
from heedful.models import Seq2Seq, build_seq2seq
from heedful.tasks.seq2seq.assets import Seq2SeqAssets
from heedful.tasks.seq2seq.training import Seq2SeqTraining

PAIRS = [TextPair("Ein Hund", "A Dog"), TextPair("Eine Katze", "A Cat"), TextPair("Zwei Hunde", "Two Dogs")]


def make_training(tmp_path: Path, *settings: str) -> tuple[Seq2SeqTraining, Seq2Seq]:
    path = tmp_path / "recipe.toml"
    path.write_text("[data.world]\n")
    recipe = load_recipe(path, ["model.embedding=8", "decoding.max_length=5", *settings]).recipe
    assets = Seq2SeqAssets.train(PAIRS, recipe)
    training = Seq2SeqTraining(recipe, {"train": PAIRS, "valid": PAIRS}, assets)
    torch.manual_seed(1)
    return training, build_seq2seq(recipe.model, len(assets.source), len(assets.target)).eval()


def test_the_chosen_metric_is_computed(tmp_path: Path) -> None:
    training, model = make_training(tmp_path, "training.metric=rouge-l")
    assert set(training.validate(model).metrics) == {"loss", "exact", "bleu", "rouge-l"}


def test_exact_match_is_a_percentage_as_in_evaluate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    training, model = make_training(tmp_path)
    outputs = ["A Dog", "a cat", "Two Dogs"]
    hypotheses = [[Hypothesis(tuple(training.target.encode(text)), 0.0, 0.0, (), True, {})] for text in outputs]
    monkeypatch.setattr(training, "search", lambda *_args: hypotheses)
    monkeypatch.setattr(training, "_attention_warnings", lambda _model: [])
    assert training.validate(model).metrics["exact"] == pytest.approx(200 / 3)


def test_an_unknown_metric_is_refused_before_training(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r'metric = "rouge-k": .*did you mean "rouge-l"\?'):
        make_training(tmp_path, "training.metric=rouge-k")


def test_references_of_a_lowercasing_model_are_lowercased(tmp_path: Path) -> None:
    training, model = make_training(tmp_path, "tokenizer.lowercase=true")
    assert [sample.reference for sample in training.validate(model).samples] == ["a dog", "a cat", "two dogs"]


def test_only_the_first_pairs_are_validated(tmp_path: Path) -> None:
    training, _ = make_training(tmp_path, "training.validate_pairs=2")
    assert (list(training.sources), len(training.valid_corpus)) == (["Ein Hund", "Eine Katze"], 2)
