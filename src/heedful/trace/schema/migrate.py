"""The migration table of traces: the keys and values of `attn-trace/1` and what they are called in `attn-trace/2`.

Traces are migrated when they are read. Nothing else in the package knows an old name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from heedful.config.migrate import migrate_recipe

OLD_SCHEMA = "attn-trace/1"
SCHEMA = "attn-trace/2"

KEYS: Mapping[str, Mapping[str, str]] = {  # part of a trace, as it is called now -> old key -> new key
    "": {
        "alignment": "alignment_site",
        "combine": "intermediates",
        "decode": "decoding",
        "tests": "attributions",
        "whatif": "counterfactuals",
    },
    "beam": {"size": "beam_size", "weight": "weights"},
    "beam.nodes": {"t": "step", "total": "total_logp"},
    "checks": {
        "moving": "weights_vary",
        "said": "features",
        "score": "scores",
        "softmax": "weights",
        "top_first": "greedy_is_argmax",
    },
    "intermediates": {"gate": "copy_gate", "gated": "glu", "said": "features", "stream": "residual"},
    "sites": {
        "asks": "query_side",
        "extra": "extras",
        "mask": "keep",
        "reads": "key_side",
        "score": "scores",
        "through": "keys_from",
        "value": "values",
        "weight": "weights",
    },
    "sites.extras": {"centre": "center", "slot": "empty_slot"},
    "source.image": {"href": "data_uri"},
    "tensors": {"ends": "sentence_ends"},
}

VALUES: Mapping[str, Mapping[str, str]] = {  # key, as it is called now -> old value -> new value
    "beam.nodes.state": {"alive": "active", "done": "finished", "dropped": "pruned"},
    "schema": {OLD_SCHEMA: SCHEMA},
}


def migrate_trace(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tree of a trace of format 1 with every key and value as it is called now.

    >>> tree = migrate_trace({"schema": "attn-trace/1", "sites": [{"asks": "target"}], "decode": {"alpha": 0.5}})
    >>> tree["schema"], tree["sites"], tree["decoding"]
    ('attn-trace/2', [{'query_side': 'target'}], {'length_penalty': 0.5})
    """
    migrated: dict[str, Any] = _migrate_part(tree, "")
    if not all(isinstance(part, dict) for part in _recipe_parts(migrated)):
        return migrated  # the checks of the schema say what is wrong
    model = dict(migrated.get("model") or {})
    recipe = migrate_recipe(
        {
            "task": {"kind": model.get("task", "translate")},
            "model": model.get("settings") or {},
            "decoding": migrated.get("decoding") or {},
        }
    )
    if model:
        migrated["model"] = {**model, "task": recipe["task"]["kind"], "settings": recipe["model"]}
    migrated["decoding"] = recipe["decoding"]
    return migrated


def _recipe_parts(tree: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the parts of a trace that hold settings of a recipe."""
    model = tree.get("model") or {}
    yield model
    yield model.get("settings") or {} if isinstance(model, dict) else {}
    yield tree.get("decoding") or {}


def _migrate_part(part: Any, name: str) -> Any:
    """Rename the keys below `name`, a dotted path without list indices."""
    if isinstance(part, Mapping):
        keys = KEYS.get(name, {})
        pairs = [(keys.get(key, key), value) for key, value in part.items()]
        return {key: _migrate_part(value, f"{name}.{key}" if name else key) for key, value in pairs}
    if isinstance(part, list):
        return [_migrate_part(item, name) for item in part]
    return VALUES.get(name, {}).get(part, part) if isinstance(part, str) else part
