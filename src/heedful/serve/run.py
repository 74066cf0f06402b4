"""Run a server: one process or several, which end in an orderly way when they are told to."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from heedful.errors import ServeError
from heedful.serve.app import create_app
from heedful.serve.logs import log_config
from heedful.serve.protocol import BoundedProtocol
from heedful.serve.settings import ServeSettings, check_settings
from heedful.serve.statistics import FOLDER_VARIABLE

FACTORY = "heedful.serve.app:create_from_environment"
BACKLOG = 1_024
MEMORY_FOLDER = "/dev/shm"  # noqa: S108 - of Linux; the folder in it has a random name and belongs to this user
OnStart = Callable[[str], None]


def print_address(address: str) -> None:
    """Print where the server listens."""
    print(f"listening on {address} (description: {address}/openapi.json)", file=sys.stderr, flush=True)


def run(
    settings: ServeSettings,
    make_app: Callable[[ServeSettings], FastAPI] = create_app,
    on_start: OnStart = print_address,
) -> None:
    """Serve until SIGTERM or Ctrl-C; `on_start` is told the address when connections are accepted.

    `make_app` can add to the application; it is used with one worker only.
    """
    check_settings(settings)
    opened = _open_socket(settings)
    host, port = opened.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    several = settings.workers > 1
    with ExitStack() as stack:
        if several:
            folder = stack.enter_context(_shared_folder())
            os.environ.update({**settings.to_environment(), FOLDER_VARIABLE: folder})
        config = uvicorn.Config(
            FACTORY if several else make_app(settings),
            factory=several,
            workers=settings.workers,
            log_config=log_config(),
            access_log=False,
            server_header=False,
            proxy_headers=False,
            http=BoundedProtocol,
            ws="none",
            backlog=BACKLOG,
            limit_concurrency=settings.limits.connections,
            timeout_keep_alive=10,
            timeout_graceful_shutdown=max(1, round(settings.drain)),
        )
        server = uvicorn.Server(config)
        on_start(address)
        if several:
            Multiprocess(config, sockets=[opened]).run()
        else:
            server.run(sockets=[opened])


def _shared_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder in which the workers add up their numbers: in memory if possible, where no disk is full."""
    in_memory = os.access(MEMORY_FOLDER, os.W_OK | os.X_OK)
    try:
        return tempfile.TemporaryDirectory(prefix="heedful-serve-", dir=MEMORY_FOLDER if in_memory else None)
    except OSError as error:
        raise ServeError(f"--workers: no place for the numbers of the workers: {error.strerror or error}") from None


def _open_socket(settings: ServeSettings) -> socket.socket:
    """Return a listening socket; raise ServeError if the address is taken or is not this machine's."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        opened = socket.create_server((settings.host.strip("[]"), settings.port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ServeError(f"--host {settings.host} --port {settings.port}: cannot listen there: {reason}") from None
    opened.set_inheritable(True)
    return opened
