"""The OpenAPI document, and requests that Schemathesis generates from it, over real sockets.

`positive_data_acceptance` is left out: that a model's name fits the verb, or that a text is an edit, is no matter of a
schema. A longer run is recorded in benchmarks/serve.md.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from serve.local import LocalServer
from serve.server import Server

SCHEMATHESIS = Path(sys.executable).parent / "schemathesis"
SETTINGS = ("--seed", "1", "--generation-deterministic", "--no-shrink", "-n", "2", "--max-time", "20")


def test_the_document_describes_every_route_with_examples(local: LocalServer) -> None:
    document = local.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    routes = {getattr(route, "path", "") for route in local.app.routes if getattr(route, "include_in_schema", False)}
    assert {"/v1/translate", "/v1/trace", "/v1/whatif", "/translate", "/metrics"} <= set(document["paths"])
    assert routes - {"/openapi.json"} <= set(document["paths"]) | {""}
    schemas = document["components"]["schemas"]
    for name in ("GenerateRequest", "PlainRequest", "RecommendRequest", "TraceRequest", "WhatIfRequest"):
        assert schemas[name]["examples"]
    errors = document["paths"]["/v1/translate"]["post"]["responses"]["503"]["content"]
    assert list(errors) == ["application/problem+json"]


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def test_every_example_is_valid(local: LocalServer) -> None:
    document = local.get("/openapi.json").json()
    checked = 0

    def check(schema: dict[str, Any], example: Any) -> None:
        nonlocal checked
        jsonschema.validate(example, {**schema, "components": document["components"]}, jsonschema.Draft202012Validator)
        checked += 1

    for schema in document["components"]["schemas"].values():
        for example in schema.get("examples", ()):
            check(schema, example)
    for _, _, operation in operations(document):
        for body in (operation.get("requestBody", {}), *operation["responses"].values()):
            for content in body.get("content", {}).values():
                if "example" in content:
                    check(content["schema"], content["example"])
    assert checked > 30


def test_every_example_of_a_request_is_answered(server: Server) -> None:
    document = server.get("/openapi.json").json()
    schemas, answered = document["components"]["schemas"], []
    for method, path, operation in operations(document):
        content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        named = schemas.get(content.get("schema", {}).get("$ref", "").rpartition("/")[2], {})
        for example in [content["example"], *named.get("examples", [])] if "example" in content else ():
            if path in ("/v1/summarize", "/v1/reply", "/v1/transduce"):  # no model of these is bundled
                continue
            answer = server.client.request(method, path, json=example)
            assert answer.status_code == 200, (path, example, answer.text)
            answered.append(path)
            shown = operation["responses"]["200"]["content"]["application/json"].get("example")
            if shown is not None and example == content["example"]:
                assert shape(shown) <= shape(answer.json()), path
    assert {"/v1/translate", "/v1/classify", "/v1/read", "/v1/recommend", "/v1/trace", "/v1/whatif"} <= set(answered)


def shape(content: Any, place: str = "") -> set[str]:
    """Return the names of all fields, of lists those of the first item."""
    if isinstance(content, list):
        return shape(content[0], f"{place}[]") if content else set()
    if not isinstance(content, dict):
        return {place}
    return {name for key, value in content.items() for name in shape(value, f"{place}.{key}")}


def test_generated_requests(local: LocalServer, tmp_path: Path) -> None:
    command = [str(SCHEMATHESIS), "run", f"http://127.0.0.1:{local.port}/openapi.json", *SETTINGS]
    done = subprocess.run(
        [*command, "--exclude-checks", "positive_data_acceptance"], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout[-3_000:]
    assert "20 selected / 20 total" in done.stdout
