"""Traces: the record of a run, and what a change of weights or of the first words does to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from starlette.responses import Response

from heedful.decoding import StopCondition
from heedful.serve.openapi import trace_body
from heedful.serve.problems import wrong_request
from heedful.serve.requests import History, TraceRequest, WhatIfRequest, WhatIfResponse
from heedful.serve.state import ServerState, get_state, json_response, take_seconds, while_connected
from heedful.serve.uploads import is_upload, parse_json, read_upload
from heedful.tasks.api import Model
from heedful.tasks.caption.api import Captioner
from heedful.tasks.recommend.api import Recommender
from heedful.trace.schema import Trace
from heedful.trace.schema.trace import json_schema

SCHEMA_TYPE = "application/schema+json"
TESTS: Mapping[str, str] = {"uniform": "uniform", "permuted": "permute"}  # name in the answer -> edit
router = APIRouter(prefix="/v1", tags=["traces"])
Fields = TypeVar("Fields", TraceRequest, WhatIfRequest)


@router.post("/trace", summary="Record a run", operation_id="trace", openapi_extra=trace_body(TraceRequest))
async def trace(request: Request) -> Response:
    """Return the trace of one input: every step, weight and likely token (schema: GET /v1/schema/trace)."""
    body, image = await _read(request, TraceRequest)

    def record(model: Model, item: Any, options: dict[str, Any], stop: StopCondition) -> Mapping[str, Any]:
        options = {**options, "should_stop": stop.is_met, "detail": body.detail, "target": body.target}
        traced = _trace(model, item, what_if=body.what_if, edits=body.edits, prefix=body.prefix, **options)
        document = dump(traced)
        if body.faithfulness:
            document["faithfulness"] = _faithfulness(model, item, traced, stop)
        return document

    return json_response(await _compute(request, body, image, record))


@router.post(
    "/whatif",
    summary="Change weights or first words, and generate again",
    operation_id="whatif",
    response_model=WhatIfResponse,
    openapi_extra=trace_body(WhatIfRequest),
)
async def whatif(request: Request) -> Response:
    """Return the traces before and after a change, and the likely tokens of every step after it."""
    body, image = await _read(request, WhatIfRequest)

    def record(model: Model, item: Any, options: dict[str, Any], stop: StopCondition) -> Mapping[str, Any]:
        options = {**options, "should_stop": stop.is_met, "detail": body.detail}
        before, after = model.trace_change(item, body.edits, prefix=body.prefix, candidates=body.top_k, **options)
        steps = [
            {"top": [{"id": top.id, "text": top.text, "logprob": top.logp} for top in step.top]} for step in after.steps
        ]
        changed = _output(before) != _output(after)
        return {"before": dump(before), "after": dump(after), "changed": changed, "steps": steps}

    return json_response(await _compute(request, body, image, record))


@router.get(
    "/schema/trace",
    summary="JSON Schema of traces",
    operation_id="trace_schema",
    response_class=Response,
    responses={200: {"content": {SCHEMA_TYPE: {}}}},
)
async def trace_schema() -> Response:
    """Return the JSON Schema of traces."""
    return Response(json_schema(), media_type=SCHEMA_TYPE)


def dump(trace: Trace) -> dict[str, Any]:
    """Return a trace as JSON."""
    return trace.model_dump(mode="json", by_alias=True, exclude_none=True)


async def _read(request: Request, fields: type[Fields]) -> tuple[Fields, bytes | None]:
    """Return the fields of a request, and its image if it is an upload."""
    if not is_upload(request):
        return parse_json(fields, await request.body()), None
    body, images = await read_upload(request, fields, get_state(request).settings.limits)
    if len(images) != 1 or body.input is not None:
        raise wrong_request("file: expected one image, and no input beside it")
    return body, images[0]


async def _compute(
    request: Request,
    body: TraceRequest | WhatIfRequest,
    image: bytes | None,
    record: Callable[[Model, Any, dict[str, Any], StopCondition], Mapping[str, Any]],
) -> Mapping[str, Any]:
    state, options = get_state(request), dict(body.options)
    seconds = take_seconds(state, options)
    name = _model_name(state, body, image)
    request.scope["log_fields"] = {"model": name}

    async def work() -> Mapping[str, Any]:
        state.batcher.admit(1)
        servable = await state.servable(name)
        given = body.input if image is None else image
        item = given.to_input() if isinstance(given, History) else given
        _check_input(servable.model, item)
        parsed = servable.parse_options(options, state.settings.limits)
        if not isinstance(servable.model, Recommender) or image is not None:
            await state.prepare(servable, [item])
        if hasattr(parsed, "max_length"):
            options.setdefault("max_length", parsed.max_length)
        return await state.batcher.call(lambda stop: record(servable.model, item, options, stop))

    return await while_connected(request, work(), seconds)


def _model_name(state: ServerState, body: TraceRequest | WhatIfRequest, image: bytes | None) -> str:
    if body.model is not None:
        return state.store.find(body.model, state.store.task(body.model))
    if image is not None:
        return state.store.find(None, "caption")
    return state.store.find(None, "recommend" if isinstance(body.input, History) else "translate")


def _check_input(model: Model, item: Any) -> None:
    expected: tuple[type, str]
    if isinstance(model, Recommender):
        expected = (dict, '{"user": ID} or {"items": [...]}')
    elif isinstance(model, Captioner):
        expected = (bytes, "an uploaded image")
    else:
        expected = (str, "text")
    if not isinstance(item, expected[0]):
        raise wrong_request(f"input: {model.name} ({model.task}) expects {expected[1]}")


def _trace(model: Model, item: Any, **options: Any) -> Trace:
    """Return the trace of one input of any task."""
    traced = model.trace(**item, **options) if isinstance(item, dict) else model.trace(item, **options)
    assert isinstance(traced, Trace)
    return traced


def _faithfulness(model: Model, item: Any, traced: Trace, stop: StopCondition) -> dict[str, Any]:
    """Return what becomes of the output if the weights of the alignment site are uniform or permuted.

    `text` is the output that is generated then, `logp` the log-probability per token of the unedited output under
    those weights, beside its own.
    """
    if traced.alignment_site is None or traced.edits:
        raise wrong_request("faithfulness: the trace has no attention to test, or is edited already")
    results: dict[str, Any] = {"logp": _mean_logp(traced)}
    for name, edit in TESTS.items():
        _, after = model.trace_change(item, edit, detail="weights", should_stop=stop.is_met)
        results[name] = {"text": after.target.text, "changed": _output(after) != _output(traced)}
        if not isinstance(item, dict) and traced.model.task != "read":
            forced = _trace(model, item, edits=edit, target=traced.target.text, detail="weights", what_if=False)
            results[name]["logp"] = _mean_logp(forced)
    return results


def _mean_logp(trace: Trace) -> float:
    return sum(step.logp for step in trace.steps) / max(1, len(trace.steps))


def _output(trace: Trace) -> list[tuple[str, int | None]]:
    return [(token.text, token.id) for token in trace.target.tokens]
