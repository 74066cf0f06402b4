"""Sequence-to-sequence tasks: connects text pairs, an encoder-decoder, decoding and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from heedful.config import DecodingOptions, ModelConfig, Recipe
from heedful.data.corpus import filter_by_length
from heedful.data.token_statistics import FILE_NAME as STATISTICS
from heedful.data.token_statistics import source_statistics
from heedful.models import Seq2Seq, build_seq2seq
from heedful.tasks.base import EvaluationRequest, EvaluationResult, TraceRequest, TrainingSetup, Variant
from heedful.tasks.generation import generation_baselines
from heedful.tasks.generation_replay import GenerationReplay
from heedful.tasks.guided import open_guided_pairs
from heedful.tasks.init_from import copy_weights, load_initial_model, reuse_assets
from heedful.tasks.seq2seq.api import TextGenerator
from heedful.tasks.seq2seq.assets import SIDES, LoadedSeq2Seq, Seq2SeqAssets
from heedful.tasks.seq2seq.evaluate import evaluate_models
from heedful.tasks.seq2seq.measure import ADAPTER
from heedful.tasks.seq2seq.self_test import SELF_TEST
from heedful.tasks.seq2seq.trace import trace_line
from heedful.tasks.seq2seq.training import Seq2SeqTraining
from heedful.tasks.splits import describe_splits, has_test_pairs, open_splits
from heedful.trace.schema import Trace
from heedful.training.types import Callbacks


class Seq2SeqTask:
    """Translation, summarization, replies, and rewriting of strings."""

    files = tuple(f"{side}.tokenizer.json" for side in SIDES)
    optional_files = (STATISTICS,)
    adapter = ADAPTER
    self_test = SELF_TEST
    replay_class = GenerationReplay
    api_class = TextGenerator

    def load_assets(self, folder: Path) -> Seq2SeqAssets:
        return Seq2SeqAssets.load(folder)

    def build(self, recipe: Recipe, assets: Seq2SeqAssets) -> Seq2Seq:
        return build_seq2seq(recipe.model, len(assets.source), len(assets.target))

    def setup_training(
        self, recipe: Recipe, base: Path, assets: Seq2SeqAssets | None, callbacks: Callbacks
    ) -> TrainingSetup:
        splits = open_splits(recipe, base)
        tables = describe_splits(splits)
        if recipe.training.guided is not None:
            splits["train"] = open_guided_pairs(recipe, base, splits["train"], callbacks.log)
        initial = load_initial_model(recipe, base) if assets is None else None
        if initial is not None:
            assets = reuse_assets(initial, recipe)
        assets = assets or Seq2SeqAssets.train(splits["train"], recipe)
        splits["valid"], excluded = filter_by_length(splits["valid"], assets.source, assets.target, recipe.data)
        training = Seq2SeqTraining(recipe, splits, assets)
        if assets.statistics is None or initial is not None:  # those of another model are of other data
            assets = assets._replace(statistics=source_statistics(training.corpus, splits["valid"], assets.source))
        summary = (
            f"{len(training.corpus):,} pairs",
            f"{len(assets.source):,} {assets.source.unit} and {len(assets.target):,} {assets.target.unit}",
            f"{training.buckets.padding_share(1).both:.1%} padding",
        )
        notes = [*tables, str(training.corpus.counts), f"validation data: {excluded}" if str(excluded) else ""]
        setup = TrainingSetup(training, assets, summary, [note for note in notes if note])
        return setup if initial is None else setup._replace(initialize=copy_weights(initial, recipe))

    def has_test_data(self, recipe: Recipe, base: Path) -> bool:
        return has_test_pairs(recipe, base)

    def evaluate(self, folders: Sequence[Path], request: EvaluationRequest) -> EvaluationResult:
        return evaluate_models(folders, request)

    def trace(self, loaded: LoadedSeq2Seq, request: TraceRequest, decoding: DecodingOptions) -> Trace:
        return trace_line(loaded, request, decoding)

    def baselines(self, model: ModelConfig) -> list[Variant]:
        return generation_baselines(model)


TASK = Seq2SeqTask()
