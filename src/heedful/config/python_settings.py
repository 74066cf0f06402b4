"""Settings as Python programs write them: dicts with dotted names or nested dicts, and keywords."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tomli_w

from heedful.config.training import TrainingConfig
from heedful.errors import ArgumentError, nearest

SECTIONS = ("task", "data", "tokenizer", "model", "training", "decoding")
SHORT = {"columns": "data.columns", "vocab_size": "tokenizer.vocab_size"}  # besides the settings of [training]


def keyword_settings(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return keywords as settings: those of [training] by their name, others with two underscores for a dot.

    >>> keyword_settings({"epochs": 3, "model__encoder__hidden": 64})
    {'training.epochs': 3, 'model.encoder.hidden': 64}
    """
    settings = {}
    for name, value in keywords.items():
        if "__" in name:
            settings[name.replace("__", ".")] = value
        elif name in TrainingConfig.model_fields:
            settings[f"training.{name}"] = value
        elif name in SHORT:
            settings[SHORT[name]] = value
        else:
            raise ArgumentError(
                f"{name}: no such argument; {nearest(name, (*TrainingConfig.model_fields, *SHORT))}; settings of other"
                ' sections are written model__embedding=64, or settings={"model.embedding": 64}'
            )
    return settings


def to_overrides(settings: Mapping[str, Any]) -> list[str]:
    """Return settings, with dotted names or nested, as overrides of a recipe; None means not set.

    >>> to_overrides({"training.epochs": 3, "model": {"preset": "cgru", "encoder": {"hidden": 64}}})
    ['training.epochs=3', 'model.preset="cgru"', 'model.encoder.hidden=64']
    """
    return [f"{name}={_to_toml(name, value)}" for name, value in _flatten(settings, "")]


def to_tree(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with dotted names as nested dicts.

    >>> to_tree({"training.epochs": 3, "model": {"preset": "cgru"}})
    {'training': {'epochs': 3}, 'model': {'preset': 'cgru'}}
    """
    tree: dict[str, Any] = {}
    for name, value in _flatten(settings, ""):
        *sections, key = name.split(".")
        node = tree
        for section in sections:
            node = node.setdefault(section, {})
        node[key] = _plain(value)
    return tree


def _flatten(settings: Mapping[str, Any], section: str) -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        name = f"{section}{key}"
        if not section and name.split(".")[0] not in SECTIONS:
            raise ArgumentError(f'settings: there is no section "{name}"; {nearest(name, SECTIONS)}')
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{name}.")
        elif value is not None:
            yield name, value


def _plain(value: Any) -> Any:
    """Return paths, tuples, arrays and numbers of NumPy as TOML has them."""
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    return [*map(_plain, value)] if isinstance(value, tuple | list) else value


def _to_toml(name: str, value: Any) -> str:
    try:
        return tomli_w.dumps({"value": _plain(value)}).removeprefix("value = ").strip()
    except (TypeError, AttributeError):
        kind = type(value).__name__
        raise ArgumentError(f"{name}: expected text, a number, true or false, or a list of them, got {kind}") from None
