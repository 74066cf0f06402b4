"""Server-sent events: words are sent while the output is written, and together they are the output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from heedful.decoding import StopCondition
from heedful.serve.streaming import WordListener
from serve.local import LocalServer

LINE = "the black cat sleeps"


def events(local: LocalServer, body: Any) -> list[tuple[str, dict[str, Any]]]:
    with local.client.stream("POST", "/v1/translate", json=body) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        blocks = "".join(response.iter_text()).strip().split("\n\n")
    lines = [block.split("\n") for block in blocks]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in lines]


@pytest.mark.parametrize("options", [{"beam": 1}, {"beam": 4}, {"method": "sample", "seed": 2}])
def test_words_are_sent_before_their_output(local: LocalServer, options: dict[str, Any]) -> None:
    options = {**options, "max_length": 12}
    received = events(local, {"inputs": [LINE, LINE[:9]], "options": options, "stream": True})
    assert received[-1] == ("done", {"model": "m", "outputs": 2})
    plain = local.post("/v1/translate", {"inputs": [LINE, LINE[:9]], "options": options}).json()["outputs"]
    for index in range(2):
        names = [name for name, content in received if content.get("index") == index]
        assert names[-1] == "output"
        assert set(names[:-1]) <= {"word"}
        words = [content["word"] for name, content in received if name == "word" and content["index"] == index]
        (output,) = (content for name, content in received if name == "output" and content["index"] == index)
        assert output["text"] == plain[index]["text"]
        assert output["text"].split()[: len(words)] == words
    if options.get("beam") != 4:  # hypotheses of random weights share few words
        assert any(name == "word" for name, _ in received)


def test_a_word_is_sent_when_the_next_one_begins() -> None:
    sent: list[str] = []
    listener = WordListener(StopCondition(), lambda tokens: " ".join(map(str, tokens)), sent.append)
    for count in (1, 2, 2, 4):
        listener.report(lambda count=count: list(range(count)))  # type: ignore[misc]
    assert sent == ["0", "1", "2"]


def test_errors_before_and_after_the_first_event(local: LocalServer) -> None:
    body = {"inputs": [LINE], "stream": True}
    assert local.post("/v1/translate", {**body, "options": {"beem": 1}}).status_code == 422
    slow = {"max_seconds": 0.01, "beam": 32, "max_length": 1_000}
    name, content = events(local, {**body, "options": slow})[-1]
    assert (name, content["status"]) == ("error", 504)


def test_a_stream_that_is_left_frees_its_place(local: LocalServer, folder: Path) -> None:
    body = {"inputs": [LINE], "options": {"beam": 32, "max_length": 1_000}, "stream": True}
    with local.client.stream("POST", "/v1/translate", json=body):
        pass
    local.wait_until(lambda: local.state.batcher.waiting + local.state.batcher.running == 0)
