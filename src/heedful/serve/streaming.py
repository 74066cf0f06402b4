"""Server-sent events: words as they are written, then each output.

Greedy search and sampling know a word when the next one begins. In beam search a word is sent as soon as all hypotheses
share it: it cannot change any more. Several outputs per input (`n_best`) are sent when they are complete.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from fastapi import Request
from pydantic_core import to_json
from starlette.responses import Response, StreamingResponse

from heedful.config import DecodingOptions
from heedful.decoding import StopCondition
from heedful.serve.problems import as_problem
from heedful.serve.requests import GenerateRequest
from heedful.serve.servables import Item, TextServable
from heedful.serve.state import ServerState, get_state, take_seconds

Decode = Callable[[Sequence[int]], str]


def event(name: str, content: Any) -> bytes:
    """Return a server-sent event.

    >>> event("word", {"text": "Le"})
    b'event: word\\ndata: {"text":"Le"}\\n\\n'
    """
    return f"event: {name}\ndata: ".encode() + to_json(content, inf_nan_mode="null") + b"\n\n"


class WordListener(StopCondition):
    """Passes on the words of an output as they become final."""

    listens = True

    def __init__(
        self, stop: StopCondition, decode: Callable[[Sequence[int]], str], emit: Callable[[str], None]
    ) -> None:
        super().__init__(should_stop=stop.is_met)
        self.decode, self.emit, self.sent = decode, emit, 0

    def report(self, certain: Callable[[], Sequence[int]]) -> None:
        words = self.decode(certain()).split()
        for word in words[self.sent : -1]:  # the last one may go on
            self.emit(word)
        self.sent = max(self.sent, len(words) - 1)


async def stream_response(request: Request, task: str, body: GenerateRequest) -> Response:
    """Return a response that sends words and outputs when they are there; errors before that are problem details."""
    state, values = get_state(request), dict(body.options)
    seconds = take_seconds(state, values)
    name = state.store.find(body.model, task)
    request.scope["log_fields"] = {"model": name, "inputs": len(body.inputs), "stream": True}
    state.batcher.admit(len(body.inputs))
    servable = await state.servable(name)
    assert isinstance(servable, TextServable)
    options = servable.parse_options(values, state.settings.limits)
    items = await state.prepare(servable, body.inputs)
    events: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def produce() -> None:
        try:
            async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
                for index, item in enumerate(items):
                    group.create_task(_stream_item(state, servable, item, options, body.alignments, index, events))
            events.put_nowait(event("done", {"model": name, "outputs": len(items)}))
        except TimeoutError:
            events.put_nowait(event("error", {"status": 504, "detail": f"stopped after {seconds:g} s"}))
        except ExceptionGroup as group_error:
            problem = as_problem(group_error.exceptions[0])
            events.put_nowait(event("error", {"status": problem.status, "detail": problem.detail}))
        finally:
            events.put_nowait(None)

    async def send_events() -> AsyncIterator[bytes]:
        producer = asyncio.ensure_future(produce())
        try:
            while (content := await events.get()) is not None:
                yield content
        finally:  # also when the client has left
            producer.cancel()

    return StreamingResponse(send_events(), media_type="text/event-stream")


async def _stream_item(
    state: ServerState,
    servable: TextServable,
    item: Item,
    options: DecodingOptions,
    alignments: bool,
    index: int,
    events: asyncio.Queue[bytes | None],
) -> None:
    """Compute one input by itself, and send its words and its record."""
    loop, words = asyncio.get_running_loop(), list[str]()

    def emit(word: str) -> None:  # in the thread of the model
        words.append(word)
        sent = event("word", {"index": index, "word": word, "text": " ".join(words)})
        loop.call_soon_threadsafe(events.put_nowait, sent)

    def work(payloads: Sequence[Any], stop: StopCondition) -> list[dict[str, Any]]:
        single = options.n_best == 1
        listener = WordListener(stop, servable.predictor.assets.target.decode, emit) if single else stop
        return servable.run(payloads, options, alignments, listener)

    (record,) = await state.batcher.run(work, [(None, item.payload, item.length)], joins=False)
    events.put_nowait(event("output", {"index": index, **record}))
