"""Whether the server lives, is ready, and what it has done; and a browser's session."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from heedful.serve.middleware import COOKIE, any_equal
from heedful.serve.problems import ProblemError, busy
from heedful.serve.state import get_state, json_response

router = APIRouter(tags=["system"])


@router.get("/health", summary="Whether the process lives", operation_id="health")
async def health() -> dict[str, str]:
    """Return at once, also while models are loaded."""
    return {"status": "alive"}


@router.get("/ready", summary="Whether models can be used", operation_id="ready")
async def ready(request: Request) -> Response:
    """Return 503 until the first models are in memory, and while the server shuts down."""
    state = get_state(request)
    if state.batcher.draining:
        raise busy("the server is shutting down", 5)
    if not state.readiness.get("ready"):
        raise busy(str(state.readiness.get("error", "models are being loaded")), 1)
    return json_response({"status": "ready", "loaded": state.store.loaded})


@router.get(
    "/metrics",
    summary="Numbers for Prometheus",
    operation_id="metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request) -> Response:
    """Return counts of requests, latencies, queue length, batch sizes and tokens."""
    return Response(get_state(request).statistics.report(), media_type="text/plain; version=0.0.4")


@router.get("/session", include_in_schema=False)
async def session(request: Request, token: str = "") -> Response:
    """Exchange the token of the printed address for a cookie that pages of other sites cannot send."""
    expected = get_state(request).settings.session_token
    if not expected or not any_equal(token, [expected]):
        raise ProblemError(401, "no-session", "open the address that the server printed, with its token")
    response = RedirectResponse("/", 303)
    response.set_cookie(COOKIE, expected, httponly=True, samesite="strict", path="/")
    return response
