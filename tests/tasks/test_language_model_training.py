"""Training of language models: batches, initialization, the text's own `<unk>`, settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from command_line import complaint, here
from heedful.config import load_recipe
from heedful.errors import ConfigError
from heedful.tasks.language_model.task import TASK
from heedful.tasks.language_model.training import LanguageModelTraining
from heedful.training.types import Callbacks
from small_language_models import CONTIGUOUS, KINDS, RECIPE

pytestmark = pytest.mark.usefixtures("as_users_run")


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    (tmp_path / "r.toml").write_text(RECIPE)
    return tmp_path / "r.toml"


def make_training(recipe: Path, name: str) -> tuple[LanguageModelTraining, torch.nn.Module]:
    plan = load_recipe(recipe, KINDS[name]).recipe
    setup = TASK.setup_training(plan, recipe.parent, None, Callbacks())
    assert isinstance(setup.task, LanguageModelTraining)
    torch.manual_seed(1)
    return setup.task, TASK.build(plan, setup.assets)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["lstmn", "running"])
def test_an_epoch_can_be_resumed_at_any_batch_and_divided_over_processes(recipe: Path, name: str) -> None:
    training, _ = make_training(recipe, name)
    batches = list(training.batches(2))
    assert len(batches) in range(training.steps_per_epoch() - 1, training.steps_per_epoch() + 2)
    for resumed, expected in zip(training.batches(2, start=3), batches[3:], strict=True):
        assert torch.equal(resumed.inputs.ids, expected.inputs.ids)
        assert torch.equal(resumed.targets, expected.targets)
    by_rank = [list(training.batches(2, rank=rank, world_size=2)) for rank in (0, 1)]
    assert sum(map(len, by_rank)) == len(batches)
    parts = training.split_batch(batches[0], 2)
    assert sum(int((part.targets != 0).sum()) for part in parts) == int((batches[0].targets != 0).sum())


def test_the_losses_of_the_parts_of_a_batch_sum_to_its_loss(recipe: Path) -> None:
    training, model = make_training(recipe, "running")
    batch = next(iter(training.batches(1)))
    with torch.inference_mode():
        whole = training.loss(model.eval(), batch)  # type: ignore[arg-type]
        parts = [training.loss(model, part) for part in training.split_batch(batch, 2)]  # type: ignore[arg-type]
    assert sum(part.tokens for part in parts) == whole.tokens
    assert sum(float(part.total) for part in parts) == pytest.approx(float(whole.total), rel=1e-5)


def test_unknown_words_are_read_as_the_unk_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("the <unk> sleeps\nthe cat sleeps\n" * 20)
    text = RECIPE[: RECIPE.index("[data.world]")] + RECIPE[RECIPE.index("[model]") :]
    (tmp_path / "r.toml").write_text(text.replace("[data]", '[data]\ntrain = ["own.txt"]\nvalid = ["own.txt"]'))
    sizes = ("model.embedding=4", "model.language_model.hidden=4", "training.epochs=1")
    done = here("train", tmp_path / "r.toml", *sizes, "--out", tmp_path / "m")
    assert done.returncode == 0, done.stderr
    unk, zebra = (
        json.loads(here("read", f"the {word} sleeps", "-m", tmp_path / "m", "--json").stdout)["words"]
        for word in ("<unk>", "zebra")
    )
    assert [word["bits"] for word in unk] == [word["bits"] for word in zebra]
    assert [word["unknown"] for word in zebra] == [False, True, False, False]
    assert not any(word["unknown"] for word in unk)


def test_a_model_can_be_initialized_from_another(recipe: Path, tmp_path: Path) -> None:
    first = here("train", recipe, "training.epochs=1", "--out", tmp_path / "first")
    assert first.returncode == 0, first.stderr
    words = ("train", recipe, f"training.init_from={tmp_path / 'first'}")
    frozen = ("training.epochs=1", "training.learning_rate=1e-12", "training.warmup_steps=0", "data.world.seed=2")
    done = here(*words, *frozen, "--out", tmp_path / "second")
    assert "initialized from first" in done.stderr, done.stderr
    actual, expected = (load_file(tmp_path / name / "model.safetensors") for name in ("second", "first"))
    assert all((actual[name] - expected[name]).abs().max() < 1e-6 for name in expected)
    error = complaint(*words, "model.language_model.hidden=13", "--out", tmp_path / "third")
    assert "model.language_model.hidden: 12 -> 13" in error
    error = complaint(*words, "model.language_model.shortlist=20", "--out", tmp_path / "third")
    assert "that model has model.language_model.shortlist = 0, this recipe 20" in error


def test_an_unknown_metric_is_refused_before_training(recipe: Path, tmp_path: Path) -> None:
    error = complaint("train", recipe, "training.metric=bleu", "--out", tmp_path / "m")
    assert 'training.metric = "bleu": this task has no such metric' in error
    assert not (tmp_path / "m").exists()


def test_the_baseline_of_a_comparison_is_an_lstm(recipe: Path) -> None:
    (baseline,) = TASK.baselines(load_recipe(recipe).recipe.model)
    assert baseline.name == "baseline: a plain LSTM"
    assert TASK.baselines(load_recipe(recipe, baseline.overrides).recipe.model) == []


ERRORS = {  # message -> settings
    "needs one softmax over all words": ("model.language_model.shortlist=9", "training.label_smoothing=0.1"),
    'needs data.lm.protocol = "sentences"': ("model.language_model.recency=true", *CONTIGUOUS),
    "needs training.precision": ("model.language_model.recency=true", "training.precision=bf16-mixed"),
    "not a preset for read; known: read-lstm": ("model.preset=bigru-gru", "model.language_model="),
    'tie_embeddings = "all": a language model has one vocabulary': (
        "model.tie_embeddings=all",
        "tokenizer.shared=true",
    ),
    "encoder: a language model has no such section": ("model.encoder.layers=2",),
    "language_model.heads = 5: does not divide language_model.hidden = 12": (
        "model.language_model.kind=transformer",
        "model.language_model.heads=5",
    ),
    "training.scheduled_sampling, training.doubly_stochastic: are for models with a decoder": (
        "training.doubly_stochastic=1.0",
    ),
    "tokenizer.target_kind, tokenizer.bpe_dropout: have no meaning": ("tokenizer.target_kind=character",),
    'protocol = "lines": no such protocol': ("data.lm.protocol=lines",),
    "not a preset for translate": ("task.kind=translate",),
}


@pytest.mark.parametrize("error", ERRORS)
def test_settings_that_do_not_fit_are_refused(recipe: Path, error: str) -> None:
    settings = [setting for setting in ERRORS[error] if setting != "model.language_model="]
    if len(settings) < len(ERRORS[error]):  # without this section
        recipe.write_text(RECIPE[: RECIPE.index("[model.language_model]")] + RECIPE[RECIPE.index("[training]") :])
    with pytest.raises(ConfigError) as caught:
        load_recipe(recipe, settings)
    assert error in str(caught.value)
