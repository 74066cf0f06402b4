"""A server in a thread of the test process, over real sockets, with a small model: quick to start with any settings."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import uvicorn
from fastapi import FastAPI

from heedful.serve.app import create_app
from heedful.serve.protocol import BoundedProtocol
from heedful.serve.settings import ServeSettings
from heedful.serve.state import ServerState


class LocalServer:
    """A running server."""

    def __init__(self, app: FastAPI, server: uvicorn.Server, port: int) -> None:
        self.app, self.server, self.port = app, server, port
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)

    @property
    def state(self) -> ServerState:
        state: ServerState = self.app.state.heedful
        return state

    def post(self, path: str, content: Any = None, **options: Any) -> httpx.Response:
        return self.client.post(path, json=content, **options)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.client.get(path, **options)

    def raw(self, data: bytes, wait: bool = True) -> bytes:
        """Send bytes on a connection of their own; return everything that comes back until it is closed."""
        with socket.create_connection(("127.0.0.1", self.port), 30) as connection:
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                connection.sendall(data)
            received = b""
            with contextlib.suppress(ConnectionResetError):  # closed before everything was read
                while wait and (part := connection.recv(65_536)):
                    received += part
            return received

    def wait_until(self, condition: Any) -> None:
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.005)


@contextmanager
def running(folder: Path | None = None, ready: bool = True, **settings: Any) -> Iterator[LocalServer]:
    """Run an application, and wait until it is ready or not; `folder` is the folder of its only model, called "m"."""
    models = {} if folder is None else {"m": str(folder)}
    app = create_app(ServeSettings(**{"models": models, "threads": 1, **settings}))
    config = uvicorn.Config(app, http=BoundedProtocol, ws="none", log_config=None, access_log=False)
    opened = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(config)

    def serve() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(server.serve([opened]))

    thread = threading.Thread(target=serve)
    thread.start()
    local = LocalServer(app, server, opened.getsockname()[1])
    try:
        local.wait_until(lambda: server.started)
        local.wait_until(lambda: local.state.readiness or not ready)
        yield local
    finally:
        local.client.close()
        server.should_exit = True
        thread.join()
        opened.close()
