"""Examples of requests and answers in the OpenAPI document; tests send the former and check the latter."""

from __future__ import annotations

from typing import Any, NamedTuple


class Example(NamedTuple):
    """What an operation is sent as JSON, and what it answers; None if there is nothing to show."""

    request: Any = None
    response: Any = None


_SENTENCE, _TRANSLATION = "The cat sleeps.", "Le chat dort."
_NUMBERS = {"logp": -0.84, "score": -0.5, "confidence": 0.85, "finished": True}


def _generated(request: dict[str, Any], model: str, text: str) -> Example:
    outputs = [{"text": text, "outputs": [{"text": text, **_NUMBERS}], "confidence": 0.85, "unlike_training": False}]
    return Example(request, {"model": model, "outputs": outputs})


EXAMPLES = {
    "translate": _generated({"inputs": [_SENTENCE], "options": {"beam": 5}}, "en-fr", _TRANSLATION),
    "summarize": _generated({"inputs": ["a long article"]}, "my-headlines", "a headline"),
    "reply": _generated({"inputs": ["How are you?"], "options": {"method": "greedy"}}, "my-chat", "Fine, thank you."),
    "transduce": _generated({"inputs": ["h e l l o"]}, "my-sounds", "HH AH L OW"),
    "classify": Example(
        {"inputs": ["My card has not arrived."]},
        {
            "model": "intents",
            "outputs": [
                {
                    "text": "My card has not arrived.",
                    "label": "card_arrival",
                    "p": 0.97,
                    "probabilities": {"card_arrival": 0.97, "card_delivery_estimate": 0.03},
                    "notes": [],
                }
            ],
        },
    ),
    "read": Example(
        {"inputs": ["It was a dark night."]},
        {
            "model": "novels",
            "outputs": [
                {
                    "text": "It was a dark night.",
                    "tokens": 7,
                    "bits": 29.5,
                    "perplexity": 18.6,
                    "words": [{"word": "It", "bits": 4.9, "unknown": False}],
                    "notes": [],
                }
            ],
        },
    ),
    "recommend": Example(
        {"inputs": [{"items": ["Toy Story"]}], "options": {"top": 1, "reasons": 1}},
        {
            "model": "films",
            "outputs": [
                {
                    "history": [{"id": "0114709", "title": "Toy Story (1995)"}],
                    "items": [
                        {
                            "id": "0770828",
                            "title": "Man of Steel (2013)",
                            "score": 1.22,
                            "reasons": [{"id": "0114709", "title": "Toy Story (1995)", "weight": 1.8, "effect": 0.28}],
                        }
                    ],
                }
            ],
        },
    ),
    "caption": _generated({}, "photos", "a dog runs on the grass")._replace(request=None),
    "trace": Example({"input": _SENTENCE, "detail": "weights"}),
    "whatif": Example({"input": _SENTENCE, "edits": ["onehot:step=1,position=3"], "top_k": 3, "detail": "weights"}),
    "libretranslate": Example(
        {"q": _SENTENCE, "source": "en", "target": "fr"},
        {"translatedText": _TRANSLATION},
    ),
    "languages": Example(None, [{"code": "en", "name": "English", "targets": ["fr"]}]),
    "catalog": Example(
        None,
        {"model": "films", "count": 1, "items": [{"id": "0114709", "title": "Toy Story (1995)"}], "users": 5973},
    ),
    "health": Example(None, {"status": "alive"}),
    "ready": Example(None, {"status": "ready", "loaded": ["en-fr"]}),
}
RESPONSES: dict[str, dict[str, Any]] = {  # schemas of answers that no class describes
    "trace": {"type": "object", "description": "a trace; its JSON Schema: GET /v1/schema/trace"},
    "libretranslate": {
        "type": "object",
        "properties": {"translatedText": {"anyOf": [{"type": "string"}, {"type": "array"}]}},
        "required": ["translatedText"],
    },
    "languages": {"type": "array", "items": {"type": "object", "required": ["code", "name", "targets"]}},
    "catalog": {"type": "object", "required": ["model", "count", "items", "users"]},
    "ready": {"type": "object", "required": ["status", "loaded"]},
}
STREAMED = {"schema": {"type": "string"}, "example": 'event: word\ndata: {"index":0,"word":"Le","text":"Le"}\n\n'}
STREAMING = ("translate", "summarize", "reply", "transduce")  # with `stream`
