"""Errors as RFC 9457 problem details: what was wrong with a request, in the sentences of the command line."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json
from starlette.exceptions import HTTPException as StarletteError
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from heedful.arguments import to_python
from heedful.errors import (
    DecodingCancelledError,
    DecodingTimeoutError,
    HeedfulError,
    ModelError,
    TooLargeError,
    nearest,
)

MEDIA_TYPE = "application/problem+json"
MAX_DETAIL = 2_000  # characters; an error may quote a text of any length
CLIENT_CLOSED = 499  # nobody reads this answer; it is for the log
log = logging.getLogger("heedful.serve")


class ProblemDetails(BaseModel):
    """Why a request failed (RFC 9457)."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:heedful:problem:unknown-model",
                    "title": "Not Found",
                    "status": 404,
                    "detail": 'no model "en-ff" is served; did you mean "en-fr"? known: en-fr, photos',
                    "request_id": "9f3c0a8e",
                }
            ]
        }
    )

    type: str
    title: str
    status: int
    detail: str
    request_id: str | None = None


class ProblemError(HTTPException):
    """An answer that is an error; FastAPI passes on exceptions of this class only, while it reads a body."""

    def __init__(self, status: int, kind: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, detail, dict(headers or {}))
        self.status, self.kind = status, kind


def too_large(detail: str) -> ProblemError:
    """Return the problem of a request above a limit."""
    return ProblemError(413, "too-large", detail)


def wrong_request(detail: str) -> ProblemError:
    """Return the problem of a request whose content cannot be used."""
    return ProblemError(422, "wrong-request", detail)


def busy(detail: str, seconds: float) -> ProblemError:
    """Return the problem of a server that can take no more work for some seconds."""
    return ProblemError(503, "busy", detail, {"Retry-After": str(max(1, round(seconds)))})


def problem_response(
    problem: ProblemError, request_id: str | None = None, extra: Mapping[str, Any] | None = None
) -> Response:
    """Return the response of a problem."""
    title = "Client Closed Request" if problem.status == CLIENT_CLOSED else HTTPStatus(problem.status).phrase
    content = {
        "type": f"urn:heedful:problem:{problem.kind}",
        "title": title,
        "status": problem.status,
        "detail": _shorten(problem.detail),
        **({"request_id": request_id} if request_id else {}),
        **(extra or {}),
    }
    return Response(to_json(content), problem.status, problem.headers, MEDIA_TYPE)


def as_problem(error: Exception) -> ProblemError:
    """Return the problem that an error stands for."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, DecodingTimeoutError):
        return ProblemError(504, "timeout", str(error))
    if isinstance(error, DecodingCancelledError):
        return ProblemError(CLIENT_CLOSED, "cancelled", str(error))
    if isinstance(error, ClientDisconnect):
        return ProblemError(CLIENT_CLOSED, "cancelled", "the client left before its request had arrived")
    if isinstance(error, ModelError):
        return ProblemError(503, "model-unavailable", str(error), {"Retry-After": "30"})
    if isinstance(error, TooLargeError):
        return too_large(to_python(str(error)))
    if isinstance(error, HeedfulError):
        return wrong_request(to_python(str(error)))
    if isinstance(error, MemoryError):
        return ProblemError(503, "no-memory", "not enough memory for this request; send shorter or fewer inputs")
    if isinstance(error, OSError):
        return ProblemError(503, "system", f"the server cannot do this now: {error.strerror or type(error).__name__}")
    log.error("unexpected error", exc_info=error)
    return ProblemError(500, "internal", "the server failed; its log has the details under this request's id")


def add_handlers(app: FastAPI) -> None:
    """Let every error of an application become problem details."""

    def handle(request: Request, error: Exception) -> Response:
        if isinstance(error, RequestValidationError):
            problem = wrong_request("\n".join(dict.fromkeys(map(_describe, error.errors()))))
        elif isinstance(error, StarletteError) and not isinstance(error, ProblemError):
            problem = _of_status(request, error)
        else:
            problem = as_problem(error)
        extra = {"error": problem.detail} if request.url.path in ("/translate", "/languages") else None
        return problem_response(problem, request.scope.get("request_id"), extra)

    kinds = (ProblemError, HeedfulError, RequestValidationError, StarletteError, ClientDisconnect, OSError, MemoryError)
    for kind in (*kinds, Exception):
        app.add_exception_handler(kind, handle)


def _of_status(request: Request, error: StarletteError) -> ProblemError:
    path = request.url.path
    details = {404: f"there is no {path[:200]}; /openapi.json lists what there is", 405: f"not for {request.method}"}
    detail = details.get(error.status_code, str(error.detail))
    kinds = {404: "no-such-path", 405: "wrong-method", 400: "malformed"}
    return ProblemError(error.status_code, kinds.get(error.status_code, "request"), detail, error.headers)


def _describe(error: Mapping[str, Any]) -> str:
    """Return a sentence about what is wrong with a field of a request."""
    place = _place(error["loc"])
    kind, context = error["type"], error.get("ctx", {})
    if kind == "missing":
        return f"{place}: is required"
    if kind == "extra_forbidden":
        return f"{place}: there is no such field"
    if kind == "json_invalid":
        return f"the request is not JSON: {context.get('error', 'malformed')}"
    message = str(context["error"]) if kind == "value_error" and "error" in context else str(error["msg"])
    return f"{place}: {message[:1].lower()}{message[1:]}" if place else message


def _place(location: Sequence[str | int]) -> str:
    """Return where a field is.

    >>> _place(["body", "inputs", 3])
    'inputs[3]'
    """
    text = ""
    for part in location:
        if part in ("body", "query", "path") and not text:
            continue
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "the request"


def unknown_model(name: str, known: Sequence[str]) -> ProblemError:
    """Return the problem of a name that is not served."""
    return ProblemError(404, "unknown-model", f'no model "{name[:100]}" is served; {nearest(name[:100], known)}')


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_DETAIL else f"{text[: MAX_DETAIL // 2]} … {text[-MAX_DETAIL // 2 :]}"
