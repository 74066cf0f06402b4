"""The verbs: list in, list out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from heedful.serve.requests import (
    CaptionFields,
    GenerateRequest,
    PlainRequest,
    RecommendRequest,
    VerbResponse,
)
from heedful.serve.state import ServerState, get_state, json_response, take_seconds, while_connected
from heedful.serve.streaming import stream_response
from heedful.serve.uploads import UPLOAD, read_upload

GENERATING = ("translate", "summarize", "reply", "transduce")
JUDGING = ("classify", "read")
SUMMARIES = {
    "translate": "Translate texts",
    "summarize": "Summarize texts",
    "reply": "Answer messages",
    "transduce": "Rewrite sequences of symbols",
    "classify": "Label texts",
    "read": "Score texts with a language model",
}
router = APIRouter(prefix="/v1", tags=["verbs"])


async def compute(
    request: Request, task: str, model: str | None, inputs: Sequence[Any], options: dict[str, Any], alignments: bool
) -> tuple[str, list[dict[str, Any]]]:
    """Return the name of the model and a record per input."""
    state = get_state(request)
    options = dict(options)
    seconds = take_seconds(state, options)
    name = state.store.find(model, task)
    request.scope["log_fields"] = {"model": name, "inputs": len(inputs)}
    return name, await while_connected(request, _compute(state, name, inputs, options, alignments), seconds)


async def _compute(
    state: ServerState, name: str, inputs: Sequence[Any], options: dict[str, Any], alignments: bool
) -> list[dict[str, Any]]:
    state.batcher.admit(len(inputs))
    servable = await state.servable(name)
    parsed = servable.parse_options(options, state.settings.limits)
    items = await state.prepare(servable, inputs)
    return await state.compute(servable, items, parsed, alignments)


def _add_generating(task: str) -> None:
    @router.post(f"/{task}", summary=SUMMARIES[task], operation_id=task, response_model=VerbResponse)
    async def generate(request: Request, body: GenerateRequest) -> Response:
        if body.stream:
            return await stream_response(request, task, body)
        name, outputs = await compute(request, task, body.model, body.inputs, body.options, body.alignments)
        return json_response({"model": name, "outputs": outputs})


def _add_judging(task: str) -> None:
    @router.post(f"/{task}", summary=SUMMARIES[task], operation_id=task, response_model=VerbResponse)
    async def judge(request: Request, body: PlainRequest) -> Response:
        name, outputs = await compute(request, task, body.model, body.inputs, body.options, body.alignments)
        return json_response({"model": name, "outputs": outputs})


for _task in GENERATING:
    _add_generating(_task)
for _task in JUDGING:
    _add_judging(_task)


@router.post("/recommend", summary="Recommend items", operation_id="recommend", response_model=VerbResponse)
async def recommend(request: Request, body: RecommendRequest) -> Response:
    """Return the best items for users or histories, with the items of the history that spoke for each."""
    inputs = [history.to_input() for history in body.inputs]
    name, outputs = await compute(request, "recommend", body.model, inputs, body.options, body.alignments)
    return json_response({"model": name, "outputs": outputs})


@router.post(
    "/caption", summary="Caption images", operation_id="caption", response_model=VerbResponse, openapi_extra=UPLOAD
)
async def caption(request: Request) -> Response:
    """Return a caption per uploaded image; images are sent by content, never fetched."""
    state = get_state(request)
    body, images = await read_upload(request, CaptionFields, state.settings.limits)
    name, outputs = await compute(request, "caption", body.model, images, body.options, body.alignments)
    return json_response({"model": name, "outputs": outputs})
