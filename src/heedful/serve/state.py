"""What the routes of one application share: settings, models, batcher, statistics."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Hashable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, TypeVar

from fastapi import Request
from pydantic_core import to_json
from starlette.responses import Response

from heedful.decoding import StopCondition
from heedful.serve.batcher import Batcher
from heedful.serve.model_store import ModelStore
from heedful.serve.problems import CLIENT_CLOSED, ProblemError, too_large, wrong_request
from heedful.serve.servables import Item, Servable
from heedful.serve.settings import ServeSettings
from heedful.serve.statistics import Statistics

MANY_CHARACTERS = 4_000  # inputs with more of them are checked in a thread, so that other requests go on
Result = TypeVar("Result")


@dataclass(frozen=True)
class ServerState:
    """Everything that lives as long as the application."""

    settings: ServeSettings
    store: ModelStore
    batcher: Batcher
    statistics: Statistics
    readiness: dict[str, Any]  # "ready", and "error" if warming up failed

    async def servable(self, name: str) -> Servable:
        """Return a model; it is loaded in a thread if it is not in memory."""
        loaded = self.store.get_loaded(name)
        return loaded if loaded is not None else await asyncio.to_thread(self.store.get, name)

    async def prepare(self, servable: Servable, inputs: Sequence[Any]) -> list[Item]:
        """Check inputs against the limits, and convert them for the model."""
        limits = self.settings.limits
        if len(inputs) > limits.items:
            raise too_large(f"inputs: {len(inputs):,} are too many; send at most {limits.items:,} per request")
        characters = sum(len(text) for text in inputs if isinstance(text, str))
        if characters > limits.characters:
            raise too_large(
                f"inputs: {characters:,} characters are too many; at most {limits.characters:,} per request"
            )
        if characters > MANY_CHARACTERS or any(not isinstance(text, str) for text in inputs):
            return await asyncio.to_thread(servable.prepare, inputs, limits)
        return servable.prepare(inputs, limits)

    async def compute(
        self, servable: Servable, items: Sequence[Item], options: Hashable, alignments: bool
    ) -> list[dict[str, Any]]:
        """Return a record per checked input, from batches that other requests may share."""

        def work(payloads: Sequence[Any], stop: StopCondition) -> list[dict[str, Any]]:
            return servable.run(payloads, options, alignments, stop)

        inputs = [
            ((servable, options, alignments, servable.bucket(item.length)), item.payload, item.length) for item in items
        ]
        return await self.batcher.run(work, inputs, servable.may_join(options))


def get_state(request: Request) -> ServerState:
    """Return the state of the application that a request is for."""
    state: ServerState = request.app.state.heedful
    return state


def take_seconds(state: ServerState, options: dict[str, Any]) -> float:
    """Remove the time limit from the options of a request, and return it: at most the server's."""
    most, seconds = state.settings.limits.seconds, options.pop("max_seconds", None)
    if seconds is None:
        return most
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < float("inf"):
        raise wrong_request(f"options.max_seconds={seconds!r}: expected a number of seconds above 0")
    return min(most, float(seconds))


def json_response(content: Any) -> Response:
    """Return a response in JSON; numbers that are not finite become null, as on the command line."""
    return Response(to_json(content, inf_nan_mode="null"), media_type="application/json")


async def while_connected(request: Request, work: Coroutine[Any, Any, Result], seconds: float) -> Result:
    """Return the result of some work; it is cancelled when the client leaves or the time is over."""
    task, begin = asyncio.ensure_future(work), monotonic()
    gone = asyncio.ensure_future(_wait_until_gone(request))
    try:
        await asyncio.wait({task, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        if gone.done():
            raise ProblemError(CLIENT_CLOSED, "cancelled", f"the client left after {monotonic() - begin:.1f} s")
        raise ProblemError(504, "timeout", f"the request took longer than {seconds:g} s and was stopped")
    finally:
        for unfinished in (task, gone):
            unfinished.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _wait_until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
