"""Uploads: images by content, with the rest of the request as JSON in the field `request`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from heedful.serve.problems import too_large, wrong_request
from heedful.serve.settings import Limits

MAX_FIELDS = 8
UPLOAD: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "file": {"type": "array", "items": {"type": "string", "format": "binary"}, "minItems": 1},
                        "request": {"type": "string", "description": "JSON: model, options, alignments"},
                    },
                    "required": ["file"],
                }
            }
        },
    }
}
Fields = TypeVar("Fields", bound=BaseModel)


async def read_upload(request: Request, fields: type[Fields], limits: Limits) -> tuple[Fields, list[bytes]]:
    """Return the JSON of the field `request`, and the content of every field `file`."""
    if not is_upload(request):
        raise wrong_request("expected multipart/form-data with the images in fields called file")
    try:
        async with request.form(max_files=limits.items, max_fields=MAX_FIELDS) as form:
            files = form.getlist("file")
            text = form.get("request", "{}")
            if not files or not all(isinstance(file, UploadFile) for file in files):
                raise wrong_request("file: expected at least one uploaded image, by content")
            unknown = set(form) - {"file", "request"}
            if unknown or not isinstance(text, str):
                raise wrong_request(f"{next(iter(unknown), 'request')}: expected the fields file and request (JSON)")
            images = [await file.read() for file in files if isinstance(file, UploadFile)]
    except HTTPException as error:  # more files than allowed, or not multipart
        if "Too many files" in str(error.detail):
            raise too_large(f"file: send at most {limits.items:,} images per request") from None
        raise wrong_request(f"the upload is malformed: {error.detail}") from None
    return parse_json(fields, text), images


def is_upload(request: Request) -> bool:
    """Return whether a request is an upload and not JSON."""
    return request.headers.get("content-type", "").lower().startswith("multipart/form-data")


def parse_json(fields: type[Fields], text: str | bytes) -> Fields:
    """Return the fields of a request; errors are those of any other request."""
    return _parse(lambda: fields.model_validate_json(text))


def parse_fields(fields: type[Fields], values: Mapping[str, Any]) -> Fields:
    """Return the fields of a form; errors are those of any other request."""
    return _parse(lambda: fields.model_validate(values))


def _parse(validate: Callable[[], Fields]) -> Fields:
    try:
        return validate()
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False)) from None
