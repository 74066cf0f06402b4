"""Weights of format 1: every name that a preset or a setting ever wrote has exactly one name today."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from heedful.config import ModelConfig
from heedful.config.migrate import migrate_recipe
from heedful.config.presets import PRESETS
from heedful.models import build_classifier, build_language_model, build_recommender, build_seq2seq
from heedful.models.migrate import WEIGHTS, migrate_weight, migrate_weights

STORED = Path(__file__).parents[1] / "stored/1/weights/presets.json"
MODELS: list[dict[str, Any]] = json.loads(STORED.read_text())


def build_model(task: str, config: ModelConfig) -> nn.Module:
    if task == "classify":
        return build_classifier(config, 11, 3)
    if task == "recommend":
        return build_recommender(config, torch.ones(11))
    if task == "read":
        return build_language_model(config, 23)
    return build_seq2seq(config, 9 if task == "caption" else 11, 11)


@pytest.mark.parametrize("stored", MODELS, ids=lambda stored: str(stored["name"]))
def test_old_names_map_exactly_onto_the_names_of_today(stored: dict[str, Any]) -> None:
    tree = migrate_recipe({"model": stored["model"]})["model"]
    model = build_model(stored["task"], ModelConfig.model_validate(tree))
    assert [migrate_weight(name) for name in stored["weights"]] == list(model.state_dict())


def test_every_preset_is_among_them() -> None:
    assert {stored["name"] for stored in MODELS} >= set(PRESETS)


def test_every_pattern_of_the_table_is_needed() -> None:
    names = ["eyes.net.0.weight", *(name for stored in MODELS for name in stored["weights"])]
    assert [pattern for pattern in WEIGHTS if not any(re.search(pattern, name) for name in names)] == []


def test_names_of_today_stay_as_they_are() -> None:
    names = {migrate_weight(name): name for stored in MODELS for name in stored["weights"]}
    assert migrate_weights(dict.fromkeys(names, 0)) == dict.fromkeys(names, 0)
