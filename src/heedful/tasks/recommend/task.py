"""Recommendation: connects ratings, a recommender and ranking metrics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from heedful.config import DecodingOptions, ModelConfig, Recipe
from heedful.data.catalog import FILE_NAME, Catalog
from heedful.data.ratings import open_ratings
from heedful.errors import TrainingError
from heedful.models import Popularity, Recommender, build_recommender
from heedful.optional import not_none
from heedful.tasks.base import (
    EvaluationRequest,
    EvaluationResult,
    TraceRequest,
    TrainingSetup,
    Variant,
    check_no_decoding_options,
)
from heedful.tasks.recommend import api
from heedful.tasks.recommend.assets import LoadedRecommender
from heedful.tasks.recommend.evaluate import evaluate_models
from heedful.tasks.recommend.init_from import copy_item_embeddings
from heedful.tasks.recommend.measure import ADAPTER
from heedful.tasks.recommend.replay import RecommenderReplay
from heedful.tasks.recommend.self_test import SELF_TEST
from heedful.tasks.recommend.trace import trace_recommendation
from heedful.tasks.recommend.training import RecommendationTraining
from heedful.trace.schema import Trace
from heedful.training.types import Callbacks


class RecommendationTask:
    """Recommendation from a user's history."""

    files = (FILE_NAME,)
    adapter = ADAPTER
    self_test = SELF_TEST
    replay_class = RecommenderReplay
    api_class = api.Recommender

    def load_assets(self, folder: Path) -> Catalog:
        return Catalog.load(folder)

    def build(self, recipe: Recipe, assets: Catalog) -> Recommender | Popularity:
        counts = torch.from_numpy(assets.histories.item_counts(len(assets.items))).float()
        return build_recommender(recipe.model, counts)

    def setup_training(self, recipe: Recipe, base: Path, assets: Catalog | None, callbacks: Callbacks) -> TrainingSetup:
        ratings = open_ratings(recipe.data, base)
        catalog = ratings.catalog
        if assets is not None and assets.items != catalog.items:
            raise TrainingError("the data has changed since the run began: it has other items")
        training = RecommendationTraining(recipe, ratings)
        summary = (
            f"{len(catalog.users):,} users",
            f"{len(catalog.items):,} items",
            f"{len(catalog.histories.items):,} interactions",
            f"{len(training.valid):,} validation users",
        )
        setup = TrainingSetup(training, catalog, summary, ratings.notes)
        if assets is None and recipe.training.init_from:
            return setup._replace(initialize=copy_item_embeddings(recipe, base, catalog))
        return setup

    def has_test_data(self, recipe: Recipe, base: Path) -> bool:
        return True  # without a test file, one item of each user is held out

    def evaluate(self, folders: Sequence[Path], request: EvaluationRequest) -> EvaluationResult:
        return evaluate_models(folders, request)

    def trace(self, loaded: LoadedRecommender, request: TraceRequest, decoding: DecodingOptions) -> Trace:
        check_no_decoding_options(loaded, decoding)
        return trace_recommendation(loaded, request)

    def baselines(self, model: ModelConfig) -> list[Variant]:
        if not_none(model.recommender).kind != "attention":
            return []
        equal = ("model.recommender.kind=equal", "model.encoder.kind=embedding", "model.dropout=0")
        return [Variant("baseline: all items alike", equal)]


TASK = RecommendationTask()
