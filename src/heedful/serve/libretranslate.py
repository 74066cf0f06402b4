"""The API of LibreTranslate, so that its clients work: POST /translate and GET /languages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.datastructures import UploadFile
from starlette.responses import Response

from heedful.errors import ModelError
from heedful.serve.openapi import REFERENCE
from heedful.serve.problems import wrong_request
from heedful.serve.requests import Body, Name, Text
from heedful.serve.routes_verbs import compute
from heedful.serve.state import ServerState, get_state, json_response
from heedful.serve.uploads import parse_fields, parse_json

NAMES = {
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "vi": "Vietnamese",
    "zh": "Chinese",
}
router = APIRouter(tags=["LibreTranslate"])


class LibreTranslateRequest(Body):
    """One text or several, and two codes of languages."""

    q: Text | list[Text] = Field(description="text, or several", examples=["The cat sleeps."])
    source: Name = Field(
        description='code of the language; "auto" if one model translates to the target', examples=["en"]
    )
    target: Name = Field(examples=["fr"])
    format: Literal["text"] = "text"
    alternatives: Annotated[int, Field(strict=True, ge=0, le=10)] = 0
    api_key: Name = ""


BODY = {"schema": {"$ref": REFERENCE.format(model="LibreTranslateRequest")}}
FORMS = ("application/json", "application/x-www-form-urlencoded")


@router.post(
    "/translate",
    summary="Translate (LibreTranslate)",
    operation_id="libretranslate",
    openapi_extra={"requestBody": {"required": True, "content": dict.fromkeys(FORMS, BODY)}},
)
async def translate(request: Request) -> Response:
    """Translate one text or several, as LibreTranslate does; JSON or a form."""
    body = await _read(request)
    name, source = _find_model(get_state(request), body)
    texts = [body.q] if isinstance(body.q, str) else body.q
    options = {"n_best": body.alternatives + 1} if body.alternatives else {}
    _, records = await compute(request, "translate", name, texts, options, alignments=False)
    outputs = [record["text"] for record in records]
    others = [[output["text"] for output in record["outputs"][1:]] for record in records]
    single = isinstance(body.q, str)
    answer: dict[str, Any] = {"translatedText": outputs[0] if single else outputs}
    if body.source == "auto":
        detected = {"confidence": 0.0, "language": source}
        answer["detectedLanguage"] = detected if single else [detected] * len(texts)
    if body.alternatives:
        answer["alternatives"] = others[0] if single else others
    return json_response(answer)


@router.get("/languages", summary="Languages (LibreTranslate)", operation_id="languages")
async def languages(request: Request) -> Response:
    """Return the languages that can be translated from, each with those it can be translated to."""
    targets: dict[str, list[str]] = {}
    for _, source, target in _pairs(get_state(request)):
        targets.setdefault(source, []).append(target)
    return json_response(
        [{"code": code, "name": NAMES.get(code, code), "targets": sorted(set(to))} for code, to in targets.items()]
    )


def _pairs(state: ServerState) -> Iterator[tuple[str, str, str]]:
    """Yield the name and the languages of every translator whose card names them."""
    for name in state.store.names:
        try:
            card = state.store.card(name)
        except ModelError:
            continue
        if card["task"] == "translate" and len(card.get("languages", ())) == 2:
            source, target = card["languages"]
            yield name, source, target


def _find_model(state: ServerState, body: LibreTranslateRequest) -> tuple[str, str]:
    pairs = list(_pairs(state))
    for name, source, target in pairs:
        if target == body.target and body.source in (source, "auto"):
            return name, source
    known = ", ".join(f"{source}-{target}" for _, source, target in pairs) or "none"
    raise wrong_request(f"no model translates from {body.source} to {body.target}; known: {known}")


async def _read(request: Request) -> LibreTranslateRequest:
    kind = request.headers.get("content-type", "").lower()
    if not kind.startswith(("multipart/form-data", "application/x-www-form-urlencoded")):
        return parse_json(LibreTranslateRequest, await request.body())
    async with request.form(max_files=0, max_fields=100) as form:
        fields: dict[str, Any] = {name: value for name, value in form.items() if not isinstance(value, UploadFile)}
        if len(texts := [text for text in form.getlist("q") if isinstance(text, str)]) > 1:
            fields["q"] = texts
        if str(fields.get("alternatives", "")).isdecimal():
            fields["alternatives"] = int(str(fields["alternatives"])[:9])
        return parse_fields(LibreTranslateRequest, fields)
