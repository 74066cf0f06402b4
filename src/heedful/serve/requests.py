"""What requests and responses look like; the OpenAPI document is made from these classes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, WithJsonSchema

from heedful.config import DecodingOptions
from heedful.serve.servables import HIDDEN_OPTIONS
from heedful.trace.schema import Edit

MAX_EDITS, MAX_TOP = 64, 100
MAX_NAME = 200


def _check_unicode(text: str) -> str:
    """Refuse half of a surrogate pair, which JSON can write and UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("expected Unicode text, got half of a surrogate pair") from None
    return text


Text = Annotated[StrictStr, AfterValidator(_check_unicode)]
ShortText = Annotated[StrictStr, AfterValidator(_check_unicode), Field(max_length=20_000)]
Name = Annotated[StrictStr, AfterValidator(_check_unicode), Field(max_length=MAX_NAME)]


def options_schema() -> dict[str, Any]:
    """Return the JSON Schema of the options of decoding in a request."""
    fields = DecodingOptions.model_json_schema()["properties"]
    known = {name: {k: v for k, v in field.items() if k not in ("default", "title")} for name, field in fields.items()}
    known = {name: field for name, field in known.items() if name not in HIDDEN_OPTIONS}
    known["beam"]["maximum"] = known["n_best"]["maximum"] = 32
    known["max_length"]["maximum"] = 1_000
    known["max_seconds"] = {"type": "number", "exclusiveMinimum": 0, "description": "seconds for this request"}
    return {
        "type": "object",
        "properties": known,
        "additionalProperties": False,
        "description": "options of decoding; default: those of the model's recipe",
    }


Options = Annotated[dict[str, Any], WithJsonSchema(options_schema())]
NoOptions = Annotated[
    dict[str, Any], WithJsonSchema({"type": "object", "maxProperties": 0, "description": "this task has no options"})
]
RECOMMEND_OPTIONS = {
    "type": "object",
    "properties": {
        "top": {"type": "integer", "minimum": 1, "maximum": 1_000, "description": "items to recommend"},
        "reasons": {"type": "integer", "minimum": 0, "maximum": 100, "description": "items of the history per item"},
    },
    "additionalProperties": False,
}


class Body(BaseModel):
    """Base of every request; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class VerbRequest(Body):
    """Inputs for a model."""

    model: Name | None = Field(None, description="a name of GET /v1/models; default: the first one for this task")
    inputs: list[Text] = Field(min_length=1, description="one output each")
    alignments: StrictBool = Field(False, description="also return tokens and attention weights")


class GenerateRequest(VerbRequest):
    """Texts for a model that writes texts."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"inputs": ["The cat sleeps."], "options": {"beam": 5}, "alignments": False}]}
    )

    options: Options = Field(default_factory=dict)
    stream: StrictBool = Field(False, description="answer with server-sent events, words as they are written")


class PlainRequest(VerbRequest):
    """Texts for a model that judges texts."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"inputs": ["When does the next train leave?"]}]})

    options: NoOptions = Field(default_factory=dict)
    stream: Literal[False] = False


class History(Body):
    """A known user, or the items of a history by title or id."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": ["Toy Story", "id:0120363"]}]})

    user: StrictInt | Name | None = None
    items: list[StrictInt | Name] | None = Field(None, min_length=1, max_length=10_000)

    def to_input(self) -> dict[str, Any]:
        """Return the history as models take it."""
        return self.model_dump(exclude_none=True)


class RecommendRequest(Body):
    """Users or histories for a recommender."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"inputs": [{"items": ["Toy Story"]}], "options": {"top": 3}}]}
    )

    model: Name | None = None
    inputs: list[History] = Field(min_length=1)
    options: Annotated[dict[str, Any], WithJsonSchema(RECOMMEND_OPTIONS)] = Field(default_factory=dict)
    alignments: StrictBool = False
    stream: Literal[False] = False


class CaptionFields(Body):
    """The field `request` of an upload of images."""

    model: Name | None = None
    options: Options = Field(default_factory=dict)
    alignments: StrictBool = False


class EditList(Body):
    """Edits as in `heedful trace --set`, or as in a trace."""

    edits: list[ShortText | Edit] = Field(
        default_factory=list, max_length=MAX_EDITS, examples=[["onehot:step=1,position=5"]]
    )
    prefix: ShortText | list[StrictInt] = Field(
        "", description="beginning of the output, which is kept: text, or ids of tokens as in a trace", examples=["Le"]
    )


class TraceRequest(EditList):
    """One input whose run is to be recorded."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"input": "The cat sleeps.", "detail": "weights"}]})

    model: Name | None = Field(None, description="default: the first model for translate, or for recommend")
    input: Text | History | None = Field(None, description="nothing for an uploaded image")
    options: Options = Field(default_factory=dict)
    detail: Literal["weights", "steps", "full"] = "steps"
    target: ShortText | None = Field(None, description="output to force in place of the model's own")
    what_if: StrictBool | None = Field(None, description="also each position with all or no weight; default: if short")
    faithfulness: StrictBool = Field(False, description="also how outputs change under other weights")


class WhatIfRequest(EditList):
    """One input, and a change of its weights or of the beginning of its output."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"input": "The cat sleeps.", "edits": ["onehot:step=1,position=1"]}]}
    )

    model: Name | None = None
    input: Text | History | None = None
    options: Options = Field(default_factory=dict)
    detail: Literal["weights", "steps", "full"] = "steps"
    top_k: StrictInt = Field(10, ge=1, le=MAX_TOP, description="likely tokens per step")


class TextOutput(BaseModel):
    """The outputs of one input, best first."""

    model_config = ConfigDict(extra="allow")

    text: str
    outputs: list[dict[str, Any]]
    confidence: float | None
    unlike_training: bool | None


class VerbResponse(BaseModel):
    """One output per input, in order."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "en-fr",
                    "outputs": [
                        {
                            "text": "Le chat dort.",
                            "outputs": [{"text": "Le chat dort.", "logp": -0.5, "score": -0.3, "confidence": 0.9}],
                            "confidence": 0.9,
                            "unlike_training": False,
                        }
                    ],
                }
            ]
        }
    )

    model: str
    outputs: list[dict[str, Any]]


class ModelLimits(BaseModel):
    """What a request may ask for."""

    items: int
    characters: int
    tokens: int
    output_tokens: int
    beam: int
    pixels: int
    body_bytes: int
    seconds: float


class ModelInfo(BaseModel):
    """A served model."""

    model_config = ConfigDict(extra="allow")

    name: str
    task: str
    verb: str
    about: str
    languages: list[str]
    license: str
    parameters: int
    bundled: bool
    loaded: bool
    sites: list[dict[str, Any]] | None = Field(description="its attentions; null until the model is loaded")
    options: dict[str, Any]
    limits: ModelLimits


class ModelList(BaseModel):
    """All served models."""

    models: list[ModelInfo]


class StepTop(BaseModel):
    """The likely tokens of a step."""

    top: list[dict[str, Any]]


class WhatIfResponse(BaseModel):
    """Both traces, whether the output differs, and the likely tokens of every step after the change."""

    before: dict[str, Any]
    after: dict[str, Any]
    changed: bool
    steps: list[StepTop]
