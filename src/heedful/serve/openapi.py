"""The OpenAPI document: what FastAPI makes of the routes, with the bodies and errors that it does not see."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from heedful.serve.examples import EXAMPLES, RESPONSES, STREAMED, STREAMING
from heedful.serve.problems import MEDIA_TYPE, ProblemDetails

REFERENCE = "#/components/schemas/{model}"
PROBLEMS = {
    "400": "malformed HTTP or JSON",
    "401": "no key, or a wrong one",
    "403": "called by a page of another origin",
    "404": "no such path or model",
    "408": "the request arrived too slowly",
    "413": "above a limit",
    "421": "unknown Host",
    "422": "content that cannot be used",
    "429": "too many requests of this key",
    "500": "a bug; the log has it under the request's id",
    "503": "busy, shutting down, or the model is not available; Retry-After says when to come back",
    "504": "took too long and was stopped",
}


def trace_body(model: type[BaseModel]) -> dict[str, Any]:
    """Return the request body of a route that takes JSON, or an image with the JSON in the field `request`."""
    upload = {
        "type": "object",
        "properties": {
            "file": {"type": "string", "format": "binary"},
            "request": {"type": "string", "description": f"JSON: {model.__name__}, without input"},
        },
        "required": ["file"],
    }
    return {
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"$ref": REFERENCE.format(model=model.__name__)}},
                "multipart/form-data": {"schema": upload},
            },
        }
    }


def add_openapi(app: FastAPI, models: list[type[BaseModel]]) -> None:
    """Let an application describe itself, with schemas of requests that its routes parse themselves."""

    def describe() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = get_openapi(
                title=app.title,
                version=app.version,
                description=app.description,
                routes=app.routes,
                openapi_version="3.1.0",
            )
            schemas = document.setdefault("components", {}).setdefault("schemas", {})
            described: list[type[BaseModel]] = [*models, ProblemDetails]
            for model in described:
                schema = model.model_json_schema(ref_template=REFERENCE)
                schemas.update(schema.pop("$defs", {}))
                schemas[model.__name__] = schema
            for unused in ("HTTPValidationError", "ValidationError"):
                schemas.pop(unused, None)
            _add_problems(document)
            _add_examples(document)
            document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
            document["security"] = [{}, {"key": []}]
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = describe  # type: ignore[method-assign]


def _add_problems(document: dict[str, Any]) -> None:
    """Add to each operation the errors that any request may be answered with."""
    content = {MEDIA_TYPE: {"schema": {"$ref": REFERENCE.format(model="ProblemDetails")}}}
    for operations in document["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)
            for status, text in PROBLEMS.items():
                operation["responses"].setdefault(status, {"description": text, "content": content})


def _add_examples(document: dict[str, Any]) -> None:
    """Add to each operation what it may be sent and what it answers, and schemas that the routes do not declare."""
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    for operation in operations:
        name, content = operation["operationId"], operation["responses"].get("200", {}).get("content", {})
        if name in RESPONSES:
            content["application/json"] = {"schema": RESPONSES[name]}
        if name in STREAMING:
            content["text/event-stream"] = STREAMED
        request, response = EXAMPLES.get(name, (None, None))
        if response is not None:
            content["application/json"]["example"] = response
        if request is not None:
            operation["requestBody"]["content"]["application/json"]["example"] = request
