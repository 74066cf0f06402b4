"""Presets at small sizes, and recipes that train them on a phrase world."""

from __future__ import annotations

from typing import Any

from heedful.config import DataConfig, ModelConfig, Recipe, TokenizerConfig, TrainingConfig, WorldConfig
from heedful.config.presets import PRESETS

RATES = {"transformer": 0.003, "conv-conv": 0.004, "luong": 0.012, "luong-local": 0.012}


def sized(name: str, width: int = 48) -> ModelConfig:
    """A preset at a small width; the paper's initialisation is left for ours, which starts at once."""
    tree: dict[str, Any] = {"preset": name, **PRESETS[name], "initialise": "torch", "dropout": 0.0}
    both = tree["encoder"]["kind"] in ("gru", "lstm") and tree["encoder"].get("bidirectional", True)
    encoder = {"hidden": width // 2 if both else width, "heads": 4, "feedforward": 2 * width}
    decoder = {"hidden": width, "heads": 4, "feedforward": 2 * width}
    tree["encoder"] = {**tree["encoder"], **encoder}
    tree["decoder"] = {**tree["decoder"], **decoder}
    tree["embedding"] = width
    tree["attention"] = {**tree.get("attention", {}), "hidden": width}
    return ModelConfig.model_validate(tree)


def recipe(name: str, world: WorldConfig, width: int = 48, **training: object) -> Recipe:
    return Recipe(
        data=DataConfig(world=world),
        tokenizer=TokenizerConfig(shared=False),
        model=sized(name, width),
        training=TrainingConfig.model_validate(
            {"rate": RATES.get(name, 0.01), "warmup": 20, "threads": 1, **training}
        ),
    )
