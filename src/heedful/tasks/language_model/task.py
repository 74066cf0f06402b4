"""Language modeling: connects plain text, a language model and its perplexity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from heedful.config import DecodingOptions, ModelConfig, Recipe
from heedful.data.line_file import describe_lines, open_lines
from heedful.data.text import encode_text
from heedful.data.tokenizer import Tokenizer
from heedful.errors import ModelError
from heedful.models import LanguageModel, build_language_model
from heedful.optional import not_none
from heedful.tasks.base import (
    EvaluationRequest,
    EvaluationResult,
    TraceRequest,
    TrainingSetup,
    Variant,
    check_no_decoding_options,
)
from heedful.tasks.init_from import copy_weights, load_initial_model, reuse_assets
from heedful.tasks.language_model import api
from heedful.tasks.language_model.assets import TOKENIZER, LanguageModelAssets, LoadedLanguageModel
from heedful.tasks.language_model.data import max_line_tokens, protocol_name
from heedful.tasks.language_model.evaluate import evaluate_models
from heedful.tasks.language_model.measure import ADAPTER
from heedful.tasks.language_model.replay import LanguageModelReplay
from heedful.tasks.language_model.self_test import SELF_TEST
from heedful.tasks.language_model.trace import trace_text
from heedful.tasks.language_model.training import LanguageModelTraining
from heedful.trace.schema import Trace
from heedful.training.types import Callbacks


class LanguageModelTask:
    """The probability of each word of a text."""

    files = (TOKENIZER,)
    adapter = ADAPTER
    self_test = SELF_TEST
    replay_class = LanguageModelReplay
    api_class = api.LanguageModel

    def load_assets(self, folder: Path) -> LanguageModelAssets:
        return LanguageModelAssets.load(folder)

    def build(self, recipe: Recipe, assets: LanguageModelAssets) -> LanguageModel:
        return build_language_model(recipe.model, len(assets.text))

    def setup_training(
        self, recipe: Recipe, base: Path, assets: LanguageModelAssets | None, callbacks: Callbacks
    ) -> TrainingSetup:
        splits = open_lines(recipe.data, base)
        initial = load_initial_model(recipe, base) if assets is None else None
        if initial is not None:
            assets = reuse_assets(initial, recipe)
            _check_shortlists(initial.recipe, recipe, len(assets.text))
        assets = assets or LanguageModelAssets(Tokenizer.train(splits["train"], recipe.tokenizer))
        valid: Iterable[str] = splits["valid"]
        if recipe.training.validate_pairs:
            valid = list(islice(valid, recipe.training.validate_pairs))
        train_text, valid_text = (
            encode_text(lines, assets.encode_all, recipe.data, max_line_tokens(recipe))
            for lines in (splits["train"], valid)
        )
        summary = (
            f"{len(train_text):,} lines",
            f"{len(train_text.flat):,} tokens",
            f"{len(assets.text):,} {assets.text.unit}",
            f"protocol: {protocol_name(recipe).replace('|', ', ')}",
        )
        excluded = str(valid_text.counts)
        notes = [*describe_lines(splits), str(train_text.counts), f"validation data: {excluded}" if excluded else ""]
        training = LanguageModelTraining(recipe, train_text, valid_text)
        setup = TrainingSetup(training, assets, summary, [note for note in notes if note])
        return setup if initial is None else setup._replace(initialize=copy_weights(initial, recipe))

    def has_test_data(self, recipe: Recipe, base: Path) -> bool:
        return "test" in open_lines(recipe.data, base)

    def evaluate(self, folders: Sequence[Path], request: EvaluationRequest) -> EvaluationResult:
        return evaluate_models(folders, request)

    def trace(self, loaded: LoadedLanguageModel, request: TraceRequest, decoding: DecodingOptions) -> Trace:
        check_no_decoding_options(loaded, decoding)
        return trace_text(loaded, request)

    def baselines(self, model: ModelConfig) -> list[Variant]:
        if not_none(model.language_model).kind == "lstm":
            return []
        return [Variant("baseline: a plain LSTM", ("model.language_model.kind=lstm",))]


def _check_shortlists(initial: Recipe, recipe: Recipe, words: int) -> None:
    """Raise an error if the output layers differ: biases of a two-step softmax mean nothing in another one."""
    sizes = []
    for each in (initial, recipe):
        shortlist = not_none(each.model.language_model).shortlist
        sizes.append(shortlist if shortlist < words else 0)
    if sizes[0] != sizes[1]:
        raise ModelError(
            f"training.init_from: that model has model.language_model.shortlist = {sizes[0]}, this recipe"
            f" {sizes[1]}; set the same"
        )


TASK = LanguageModelTask()
