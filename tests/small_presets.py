"""Presets at small sizes, and recipes that train them on the phrases world."""

from __future__ import annotations

from typing import Any

from heedful.config import DataConfig, ModelConfig, Recipe, TokenizerConfig, TrainingConfig, WorldConfig
from heedful.config.presets import ENCODER_DECODERS

LEARNING_RATES = {"transformer": 0.003, "conv-conv": 0.004, "luong": 0.012, "luong-local": 0.012}


def small_preset(name: str, width: int = 48) -> ModelConfig:
    """Return a preset at a small width, with torch's initialization, which converges faster than the paper's."""
    tree: dict[str, Any] = {"preset": name, **ENCODER_DECODERS[name], "initialization": "torch", "dropout": 0.0}
    bidirectional = tree["encoder"]["kind"] in ("gru", "lstm") and tree["encoder"].get("bidirectional", True)
    encoder = {"hidden": width // 2 if bidirectional else width, "heads": 4, "feedforward": 2 * width}
    decoder = {"hidden": width, "heads": 4, "feedforward": 2 * width}
    tree["encoder"] = {**tree["encoder"], **encoder}
    tree["decoder"] = {**tree["decoder"], **decoder}
    tree["embedding"] = width
    tree["attention"] = {**tree.get("attention", {}), "hidden": width}
    return ModelConfig.model_validate(tree)


def small_recipe(name: str, world: WorldConfig, width: int = 48, **training: object) -> Recipe:
    """Return a recipe that trains a small preset on the phrases world."""
    return Recipe(
        data=DataConfig(world=world),
        tokenizer=TokenizerConfig(shared=False),
        model=small_preset(name, width),
        training=TrainingConfig.model_validate(
            {"learning_rate": LEARNING_RATES.get(name, 0.01), "warmup_steps": 20, "threads": 1, **training}
        ),
    )
