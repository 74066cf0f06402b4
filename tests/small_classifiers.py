"""Small classifiers that several tests share."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch

from heedful.config import DataConfig, ModelConfig, Recipe, TaskConfig, TokenizerConfig, WorldConfig
from heedful.config.model import RECURRENT
from heedful.config.presets import CLASSIFIERS
from heedful.data.pairs import TextPair
from heedful.models import Classifier
from heedful.tasks.classify.assets import ClassifierAssets, LoadedClassifier
from heedful.tasks.classify.task import TASK
from heedful.tasks.model_folder import load_model, save_model

PAIRS = [
    TextPair("the soup was never dull", "good", ((3, 0), (4, 0))),
    TextPair("a small dog eats the fish", "neither good nor bad", ((1, 0),)),
    TextPair("dreadful", "bad", ((0, 0),)),
    TextPair("she sees the red house today", "good", ((5, 0),)),
]
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("classify-final", {"encoder__layers": 2, "attention__score": "general"}),
    ("classify-final", {"encoder__bidirectional": False, "encoder__hidden": 6}),
    ("classify-final", {"encoder__residual": True, "encoder__layer_norm": True, "encoder__layers": 2}),
    ("classify-learned", {"encoder__kind": "conv", "attention__score": "dot"}),
    ("classify-learned", {"encoder__kind": "embedding"}),
    ("classify-learned", {"encoder__read_end": True}),
    ("classify-learned", {"encoder__read_end": True, "attention__read_end": False}),
    ("classify-learned", {"attention__normalizer": "sparsemax", "attention__score": "concat"}),
    ("classify-learned", {"attention__placement": "uniform"}),
    ("classify-heads", {"encoder__kind": "transformer"}),
    ("classify-last", {"encoder__kind": "transformer"}),
    ("classify-mean", {"encoder__kind": "conv"}),
    ("classify-learned", {"encoder__kind": "lstmn"}),
    ("classify-sentences", {"encoder__read_end": True, "attention__score": "dot"}),
    ("classify-sentences", {"encoder__bidirectional": False, "encoder__layers": 2, "encoder__kind": "lstm"}),
    ("classify-sentences", {"classifier__pooling": "max"}),
]
ALL: list[tuple[str, dict[str, Any]]] = [*((name, {}) for name in CLASSIFIERS), *VARIANTS]


def small_preset(name: str, **changes: object) -> ModelConfig:
    """Return a preset at small sizes; `changes` are `section__key=value`."""
    tree: dict[str, Any] = copy.deepcopy({"preset": name, **CLASSIFIERS[name], "embedding": 6, "dropout": 0.0})
    tree["encoder"] = {**tree["encoder"], "hidden": 6, "heads": 2, "feedforward": 11}
    tree["attention"] = {**tree.get("attention", {}), "hidden": 7}
    tree["attention"].update(heads=2 if tree["attention"].get("heads") else 0)
    tree["classifier"] = {**tree["classifier"], "dropout": 0.0}
    if "sentences" in tree["classifier"]:
        tree["classifier"]["sentences"] = ["soup", "dog", "dull"]  # PAIRS have no punctuation
    for key, value in changes.items():
        section, _, setting = key.rpartition("__")
        (tree[section] if section else tree)[setting] = value
    encoder = tree["encoder"]
    both = encoder["kind"] in RECURRENT and encoder.get("bidirectional", True)
    if both and "encoder__hidden" not in changes:
        encoder["hidden"] = 3  # per direction
    return ModelConfig.model_validate(tree)


def randomize_weights(model: Classifier, seed: int = 3) -> Classifier:
    """Set large random weights, so that outputs differ between texts."""
    torch.manual_seed(seed)
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.9, 0.9)
    return model


def random_model_folder(path: Path, config: ModelConfig, kind: str = "word", seed: int = 3) -> LoadedClassifier:
    """Save a model with large random weights, and open its folder."""
    tokenizer = TokenizerConfig(kind=kind, vocab_size=300)  # type: ignore[arg-type]
    recipe = Recipe(
        task=TaskConfig(kind="classify"),
        data=DataConfig(world=WorldConfig(name="moods", train=20, valid=5, test=5)),
        tokenizer=tokenizer,
        model=config,
    )
    assets = ClassifierAssets.train(PAIRS, recipe)
    save_model(path, recipe, assets, randomize_weights(TASK.build(recipe, assets), seed), {})
    return load_model(path)
