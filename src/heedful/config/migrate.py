"""Migrates old recipes: tables of keys and values of format 1, and column settings that became one.

Recipes are migrated when they are loaded, so recipes and model folders of format 1 stay usable. No other module knows
the old names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SECTIONS: Mapping[str, str] = {  # old path -> new path
    "data.pictures": "data.images",
    "data.reading": "data.lm",
    "model.reader": "model.language_model",
}

KEYS: Mapping[str, Mapping[str, str]] = {  # new path of the section -> old key -> new key
    "data": {
        "also": "extra_train",
        "broken": "on_error",
        "longer": "on_too_long",
    },
    "data.images": {
        "tuned": "tune_backbone",
    },
    "data.lm": {
        "lead": "context",
    },
    "tokenizer": {
        "dropout": "bpe_dropout",
        "size": "vocab_size",
    },
    "model": {
        "initialise": "initialization",
        "tie": "tie_embeddings",
    },
    "model.attention": {
        "generate": "hard_inference",
        "longer": "on_too_long",
        "normaliser": "normalizer",
        "read": "hard_training",
        "renormalise": "renormalize",
        "table": "max_source_positions",
    },
    "model.encoder": {
        "epsilon": "norm_epsilon",
        "kernel": "kernel_size",
        "places": "region_embedding",
    },
    "model.decoder": {
        "epsilon": "norm_epsilon",
        "feed": "input_feeding",
        "feed_start": "input_feeding_init",
        "first": "start_token",
        "kernel": "kernel_size",
        "order": "step_order",
        "start": "state_init",
        "window": "smoothing_window",
        "words": "context_words",
    },
    "model.classifier": {
        "neighbours": "lm_auxiliary",
    },
    "model.language_model": {
        "common": "shortlist",
        "epsilon": "norm_epsilon",
        "locked": "variational_dropout",
        "tape": "max_tape",
    },
    "training": {
        "accumulate": "accumulate_grad_batches",
        "agreement": "rdrop",
        "average": "average_last",
        "betas": "adam_betas",
        "clip": "grad_clip",
        "decay": "plateau_factor",
        "decay_after": "plateau_patience",
        "draws": "reward_samples",
        "entropy": "entropy_weight",
        "even": "doubly_stochastic",
        "expected": "soft_fraction",
        "hold_vectors": "freeze_embeddings",
        "rate": "learning_rate",
        "reinforce": "reinforce_weight",
        "sampling": "scheduled_sampling",
        "smoothing": "label_smoothing",
        "start_from": "init_from",
        "teaching": "distill_weight",
        "unknown": "train_unk",
        "warmup": "warmup_steps",
    },
    "decoding": {
        "alpha": "length_penalty",
        "batch": "batch_size",
        "beta": "coverage_penalty",
    },
}

VALUES: Mapping[str, Mapping[str, str]] = {  # new path of the setting -> old value -> new value
    "task.kind": {"summarise": "summarize"},
    "data.on_error": {"refuse": "error"},
    "data.on_too_long": {"refuse": "error"},
    "model.decoder.input_feeding_init": {"look": "attend"},
    "model.decoder.step_order": {
        "update-look-generate": "update-attend-generate",
        "look-update-generate": "attend-update-generate",
        "look-generate-update": "attend-generate-update",
    },
}


def migrate_key(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the path of a setting in format 2.

    >>> migrate_key(("training", "rate"))
    ('training', 'learning_rate')
    >>> migrate_key(("data", "pictures", "tuned"))
    ('data', 'images', 'tune_backbone')
    """
    section = ".".join(keys[:-1])
    section = SECTIONS.get(section, section)
    path = f"{section}.{keys[-1]}" if section else keys[-1]
    if path in SECTIONS:
        return tuple(SECTIONS[path].split("."))
    key = KEYS.get(section, {}).get(keys[-1], keys[-1])
    return (*section.split("."), key) if section else (key,)


def migrate_value(keys: tuple[str, ...], value: Any) -> Any:
    """Return a value in format 2; `keys` is the path of its setting in format 2."""
    renamed = VALUES.get(".".join(keys), {})
    return renamed.get(value, value) if isinstance(value, str) else value


def migrate_recipe(tree: Mapping[str, Any], section: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a recipe, as nested dicts, with every key and value in format 2.

    >>> migrate_recipe({"training": {"rate": 0.1}, "task": {"kind": "summarise"}})
    {'training': {'learning_rate': 0.1}, 'task': {'kind': 'summarize'}}
    """
    migrated: dict[str, Any] = {}
    for name, value in tree.items():
        keys = migrate_key((*section, name))
        if isinstance(value, dict):
            migrated[keys[-1]] = migrate_recipe(value, keys)
        else:
            migrated[keys[-1]] = migrate_value(keys, value)
    return migrated


OLD_COLUMNS = ([1, 2], ["source", "target"])  # what data.columns and data.fields were by default
JSONL_NAMES = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")


def merge_columns(tree: dict[str, Any], origins: dict[tuple[str, ...], str]) -> None:
    """Replace the settings of columns that files of each kind once had by `data.columns`, `header` and `separator`.

    `data.fields` applied to JSONL files and `data.columns` to all others; ratings had settings of their own. Each new
    setting gets the origin of the old one. Old defaults, which old model folders store, become the new ones.

    >>> tree = {"data": {"train": ["a.jsonl"], "columns": [1, 2], "fields": ["en", "vi"]}}
    >>> merge_columns(tree, {})
    >>> tree
    {'data': {'train': ['a.jsonl'], 'columns': ['en', 'vi']}}
    """
    data = tree.get("data")
    if not isinstance(data, dict):
        return
    if "fields" in data:
        fields, origin = data.pop("fields"), origins.pop(("data", "fields"), "")
        if _names_jsonl(data.get("train")):
            data["columns"], origins["data", "columns"] = fields, origin
        if data.get("columns") in OLD_COLUMNS:
            del data["columns"]
            origins.pop(("data", "columns"), None)
    if isinstance(data.get("ratings"), dict):
        _merge_ratings(data, origins)


def _merge_ratings(data: dict[str, Any], origins: dict[tuple[str, ...], str]) -> None:
    ratings = data["ratings"]
    for old, new in (("time", "columns"), ("time_column", "columns"), ("header", "header"), ("separator", "separator")):
        origin = origins.pop(("data", "ratings", old), "")
        value = ratings.pop(old, None)
        if not value:  # the old defaults: 0, false and ""
            continue
        if new == "columns":
            columns = data.get("columns", [1, 2])
            value = [*columns[:2], value] if isinstance(columns, list) else columns
        data[new], origins["data", new] = "yes" if value is True else value, origin


def _names_jsonl(files: Any) -> bool:
    first = files[0] if isinstance(files, list) and files else files
    return isinstance(first, str) and first.lower().endswith(JSONL_NAMES)
