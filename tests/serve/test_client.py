"""Models of a server behave like those of `heedful.load`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import numpy as np
import pytest

import heedful
from heedful.errors import ArgumentError, DecodingTimeoutError, ServeError, TooLargeError
from serve.local import LocalServer, running
from serve.server import TEXTS, Server
from serve.test_api import picture


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[heedful.Client]:
    with heedful.Client(server.address) as connected:
        yield connected


def test_texts(client: heedful.Client) -> None:
    own: Any = heedful.load("en-fr")
    remote: Any = client.load()
    assert repr(remote) == "<heedful model en-fr of a server: translate>"
    assert remote(TEXTS[0]) == own(TEXTS[0])
    assert remote(TEXTS, beam=3) == own(TEXTS, beam=3)
    assert remote(TEXTS[0], n_best=2) == own(TEXTS[0], n_best=2)
    mine, other = own.explain(TEXTS[0]), remote.explain(TEXTS[0])
    assert (mine.text, mine.unlike_training) == (other.text, other.unlike_training)
    assert mine.confidence == pytest.approx(other.confidence, rel=1e-4)
    assert set(mine.to_dict()) == set(other.to_dict())
    assert list(remote.stream(TEXTS[0])) == own(TEXTS[0]).split()


def test_labels_surprisals_and_captions(client: heedful.Client) -> None:
    question = "where is my card"
    for name in ("intents", "novels"):
        assert np.shape(client.load(name)(question)) == np.shape(heedful.load(name)(question))
    intents: Any = client.load(task="classify")
    own: Any = heedful.load("intents")
    assert intents.explain(question).words == own.explain(question).words
    assert intents([question, ""]) == [own(question), ""]
    photos: Any = client.load("photos")
    assert photos(picture()) == photos([np.zeros((8, 8, 3), np.uint8), picture()])[1]


def test_traces(client: heedful.Client) -> None:
    remote = client.load("en-fr")
    trace = remote.trace(TEXTS[0], detail="weights", what_if=False, beam=1)
    assert trace.decoding["method"] == "greedy"
    before, after = remote.trace_change(TEXTS[0], "uniform", detail="weights")
    assert after.parent == before.id
    assert client.load("photos").trace(picture(), detail="weights", what_if=False).source.image is not None


def test_errors_are_those_of_heedful(client: heedful.Client, server: Server) -> None:
    remote = client.load("en-fr")
    with pytest.raises(ArgumentError, match="did you mean"):
        remote("a", beem=3)
    with pytest.raises(TooLargeError, match="at most 1,000"):
        remote("word " * 1_200)
    with pytest.raises(ArgumentError, match="did you mean"):
        client.load("en-ff")
    with pytest.raises(ServeError):
        heedful.Client("http://127.0.0.1:9").models()


INFO = {"name": "m", "task": "translate", "limits": {"items": 128}}
STREAM = "event: word\ndata: {}\n\n"
FOREIGN = [
    (INFO, 200, "<html>"), (INFO, 200, "[]"), (INFO, 200, '{"outputs": []}'), (INFO, 200, '{"outputs": [{}]}'),
    (INFO, 200, "[" * 5_000), (INFO, 303, "{}"), (INFO, 500, "[" * 5_000), (INFO, 200, b"\xff"),
    (INFO | {"limits": {"items": 0}}, 200, "{}"), (INFO | {"task": ["x"]}, 200, "{}"),
    (INFO | {"name": None}, 200, "{}"), ([], 200, "{}"),
]  # fmt: skip


def foreign_client(info: Any, status: int, content: str | bytes) -> heedful.Client:
    """Return a client of a server that answers anything."""

    def respond(request: httpx.Request) -> httpx.Response:
        known = request.method == "GET" and request.url.path == "/v1/models/m"
        return httpx.Response(200, json=info) if known else httpx.Response(status, content=content)

    client = heedful.Client("http://127.0.0.1:8000")
    client._http = httpx.Client(transport=httpx.MockTransport(respond), base_url=client.address)
    return client


@pytest.mark.parametrize(("info", "status", "content"), FOREIGN)
def test_an_answer_of_something_else_is_an_error_of_heedful(info: Any, status: int, content: str | bytes) -> None:
    client = foreign_client(info, status, content)
    uses: list[Callable[[Any], object]] = [lambda m: m("a"), lambda m: m.explain("a"), lambda m: m.trace("a")]
    for use in uses:
        with pytest.raises(ServeError, match="is it a server of heedful"):
            use(client.load("m"))
    with pytest.raises(ServeError):
        client.models()


@pytest.mark.parametrize("content", [STREAM, STREAM.replace("{}", "x"), STREAM.replace("word", "output")])
def test_a_foreign_stream_is_an_error_of_heedful(content: str) -> None:
    remote: Any = foreign_client(INFO, 200, content).load("m")
    with pytest.raises(ServeError, match="is it a server of heedful"):
        list(remote.stream("a"))


def test_a_name_of_a_model_stays_a_name() -> None:
    with pytest.raises(ArgumentError, match="answered 404"):
        foreign_client(INFO, 404, "").load("../models/m")  # and does not become the address of another page


def test_more_inputs_than_a_request_takes_and_a_time_limit(folder: Path, local: LocalServer) -> None:
    with heedful.Client(f"http://127.0.0.1:{local.port}") as connected:
        remote = connected.load("m")
        lines = [f"the {'black ' * (n % 4)}cat" for n in range(300)]
        assert remote(lines, beam=1, max_length=3) == heedful.load(folder)(lines, beam=1, max_length=3)
        with pytest.raises(DecodingTimeoutError, match="longer than"):
            remote("the cat", max_seconds=0.01, beam=32, max_length=1_000)


def test_a_busy_server_is_asked_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("heedful.serve.client.sleep", waits.append)
    with running(folder) as busy, heedful.Client(f"http://127.0.0.1:{busy.port}") as connected:
        remote = connected.load("m")
        busy.state.batcher.draining = True
        with pytest.raises(ServeError, match="shutting down"):
            remote("the cat")
        assert waits == [5.0] * 5
