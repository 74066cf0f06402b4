"""Traces of format 1 are read as format 2, key by key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from heedful.errors import TraceError
from heedful.trace.schema import Trace, json_schema
from heedful.trace.schema.migrate import KEYS, OLD_SCHEMA, SCHEMA, VALUES, migrate_trace

STORED = Path(__file__).parents[2] / "stored" / "1"


def old_trace() -> dict[str, Any]:
    tree: dict[str, Any] = json.loads((STORED / "cgru.json").read_text(encoding="utf-8"))
    return tree


def all_keys(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield key
            yield from all_keys(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from all_keys(value)


def test_a_stored_trace_keeps_all_of_its_content() -> None:
    """Nothing is dropped as unknown: writing the migrated trace gives every value of the old file."""
    old = old_trace()
    new = json.loads(Trace.model_validate(old).model_dump_json(by_alias=True, exclude_none=True))
    assert new["schema"] == SCHEMA
    assert new == migrate_trace(old)
    assert len(list(all_keys(new))) == len(list(all_keys(old)))


def test_no_old_key_is_written() -> None:
    new = migrate_trace(old_trace())
    for part, keys in KEYS.items():
        node: Any = new
        for name in part.split(".") if part else []:
            node = node.get(name) if isinstance(node, dict) else None
            node = node[0] if isinstance(node, list) and node else node
        if isinstance(node, dict) and part != "tensors":
            assert not set(keys) & set(node) - set(keys.values()), part


def test_sites_steps_and_beam_have_their_new_names() -> None:
    trace = Trace.model_validate(old_trace())
    record = trace.site()
    assert (record.query_side, record.key_side) == ("target", "source")
    assert trace.intermediates["features"] == "said"  # the tensor keeps its name
    assert trace.beam is not None
    assert trace.beam.beam_size == 3
    assert {node.state for node in trace.beam.nodes} == {"active", "pruned"}
    assert trace.decoding["length_penalty"] == 1.0
    assert trace.model.settings["attention"]["normalizer"] == "softmax"
    assert trace.model.settings["decoder"]["start_token"] == "<s>"
    assert trace.checks is not None
    assert trace.checks.features is not None


def test_old_task_names_and_images_are_migrated() -> None:
    tree = {
        "schema": OLD_SCHEMA,
        "model": {"name": "m", "task": "summarise"},
        "source": {"image": {"href": "data:,"}},
        "tensors": {"ends": {"dtype": "u1"}},
        "sites": [{"extra": {"centre": "c", "slot": "s"}, "mask": "k", "through": "enc.words"}],
    }
    migrated = migrate_trace(tree)
    assert migrated["model"]["task"] == "summarize"
    assert migrated["source"]["image"] == {"data_uri": "data:,"}
    assert list(migrated["tensors"]) == ["sentence_ends"]
    assert migrated["sites"] == [{"extras": {"center": "c", "empty_slot": "s"}, "keep": "k", "keys_from": "enc.words"}]


def test_the_table_names_only_what_exists() -> None:
    """Every new key of the table is a key of the schema, apart from names inside free mappings."""
    schema = json.loads(json_schema())
    properties = set(schema["properties"]).union(*(part["properties"] for part in schema["$defs"].values()))
    free = {"intermediates", "sites.extras", "tensors"}
    for part, keys in KEYS.items():
        if part not in free:
            assert set(keys.values()) <= properties, part
    assert set(VALUES["beam.nodes.state"].values()) == set(schema["$defs"]["BeamNode"]["properties"]["state"]["enum"])


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps({**migrate_trace(old_trace()), "schema": "attn-trace/3"}))
    with pytest.raises(TraceError, match=r"not a trace of schema attn-trace/2: schema: Input should be 'attn-trace/2'"):
        Trace.load(tmp_path / "t.json")
