"""What is served: models with their options and limits, the items of a recommender, and pages of traces."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import Field
from pydantic_core import PydanticSerializationError
from starlette.responses import Response

from heedful.config import DecodingOptions
from heedful.data.catalog import normalize_title
from heedful.decoding import StopCondition
from heedful.errors import ModelError
from heedful.serve.problems import wrong_request
from heedful.serve.requests import Body, ModelInfo, ModelLimits, ModelList, Name, options_schema
from heedful.serve.servables import GeneratingServable
from heedful.serve.state import ServerState, get_state, json_response, while_connected
from heedful.tasks.recommend.api import Recommender
from heedful.trace.schema import Trace
from heedful.viz.figure import draw
from heedful.viz.page import page_html, page_link

MEDIA_TYPES = {
    "html": "text/html",
    "png": "image/png",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
    "json": "application/json",
}
MAX_FOUND = 50
router = APIRouter(prefix="/v1", tags=["models"])


@router.get("/models", summary="List the models", operation_id="models", response_model=ModelList)
async def models(request: Request) -> Response:
    """Return every model that can be named in a request."""
    state = get_state(request)
    return json_response({"models": [describe(state, name) for name in state.store.names]})


@router.get("/models/{name}", summary="Describe a model", operation_id="model", response_model=ModelInfo)
async def model(request: Request, name: str) -> Response:
    """Return a model with its sites and the figures of its card."""
    state = get_state(request)
    card = state.store.card(name)
    await state.servable(name)
    figures = {key: card[key] for key in ("metrics", "test", "test_on", "attribution", "vocabulary") if key in card}
    return json_response({**describe(state, name), **figures})


class PageRequest(Body):
    """A trace to draw."""

    trace: dict[str, Any] = Field(description="a trace, as POST /v1/trace returns it")
    format: Literal["html", "png", "svg", "pdf", "json"] = "html"
    view: Name | None = Field(None, description="html: the view to open; otherwise the view to draw")


@router.post(
    "/page",
    summary="Draw a trace",
    operation_id="page",
    response_class=Response,
    responses={200: {"content": {media_type: {} for media_type in MEDIA_TYPES.values()}}},
)
async def page(request: Request, body: PageRequest) -> Response:
    """Return a trace as a page of its own, a figure, or JSON."""
    state = get_state(request)

    def make(_: StopCondition) -> bytes:
        try:
            return _draw(body)
        except PydanticSerializationError:  # settings of a model may be nested, JSON that is written only so deep
            raise wrong_request("trace: nested too deeply") from None

    content = await while_connected(request, state.batcher.call(make), state.settings.limits.seconds)
    return Response(
        content,
        media_type=MEDIA_TYPES[body.format],
        headers={
            "content-disposition": f'attachment; filename="trace.{body.format}"',
            "content-security-policy": "sandbox; default-src 'none'",
        },
    )


@router.get("/catalog/{name}", summary="Search the items of a recommender", operation_id="catalog")
async def catalog(request: Request, name: str, q: Annotated[str, Query(max_length=200)] = "") -> Response:
    """Return items whose title or id contains the text, those that begin with it first."""
    servable = await get_state(request).servable(name)
    if not isinstance(servable.model, Recommender):
        raise wrong_request(f"{name} was trained to {servable.model.task} and has no catalog")
    assets, text = servable.model.loaded.assets, normalize_title(q)
    rows = []
    for number, item in enumerate(assets.items):
        title = assets.name(number)
        position = normalize_title(title).find(text)
        if position >= 0 or item == q:
            rows.append((0 if item == q else 1 + position, title, item))
    found = [{"id": item, "title": title} for _, title, item in sorted(rows)[:MAX_FOUND]]
    return json_response({"model": name, "count": len(rows), "items": found, "users": len(assets.users)})


def describe(state: ServerState, name: str) -> dict[str, Any]:
    """Return what `GET /v1/models` says of a model."""
    try:
        card: dict[str, Any] = state.store.card(name)
    except ModelError as error:
        card = {"task": "unknown", "about": str(error)}
    loaded = state.store.peek(name)
    sites = None if loaded is None else [site._asdict() for site in getattr(loaded.model.loaded.model, "sites", ())]
    limits = state.settings.limits.model_dump()
    return {
        "name": name,
        "task": card["task"],
        "verb": f"/v1/{card['task']}",
        "about": card.get("about", ""),
        "languages": card.get("languages", []),
        "license": card.get("license", ""),
        "parameters": card.get("parameters", 0),
        "bundled": state.store.folders[name] in state.store.bundled,
        "loaded": loaded is not None,
        "sites": sites,
        "options": _options(card["task"], loaded),
        "limits": {key: limits[key] for key in ModelLimits.model_fields},
    }


def _options(task: str, loaded: Any) -> dict[str, Any]:
    """Return the options of a task with their defaults, those of the recipe if the model is in memory."""
    if task in ("classify", "read", "unknown"):
        return {}
    if task == "recommend":
        return {"top": 10, "reasons": 3}
    generating = isinstance(loaded, GeneratingServable)
    defaults = loaded.model.recipe.decoding if generating else DecodingOptions()
    names = options_schema()["properties"]
    return {key: value for key, value in defaults.model_dump().items() if key in names}


def _draw(body: PageRequest) -> bytes:
    try:
        trace = Trace.model_validate(body.trace)
    except ValueError as error:
        raise wrong_request(f"trace: not a trace: {str(error).splitlines()[0]}") from None
    if body.format == "json":
        return (trace.model_dump_json(by_alias=True, exclude_none=True) + "\n").encode()
    if body.format == "html":
        return page_html(trace, page_link(body.view) if body.view else "").encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"trace.{body.format}"
        draw(trace, path, body.view or "alignment")
        return path.read_bytes()
