"""The OpenAPI document, and requests that Schemathesis generates from it, over real sockets.

`positive_data_acceptance` is left out: that a model's name fits the verb, or that a text is an edit, is no matter of a
schema. A longer run is recorded in benchmarks/serve.md.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from serve.local import LocalServer

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


def test_generated_requests(local: LocalServer, tmp_path: Path) -> None:
    command = [str(SCHEMATHESIS), "run", f"http://127.0.0.1:{local.port}/openapi.json", *SETTINGS]
    done = subprocess.run(
        [*command, "--exclude-checks", "positive_data_acceptance"], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout[-3_000:]
    assert "20 selected / 20 total" in done.stdout
