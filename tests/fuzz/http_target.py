"""The server and the studio in the worker: bytes in, bytes out, through uvicorn's parser; and what must hold then."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fuzz.http_requests import JOB, SESSION

STATUSES = (200, 204, 303, 307, 400, 401, 403, 404, 405, 408, 409, 413, 415, 421, 422, 431, 499, 503, 504)
OPEN = (b"/health", b"/ready", b"/open", b"/session")  # paths that are answered without a session
EVIL = re.compile(rb"^(?:host|origin):[ \t]*[^\r\n]*evil\.example[^\r\n]*\r?$", re.IGNORECASE | re.MULTILINE)
SECONDS, BODY_SECONDS = 10.0, 0.3
SETTLE = 15.0  # seconds until nothing is computed any more
FAILED = {"event": "failed", "detail": "there is no training here"}


class BrokenPromiseError(Exception):
    """Something that must not be in an answer; its text is the signature."""


class Transport(asyncio.Transport):
    """A connection that remembers what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.sent, self.closing = bytearray(), False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"peername": ("127.0.0.1", 50_000), "sockname": ("127.0.0.1", 8_000)}.get(name, default)

    def write(self, data: Any) -> None:
        self.sent += data

    def close(self) -> None:
        self.closing = True

    abort = close

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None:
        """Everything has been read."""

    resume_reading = pause_reading


class Process:
    """A training that fails at once."""

    returncode = 2

    @property
    def stdout(self) -> Any:
        async def lines() -> Any:
            yield json.dumps(FAILED).encode() + b"\n"

        return lines()

    async def wait(self) -> int:
        return self.returncode


class Errors(logging.Handler):
    """Keeps the errors that are logged."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.errors: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self.errors.append(error or BrokenPromiseError(f"logged: {record.getMessage()[:80]}"))


class Server:
    """A studio with all models of the corpus."""

    def __init__(self, scratch: Path) -> None:
        import uvicorn
        from uvicorn.server import ServerState

        from heedful.serve import studio, training_jobs
        from heedful.serve.settings import Limits, ServeSettings

        async def start_process(*_: Any, **__: Any) -> Process:
            return Process()

        training_jobs.asyncio.create_subprocess_exec = start_process  # type: ignore[attr-defined]
        self.scratch, self.loop, self.errors = scratch, asyncio.new_event_loop(), Errors()
        for name in ("heedful.serve", "uvicorn.error", "asyncio"):
            logging.getLogger(name).addHandler(self.errors)
            logging.getLogger(name).propagate = False
        folders = {path.name: str(path) for path in sorted((scratch / "served").iterdir())}
        limits = Limits(seconds=SECONDS, body_seconds=BODY_SECONDS)
        settings = ServeSettings(
            models=folders, threads=1, max_models=len(folders), session_token=SESSION, limits=limits
        )
        tempfile.tempdir = str(scratch / "jobs")
        self.app = studio.create_studio(settings)
        tempfile.tempdir = None
        self.state, self.jobs = self.app.state.heedful, self.app.state.training_jobs
        self.state.store.card("translate")["languages"] = ["en", "fr"]
        self.config, self.server_state = uvicorn.Config(self.app, log_config=None, ws="none"), ServerState()
        self.config.load()
        self.lifespan = self.app.router.lifespan_context(self.app)
        self.loop.run_until_complete(self._start())

    async def _start(self) -> None:
        await self.lifespan.__aenter__()
        while not self.state.readiness:
            await asyncio.sleep(0.01)

    def answer(self, raw: bytes) -> bytes:
        """Return everything that is sent back for the bytes of a connection."""
        from heedful.serve.training_jobs import Job

        folder = self.jobs.root / JOB
        folder.mkdir(exist_ok=True)
        self.jobs.jobs = {JOB: Job(JOB, folder, folder / "job.json", "failed", [FAILED])}
        self.errors.errors.clear()
        sent = self.loop.run_until_complete(self._exchange(raw))
        shutil.rmtree(self.jobs.root)
        self.jobs.root.mkdir()
        if self.errors.errors:
            raise self.errors.errors[0]
        return sent

    async def _exchange(self, raw: bytes) -> bytes:
        from heedful.serve.protocol import BoundedProtocol

        before, transport = asyncio.all_tasks(), Transport()
        protocol: Any = BoundedProtocol(self.config, self.server_state, {}, self.loop)
        protocol.connection_made(transport)
        protocol.data_received(raw)
        while not transport.closing:
            if protocol.cycle is None or (protocol.cycle.response_complete and not protocol.pipeline):
                break
            await asyncio.sleep(0.001)
        protocol.connection_lost(None)
        batcher, end = self.state.batcher, self.loop.time() + SETTLE
        while (asyncio.all_tasks() - before or batcher.waiting or batcher.running) and self.loop.time() < end:
            await asyncio.sleep(0.001)
        if batcher.waiting or batcher.running or batcher.groups:
            raise BrokenPromiseError("inputs stay in the queue of a request that has ended")
        if asyncio.all_tasks() - before:
            raise BrokenPromiseError("tasks stay behind a request that has ended")
        return bytes(transport.sent)


_servers: dict[Path, Server] = {}


def serve_request(scratch: Path) -> None:
    """Answer the request on standard input, and check the answer: exit code 0 for success, 2 for a problem."""
    if scratch not in _servers:
        _servers[scratch] = Server(scratch)
    raw = sys.stdin.buffer.read()
    check_answer(raw, _servers[scratch].answer(raw), str(scratch))


def check_answer(raw: bytes, sent: bytes, secret: str) -> None:
    """Raise BrokenPromiseError if an answer breaks a promise; end with its exit code."""
    head, _, body = sent.partition(b"\r\n\r\n")
    if not head:
        print("closed without an answer", file=sys.stderr)  # the head of the request was not complete
        sys.exit(2)
    status = int(head.split(None, 2)[1])
    if status not in STATUSES:
        raise BrokenPromiseError(f"status {status}")
    if secret.encode() in sent or os.path.realpath(secret).encode() in sent:
        raise BrokenPromiseError("a path of the server in an answer")
    if status < 400:
        _check_entry(raw)
    by_uvicorn = status in (400, 431) and b"content-security-policy" not in head
    if not by_uvicorn and status != 204:
        for name in (b"x-content-type-options: nosniff", b"content-security-policy: ", b"x-request-id: "):
            if name not in head.lower():
                raise BrokenPromiseError(f"no header {name.decode()}")
    if status >= 400:
        _check_problem(head, body, by_uvicorn, raw)
        print(f"{status}: {body[:500].decode('ascii', 'replace')}", file=sys.stderr)  # no body after HEAD
        sys.exit(2)
    if b"content-type: application/json" in head.lower() and not raw.startswith(b"HEAD"):
        json.loads(body, parse_constant=_refuse_constant)
    print(f"{status}, {len(body)} bytes")


def _check_entry(raw: bytes) -> None:
    """Only a request with the session's token, for this host and of no other origin, may be answered."""
    head = raw.partition(b"\r\n\r\n")[0]
    path = (raw.split(None, 2) + [b"", b""])[1].partition(b"?")[0]
    if SESSION.encode() not in head and path not in OPEN:
        raise BrokenPromiseError("an answer without a session")
    if EVIL.search(head):
        raise BrokenPromiseError("an answer to another host or origin")


def _check_problem(head: bytes, body: bytes, by_uvicorn: bool, raw: bytes) -> None:
    if by_uvicorn or raw.startswith(b"HEAD") or b"/studio/" in raw.split(b"\r\n", 1)[0]:
        return
    if b"application/problem+json" not in head:
        raise BrokenPromiseError("an error that is no problem")
    problem = json.loads(body, parse_constant=_refuse_constant)
    if not {"type", "title", "status", "detail"} <= set(problem):
        raise BrokenPromiseError("a problem that lacks a field")
    if len(problem["detail"]) > 2_100:
        raise BrokenPromiseError("a long detail")


def _refuse_constant(constant: str) -> None:
    raise BrokenPromiseError(f"{constant} in JSON")


def ask_client(arguments: Sequence[str]) -> None:
    """Let the client ask a server that answers as the case says."""
    import httpx2 as httpx

    from heedful.errors import HeedfulError
    from heedful.serve import client as module

    verb, answer, body = arguments[0], json.loads(arguments[1]), sys.stdin.buffer.read()

    def respond(request: Any) -> Any:
        if request.method == "GET" and verb != "models":
            return httpx.Response(200, content=json.dumps(answer["info"]))
        return httpx.Response(answer["status"], content=body, headers=answer["headers"])

    client = module.Client()
    client._http = httpx.Client(transport=httpx.MockTransport(respond), base_url="http://127.0.0.1:8000")
    try:
        print(repr(_use(client, verb))[:200])
    except HeedfulError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def _use(client: Any, verb: str) -> Any:
    if verb == "models":
        return client.models()
    model = client.load("m")
    if model.task == "recommend":
        return model(user=1)
    if verb == "stream":
        return list(model.stream("the cat"))
    if verb in ("explain", "trace"):
        return getattr(model, verb)("the cat")
    return model.trace_change("the cat", "uniform") if verb == "trace_change" else model("the cat")
