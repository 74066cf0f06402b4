"""Cases of requests to the server and the studio, written as bytes on a connection, and of answers to the client."""

from __future__ import annotations

import json
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

from fuzz.case import Case
from fuzz.corpus import RECIPES, Corpus
from fuzz.mutate import mutate_bytes, mutate_tree, odd_number, odd_string
from fuzz.pictures import FORMATS, MODES, change_size, make_image
from fuzz.traces import mutate_trace

SESSION = "fuzz-session-0123456789"  # the token of the studio; requests without it must not be answered
JOB = "training-000000"  # a training that is there
BOUNDARY = "fuzz-boundary"
GENERATING = {"translate": ("translate", "transformer"), "transduce": ("transduce",), "summarize": (), "reply": ()}
JUDGING = {"classify": ("classify",), "read": ("read", "read-transformer")}
RECOMMENDERS = ("recommend", "popularity")
MODELS = tuple(RECIPES)
TEXTS = ("the cat sees a dog", "", " ", "a", "the cat\nsees", "x " * 30)
OPTIONS = ("beam", "n_best", "max_length", "max_seconds", "method", "temperature", "top_k", "top_p", "length_penalty",
    "coverage_penalty", "seed", "batch_size", "exact", "replace_unknown", "x")  # fmt: skip
EDITS = ("uniform", "onehot:step=0,position=0", "onehot:step=1,position=5", "zero:step=0", "permute",
    "source:position=0,text=dog", "uniform:step=99", {"kind": "uniform"},
    {"kind": "onehot", "position": 1})  # fmt: skip
PLAIN_PATHS = ("/health", "/ready", "/metrics", "/open", "/", "/openapi.json", "/languages", "/v1/models",
    "/v1/schema/trace", "/v1/train", "/studio/studio.js", "/studio/studio.vi.json", "/session")  # fmt: skip
ODD_PATHS = ("/studio/../studio.js", "/studio/%2e%2e%2fpage.html", "/v1/models/%00", "/v1/models/..%2f..%2foutside",
    "/v1/catalog/%ff", "//evil.example/", "http://evil.example/v1/models", "*", "/v1/train/../train", "/docs",
    f"/v1/models/{'a' * 5_000}")  # fmt: skip
HEADERS = ("host", "origin", "cookie", "authorization", "content-type", "content-length", "transfer-encoding",
    "content-encoding", "x-request-id", "sec-fetch-site", "upgrade", "expect", "range", "connection", "x")  # fmt: skip
VALUES = ("", "null", "*", "http://evil.example", "evil.example", "Bearer x", "chunked", "gzip", "bytes=0-",
    "100-continue", "websocket", "cross-site", "application/json", "application/x-www-form-urlencoded",
    "multipart/form-data", "multipart/form-data; boundary=", f"multipart/form-data; boundary={'b' * 300}",
    "text/plain; charset=utf-7", "heedful_session=x; heedful_session", "0", "-1", "5", "99999999999999999999",
    "a" * 9_000)  # fmt: skip


def http_case(corpus: Corpus, rng: Random) -> Case:
    """Return one request, as bytes."""
    maker = rng.choice((_generate, _generate, _judge, _recommend, _upload, _upload, _trace, _trace, _page, _train,
        _train, _libretranslate, _get))  # fmt: skip
    method, path, content_type, body = maker(corpus, rng)
    if rng.random() < 0.03:
        method = rng.choice(("PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "CONNECT", "GET", "POST", "get"))
    raw = write_request(method, path, content_type, body, rng)
    if rng.random() < 0.06:
        raw = mutate_bytes(raw, rng, rng.choice((1, 1, 3)))
    return Case("http", ("http",), stdin=raw, private=True)


def write_request(method: str, path: str, content_type: str, body: bytes, rng: Random) -> bytes:
    """Return the bytes of a request, some with odd headers, a wrong length, or in chunks."""
    headers = {"host": "127.0.0.1:8000", "connection": "close", "cookie": f"heedful_session={SESSION}"}
    if body:
        headers |= {"content-type": content_type, "content-length": str(len(body))}
    if rng.random() < 0.04:
        del headers["cookie"]
    if body and rng.random() < 0.05:
        del headers["content-length"]
        headers["transfer-encoding"] = "chunked"
        half = len(body) // 2
        body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:half], body[half:]) if part)
        body += b"0\r\n\r\n"
    if rng.random() < 0.12:
        value = rng.choice(VALUES) if rng.random() < 0.8 else odd_string(rng).encode("ascii", "replace").decode()
        headers[rng.choice(HEADERS)] = value.replace("\n", " ").replace("\r", " ")
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1", "replace") + body


Request = tuple[str, str, str, bytes]  # method, path, type of the body, body


def _json(method: str, path: str, tree: Any, rng: Random, changed: float = 0.7) -> Request:
    """Return a request with a changed body."""
    if rng.random() < changed:
        tree = mutate_tree(tree, rng, rng.choice((1, 1, 1, 2)))
    body = json.dumps(tree).encode()
    if rng.random() < 0.04:
        body = body.replace(b'"', b'"\\ud800', 3).replace(b'"\\ud800', b'"', 2)
    if rng.random() < 0.05:
        body = mutate_bytes(body, rng)
    if rng.random() < 0.01:
        body = rng.choice((b"[" * 50_000, b'{"a":' * 20_000, b"", b"null", b"1" * 10_000, b"\xff\xfe"))
    return method, path, "application/json", body


def _name(names: tuple[str, ...], rng: Random) -> str | None:
    return rng.choice((*names, *names, *names, None, rng.choice(MODELS)))


def _options(rng: Random) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    for _ in range(rng.choice((0, 0, 0, 0, 1, 2))):
        name = rng.choice(OPTIONS)
        usual = rng.choice(("greedy", "beam", "sample")) if name == "method" else rng.choice((1, 2, 3, 0.5, True))
        chosen[name] = usual if rng.random() < 0.6 else rng.choice((odd_number(rng), odd_string(rng), None, [1]))
    return chosen


def _texts(rng: Random) -> list[str]:
    return [rng.choice(TEXTS) if rng.random() < 0.7 else odd_string(rng) for _ in range(rng.choice((1, 1, 2, 5)))]


def _generate(corpus: Corpus, rng: Random) -> Request:
    verb = rng.choice(("translate", "translate", "translate", "transduce", "transduce", "summarize", "reply"))
    tree: dict[str, Any] = {
        "model": _name(GENERATING[verb] or ("translate",), rng),
        "inputs": _texts(rng),
        "options": _options(rng),
    }
    tree |= {"alignments": rng.random() < 0.3, "stream": rng.random() < 0.3}
    if rng.random() < 0.02:
        tree["inputs"] = ["a"] * rng.choice((128, 129, 5_000))
    return _json("POST", f"/v1/{verb}", tree, rng, 0.5)


def _judge(corpus: Corpus, rng: Random) -> Request:
    verb = rng.choice(tuple(JUDGING))
    tree = {"model": _name(JUDGING[verb], rng), "inputs": _texts(rng), "alignments": rng.random() < 0.5}
    return _json("POST", f"/v1/{verb}", tree, rng, 0.5)


def _history(rng: Random) -> dict[str, Any]:
    return rng.choice(
        ({"user": 1}, {"user": "1"}, {"items": ["id:1", "id:2"]}, {"items": [1, 2]}, {"items": ["1"] * 3})
    )


def _recommend(corpus: Corpus, rng: Random) -> Request:
    tree: dict[str, Any] = {
        "model": _name(RECOMMENDERS, rng),
        "inputs": [_history(rng) for _ in range(rng.choice((1, 3)))],
    }
    tree |= {"options": {"top": 3, "reasons": 2}, "alignments": False}
    return _json("POST", "/v1/recommend", tree, rng)


def _picture(corpus: Corpus, rng: Random) -> bytes:
    if rng.random() < 0.5:
        return corpus.photo
    kind = rng.choice(FORMATS)
    data = make_image(kind, rng.choice(MODES), rng.choice(((16, 16), (1, 1), (64, 40))))
    if rng.random() < 0.3:
        return change_size(kind, data, rng)
    return mutate_bytes(data, rng) if rng.random() < 0.6 else data


def _upload(corpus: Corpus, rng: Random) -> Request:
    fields: dict[str, Any] = {"model": _name(("caption",), rng), "options": _options(rng)}
    path = rng.choice(("/v1/caption", "/v1/caption", "/v1/trace", "/v1/whatif"))
    if path != "/v1/caption":
        fields |= {
            "edits": [rng.choice(EDITS)] if rng.random() < 0.5 else [],
            "detail": rng.choice(("weights", "full")),
        }
    if rng.random() < 0.4:
        fields = mutate_tree(fields, rng)
    parts = [
        (rng.choice(("file", "file", "file", "request", "x")), _picture(corpus, rng))
        for _ in range(rng.choice((1, 1, 1, 2)))
    ]
    body = b"".join(_part(name, data, odd_string(rng) if rng.random() < 0.3 else "p.png") for name, data in parts)
    if rng.random() < 0.9:
        body += _part("request", json.dumps(fields).encode(), None)
    body += f"--{BOUNDARY}--\r\n".encode()
    if rng.random() < 0.15:
        body = mutate_bytes(body, rng)
    return "POST", path, f"multipart/form-data; boundary={BOUNDARY}", body


def _part(name: str, data: bytes, filename: str | None) -> bytes:
    named = "" if filename is None else f'; filename="{filename}"'
    head = f'--{BOUNDARY}\r\ncontent-disposition: form-data; name="{name}"{named}\r\n\r\n'
    return head.encode("utf-8", "replace") + data + b"\r\n"


def _trace(corpus: Corpus, rng: Random) -> Request:
    path = rng.choice(("/v1/trace", "/v1/whatif"))
    name = rng.choice(MODELS)
    item: Any = _history(rng) if name in RECOMMENDERS else rng.choice((*TEXTS, odd_string(rng)))
    tree: dict[str, Any] = {"model": name, "input": item, "options": _options(rng)}
    tree |= {"edits": [rng.choice(EDITS) for _ in range(rng.choice((0, 0, 1, 2)))]}
    tree |= {
        "prefix": rng.choice(("", "", "le", "x y", [4, 5], [0], [10**6], [-1])),
        "detail": rng.choice(("weights", "steps", "full")),
    }
    if path == "/v1/whatif":
        tree |= {"top_k": rng.choice((1, 10, 100))}
    else:
        tree |= {"what_if": rng.choice((None, True, False)), "faithfulness": rng.random() < 0.3}
        tree |= {"target": rng.choice((None, None, "le chat", "", "good", odd_string(rng)))}
    return _json("POST", path, tree, rng, 0.4)


def _page(corpus: Corpus, rng: Random) -> Request:
    data = mutate_trace(corpus.traces[rng.choice(sorted(corpus.traces))], rng)
    try:
        trace: Any = json.loads(data)
    except ValueError:
        trace = {}
    tree = {"trace": trace, "format": rng.choice(("html", "html", "json", "svg", "png"))}
    if rng.random() < 0.4:
        tree["view"] = rng.choice(("alignment", "lines", "heads", "steps", "words", "history", odd_string(rng)))
    if tree["format"] in ("svg", "png") and rng.random() < 0.8:  # slow
        tree["format"] = "html"
    return _json("POST", "/v1/page", tree, rng, 0.1)


def _train(corpus: Corpus, rng: Random) -> Request:
    if rng.random() < 0.5:
        action = rng.choice(("", "/stop", "/resume", "/events"))
        id = rng.choice((JOB, JOB, quote(odd_string(rng), safe="")))
        return "POST" if action in ("/stop", "/resume") else "GET", f"/v1/train/{id}{action}", "", b""
    tree = rng.choice(({"world": "phrases"}, {"data": "a cat\tun chat\n", "minutes": 1}, {"data": odd_string(rng)}))
    return _json("POST", "/v1/train", tree, rng, 0.6)


def _libretranslate(corpus: Corpus, rng: Random) -> Request:
    tree: dict[str, Any] = {
        "q": rng.choice(("the cat", ["the cat", "a dog"], "")),
        "source": rng.choice(("en", "auto")),
    }
    tree |= {"target": "fr", "alternatives": rng.choice((0, 1, 3)), "format": "text", "api_key": ""}
    if rng.random() < 0.6:
        return _json("POST", "/translate", tree, rng)
    pairs = [(name, str(value)) for name, value in mutate_tree(tree, rng).items()]
    return "POST", "/translate", "application/x-www-form-urlencoded", urlencode(pairs).encode()


def _get(corpus: Corpus, rng: Random) -> Request:
    choice = rng.random()
    if choice < 0.2:
        path = rng.choice(PLAIN_PATHS)
    elif choice < 0.4:
        path = rng.choice(ODD_PATHS)
    else:
        name = rng.choice((*MODELS, quote(odd_string(rng), safe="")))
        path = f"/v1/{rng.choice(('models', 'catalog'))}/{name}"
    if rng.random() < 0.5:
        path += f"?{urlencode({rng.choice(('q', 'token', 'x')): rng.choice((odd_string(rng), '1', 'item'))})}"
    return "GET", path, "", b""


# Answers to heedful.Client, which may speak to anything.

INFO: dict[str, Any] = {"name": "m", "task": "translate", "limits": {"items": 128}}
RECORD = {
    "text": "le chat",
    "outputs": [{"text": "le chat", "score": -1.0}],
    "confidence": 0.5,
    "unlike_training": False,
}
ANSWERS: dict[str, Any] = {
    "models": {"models": [INFO]},
    "translate": {"outputs": [RECORD]},
    "explain": {"outputs": [RECORD]},
    "stream": None,
    "classify": {"outputs": [{"text": "x", "label": "good", "p": 0.9, "words": ["x"], "weights": [1.0]}]},
    "read": {"outputs": [{"words": [{"word": "x", "bits": 1.0}]}]},
    "recommend": {"outputs": [{"items": [{"id": "1", "title": "x", "score": 1.0, "reasons": []}]}]},
    "trace": None,
    "trace_change": None,
}  # fmt: skip
STREAM = b'event: word\ndata: {"word": "le"}\n\nevent: output\ndata: {"text": "le chat"}\n\nevent: done\ndata: {}\n\n'


def client_case(corpus: Corpus, rng: Random) -> Case:
    """Return an answer to a request of the client, with its status, and that to its first question."""
    verb = rng.choice(tuple(ANSWERS))
    info: Any = INFO | {"task": verb if verb in ("classify", "read", "recommend") else "translate"}
    info = info if rng.random() < 0.8 else mutate_tree(info, rng)
    if verb == "stream":
        body = mutate_bytes(STREAM, rng, rng.choice((1, 2)))
    elif verb.startswith("trace"):
        data = mutate_trace(corpus.traces[rng.choice(sorted(corpus.traces))], rng)
        body = data if verb == "trace" else b'{"before": %s, "after": %s}' % (data, data)
    else:
        body = json.dumps(mutate_tree(ANSWERS[verb], rng, rng.choice((1, 1, 2)))).encode()
    if rng.random() < 0.1:
        body = rng.choice((b"", b"<html>", b"[]", b"null", b"\xff", b"[" * 5_000, mutate_bytes(body, rng)))
    status = rng.choice((200, 200, 200, 200, 204, 303, 404, 422, 500, 504))
    headers = {
        rng.choice(("content-type", "location", "content-encoding", "x")): rng.choice(
            ("text/html", "gzip", "http://evil.example/")
        )
    }
    answer = {"status": status, "headers": headers if rng.random() < 0.2 else {}, "info": info}
    return Case("client", ("client", verb, json.dumps(answer)), stdin=body, private=True)
