"""The studio: the server with one page, one script and one style sheet, built from `studio/` at installation."""

from __future__ import annotations

import base64
import hashlib
import socket
import sys
import webbrowser
from pathlib import Path

import matplotlib
from fastapi import APIRouter, FastAPI
from starlette.responses import Response

from heedful.errors import ServeError, TraceError
from heedful.serve import training_jobs
from heedful.serve.app import create_app
from heedful.serve.problems import ProblemError
from heedful.serve.settings import ServeSettings
from heedful.viz.open_page import has_screen
from heedful.viz.page import read_built

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self';"
    " frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>heedful studio</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/studio/studio.css">
</head>
<body>
<div id="studio"><noscript>The studio needs JavaScript.</noscript></div>
<script src="/studio/studio.js"></script>
</body>
</html>
"""
PORT = 8765  # of links to the studio in lessons; where it is taken, any free one
RELAY = 'location.replace("/" + location.hash)'
RELAY_PAGE = f'<!doctype html><html lang="en"><title>heedful studio</title><script>{RELAY}</script></html>'
RELAY_HASH = base64.b64encode(hashlib.sha256(RELAY.encode()).digest()).decode()
FILES = {
    "studio.js": "text/javascript",
    "studio.css": "text/css",
    "studio.vi.json": "application/json",
    "studio.zh.json": "application/json",
}
SAMPLE = "sample.jpg"
router = APIRouter(include_in_schema=False)


@router.get("/")
async def page() -> Response:
    """Return the page."""
    return Response(PAGE, media_type="text/html", headers={"content-security-policy": POLICY})


@router.get("/open")
async def relay() -> Response:
    """Lead from a link on a page of another site to the studio.

    The browser sends the cookie of the session only with navigation that begins on a page of this server.
    """
    policy = f"default-src 'none'; script-src 'sha256-{RELAY_HASH}'; frame-ancestors 'none'; base-uri 'none'"
    return Response(RELAY_PAGE, media_type="text/html", headers={"content-security-policy": policy})


@router.get(f"/studio/{SAMPLE}")
async def sample() -> Response:
    """Return a picture to begin with: the portrait of Grace Hopper (public domain) that matplotlib comes with."""
    try:
        content = (Path(matplotlib.get_data_path()) / "sample_data" / "grace_hopper.jpg").read_bytes()
    except OSError:
        raise ProblemError(404, "no-sample", "matplotlib was installed without its sample data") from None
    return Response(content, media_type="image/jpeg")


@router.get("/studio/{name}")
async def file(name: str) -> Response:
    """Return the script, the style sheet, or the texts in a language."""
    if name not in FILES:
        return Response("there is no such file", status_code=404, media_type="text/plain")
    return Response(read_built(name), media_type=FILES[name])


def create_studio(settings: ServeSettings) -> FastAPI:
    """Return the server with the studio; raise ServeError if it was not built when heedful was installed."""
    try:
        for name in FILES:
            read_built(name)
    except TraceError as error:
        raise ServeError(str(error)) from None
    app = create_app(settings)
    training_jobs.add_jobs(app)
    app.include_router(router)
    return app


def free_port(preferred: int = PORT) -> int:
    """Return the preferred port, or 0 (any free one) if something else listens there."""
    try:
        socket.create_server(("127.0.0.1", preferred)).close()
    except OSError:
        return 0
    return preferred


def open_studio(address: str, browser: bool = True) -> None:
    """Print the address, whose token lets a browser in, and open it where there is a screen."""
    print(f"studio: {address}\nOpen this address in a browser; Ctrl-C ends the studio.", file=sys.stderr, flush=True)
    if browser and has_screen():
        webbrowser.open(address)
