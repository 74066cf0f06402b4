"""Text classification: connects labeled texts, a classifier and its metrics."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from heedful.config import DecodingOptions, ModelConfig, Recipe
from heedful.data.corpus import filter_by_length
from heedful.data.token_statistics import FILE_NAME as STATISTICS
from heedful.data.token_statistics import source_statistics
from heedful.models import Classifier, build_classifier
from heedful.optional import not_none
from heedful.tasks.base import (
    UNIFORM_WEIGHTS,
    EvaluationRequest,
    EvaluationResult,
    TraceRequest,
    TrainingSetup,
    Variant,
    check_no_decoding_options,
)
from heedful.tasks.classify import api
from heedful.tasks.classify.assets import LABELS, TOKENIZER, ClassifierAssets, LoadedClassifier
from heedful.tasks.classify.distill import load_teachers
from heedful.tasks.classify.evaluate import evaluate_models
from heedful.tasks.classify.init_from import make_initializer
from heedful.tasks.classify.measure import ADAPTER
from heedful.tasks.classify.replay import ClassifierReplay
from heedful.tasks.classify.self_test import SELF_TEST
from heedful.tasks.classify.trace import trace_text
from heedful.tasks.classify.training import ClassificationTraining, corpus_teacher_probs, filter_known_labels
from heedful.tasks.guided import open_guided_pairs
from heedful.tasks.splits import describe_splits, has_test_pairs, open_splits
from heedful.trace.schema import Trace
from heedful.training.types import Callbacks

N_LABELS = 6  # named in the summary


class ClassificationTask:
    """Text classification."""

    files = (TOKENIZER, LABELS)
    optional_files = (STATISTICS,)
    adapter = ADAPTER
    self_test = SELF_TEST
    replay_class = ClassifierReplay
    api_class = api.Classifier

    def load_assets(self, folder: Path) -> ClassifierAssets:
        return ClassifierAssets.load(folder)

    def build(self, recipe: Recipe, assets: ClassifierAssets) -> Classifier:
        ends = assets.sentence_ends(not_none(recipe.model.classifier).sentences)
        model = build_classifier(recipe.model, len(assets.source), len(assets.labels), ends)
        model.embedding.weight.requires_grad_(not recipe.training.freeze_embeddings)
        return model

    def setup_training(
        self, recipe: Recipe, base: Path, assets: ClassifierAssets | None, callbacks: Callbacks
    ) -> TrainingSetup:
        splits = open_splits(recipe, base)
        tables = describe_splits(splits)
        if recipe.training.guided is not None:
            splits["train"] = open_guided_pairs(recipe, base, splits["train"], callbacks.log)
        is_new = assets is None
        assets = assets or ClassifierAssets.train(splits["train"], recipe)
        valid, unknown_labels = filter_known_labels(splits["valid"], assets.labels, recipe.data.on_error == "skip")
        splits["valid"], excluded = filter_by_length(valid, assets.source, assets.labels, recipe.data)
        training = ClassificationTraining(recipe, splits, assets)
        if assets.statistics is None:
            assets = assets._replace(statistics=source_statistics(training.corpus, splits["valid"], assets.source))
        notes = [
            *tables,
            str(training.corpus.counts),
            unknown_labels,
            f"validation data: {excluded}" if str(excluded) else "",
        ]
        summary = _summary(training, assets)
        setup = TrainingSetup(training, assets, summary, [note for note in notes if note])
        if is_new:
            setup = setup._replace(initialize=make_initializer(recipe, base, assets.source))
        if teachers := load_teachers(recipe, base, assets.labels):  # last, because it takes time
            names = ", ".join(teacher.name for teacher in teachers)
            callbacks.log(f"computing the probabilities of {names} for {len(training.corpus):,} texts")
            training.teacher_probs = corpus_teacher_probs(teachers, splits["train"], assets, recipe)
        return setup

    def has_test_data(self, recipe: Recipe, base: Path) -> bool:
        return has_test_pairs(recipe, base)

    def evaluate(self, folders: Sequence[Path], request: EvaluationRequest) -> EvaluationResult:
        return evaluate_models(folders, request)

    def trace(self, loaded: LoadedClassifier, request: TraceRequest, decoding: DecodingOptions) -> Trace:
        check_no_decoding_options(loaded, decoding)
        return trace_text(loaded, request)

    def baselines(self, model: ModelConfig) -> list[Variant]:
        if not_none(model.classifier).pooling != "attention":
            return []
        last = ("model.classifier.pooling=last", "model.classifier.form=plain")
        return [UNIFORM_WEIGHTS, Variant("baseline: last states", last)]


def _summary(training: ClassificationTraining, assets: ClassifierAssets) -> tuple[str, ...]:
    labels = assets.labels
    shares = ", ".join(
        f"{name} {count / sum(labels.counts):.0%}"
        for name, count in islice(zip(labels.names, labels.counts, strict=True), N_LABELS)
    )
    return (
        f"{len(training.corpus):,} texts",
        f"{len(labels):,} labels ({shares}{', ...' if len(labels) > N_LABELS else ''})",
        f"{len(assets.source):,} {assets.source.unit}",
    )


TASK = ClassificationTask()
