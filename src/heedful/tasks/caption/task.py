"""Image captioning: connects images, a backbone, an encoder-decoder, decoding and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from heedful.config import DecodingOptions, ModelConfig, Recipe
from heedful.data.images.backbone import Backbone, PretrainedBackbone
from heedful.data.images.features import CachedFeatures
from heedful.data.images.files import ImageFile
from heedful.data.images.image_statistics import FILE_NAME as STATISTICS
from heedful.errors import ModelError
from heedful.models import Seq2Seq, build_seq2seq
from heedful.tasks.base import EvaluationRequest, EvaluationResult, TraceRequest, TrainingSetup, Variant
from heedful.tasks.caption import api
from heedful.tasks.caption.assets import (
    BACKBONE,
    BACKBONE_WEIGHTS,
    TOKENIZER,
    BackboneInfo,
    CaptionAssets,
    LoadedCaptioner,
)
from heedful.tasks.caption.data import (
    Item,
    backbone_weights,
    describe_captions,
    images_config,
    open_items,
    open_model_backbone,
    open_recipe_backbone,
    readable_items,
)
from heedful.tasks.caption.evaluate import evaluate_models
from heedful.tasks.caption.measure import ADAPTER
from heedful.tasks.caption.reward import RewardTraining
from heedful.tasks.caption.self_test import SELF_TEST
from heedful.tasks.caption.trace import trace_image
from heedful.tasks.caption.training import CaptionTraining, image_statistics, train_caption_tokenizer
from heedful.tasks.caption.tuned_backbone import MODULE, OnTheFlyFeatures, TunedBackbone, check_tunable
from heedful.tasks.caption.tuned_training import TunedCaptionTraining
from heedful.tasks.generation import generation_baselines
from heedful.tasks.generation_replay import GenerationReplay
from heedful.tasks.init_from import copy_weights, load_initial_model
from heedful.trace.schema import Trace
from heedful.training.types import Callbacks


class CaptioningTask:
    """Image captioning."""

    files = (TOKENIZER, BACKBONE)
    optional_files = (BACKBONE_WEIGHTS, STATISTICS)
    adapter = ADAPTER
    self_test = SELF_TEST
    replay_class = GenerationReplay
    api_class = api.Captioner

    def load_assets(self, folder: Path) -> CaptionAssets:
        return CaptionAssets.load(folder)

    def build(self, recipe: Recipe, assets: CaptionAssets) -> Seq2Seq:
        model = build_seq2seq(recipe.model, assets.backbone_info.width, len(assets.target))
        if images_config(recipe).tune_backbone:
            with torch.device("cpu"):  # its weights are read from a file also where only shapes are needed
                backbone = check_tunable(open_model_backbone(recipe, assets), images_config(recipe).backbone)
            model.add_module(MODULE, TunedBackbone(backbone.net))
        return model

    def setup_training(
        self, recipe: Recipe, base: Path, assets: CaptionAssets | None, callbacks: Callbacks
    ) -> TrainingSetup:
        initial = (
            load_initial_model(recipe, base) if assets is None else None
        )  # loaded first: reading images takes long, and an error should come early
        items = open_items(recipe, base)
        weights = backbone_weights(recipe, base)
        backbone = open_recipe_backbone(recipe, weights)
        features = _open_features(backbone, recipe)
        notes = describe_captions(recipe, base)
        for split in ("train", "valid"):
            items[split], excluded = readable_items(items[split], features, recipe, callbacks)
            notes += excluded
        if assets is None:
            tokenizer = train_caption_tokenizer(items["train"], recipe.tokenizer)
            network = backbone.net if isinstance(backbone, PretrainedBackbone) else None
            assets = CaptionAssets(tokenizer, BackboneInfo.of(backbone), weights, network)
        if assets.statistics is None and isinstance(features, CachedFeatures):
            assets = assets._replace(statistics=image_statistics(items["train"], items["valid"], features))
        training = _make_training(recipe, items, assets, features)
        summary = (
            f"{len(items['train']):,} images",
            f"{len(training.corpus):,} captions",
            f"{len(assets.target):,} {assets.target.unit}",
            f"{backbone.grid[0]} x {backbone.grid[1]} regions of width {backbone.width:,}",
        )
        setup = TrainingSetup(training, assets, summary, notes)
        if initial is None:
            return setup
        if initial.assets.target.vocabulary() != assets.target.vocabulary():
            raise ModelError(f"training.init_from: {initial.name} has a different vocabulary")
        return setup._replace(initialize=copy_weights(initial, recipe, optional=(f"{MODULE}.",)))

    def has_test_data(self, recipe: Recipe, base: Path) -> bool:
        return "test" in open_items(recipe, base)

    def evaluate(self, folders: Sequence[Path], request: EvaluationRequest) -> EvaluationResult:
        return evaluate_models(folders, request)

    def trace(self, loaded: LoadedCaptioner, request: TraceRequest, decoding: DecodingOptions) -> Trace:
        return trace_image(loaded, ImageFile(Path(request.input)), request, decoding)

    def baselines(self, model: ModelConfig) -> list[Variant]:
        return generation_baselines(model)


def _open_features(backbone: Backbone, recipe: Recipe) -> CachedFeatures | OnTheFlyFeatures:
    config = images_config(recipe)
    if config.tune_backbone:
        return OnTheFlyFeatures(check_tunable(backbone, config.backbone))
    return CachedFeatures(backbone)


def _make_training(
    recipe: Recipe,
    items: dict[str, list[Item]],
    assets: CaptionAssets,
    features: CachedFeatures | OnTheFlyFeatures,
) -> CaptionTraining:
    if isinstance(features, OnTheFlyFeatures):
        return TunedCaptionTraining(recipe, items, assets, features)
    if recipe.training.reward != "none":
        return RewardTraining(recipe, items, assets, features)
    return CaptionTraining(recipe, items, assets, features)


TASK = CaptioningTask()
