"""Who may come in, and how: checks before any route sees a request, as plain ASGI.

Against DNS rebinding the Host header has to be a known name; pages of other origins are refused by their Origin header;
a server with keys wants one of them, compared in constant time. Bodies are bounded in bytes and in time.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import math
import re
import secrets
from collections import OrderedDict
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from time import monotonic

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heedful.serve.problems import ProblemError, problem_response
from heedful.serve.settings import LOOPBACK_NAMES, ServeSettings
from heedful.serve.statistics import Statistics

OPEN_PATHS = ("/health", "/ready", "/open")  # without a key: for load balancers, and a link to the studio
COOKIE = "heedful_session"
MAX_BUCKETS = 10_000  # clients whose rate is remembered
SECURITY_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "cache-control": "no-store",
}
ENCODED_HEADERS = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
log = logging.getLogger("heedful.serve.access")


class RequestContext:
    """Gives every request an id, security headers, a place in the statistics and a line in the log."""

    def __init__(self, app: ASGIApp, statistics: Statistics) -> None:
        self.app, self.statistics = app, statistics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        scope["request_id"] = given if REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        begin, status = monotonic(), 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = list(message["headers"])
                present = {name.lower() for name, _ in headers}
                headers += [header for header in ENCODED_HEADERS if header[0] not in present]
                message["headers"] = [*headers, (b"x-request-id", scope["request_id"].encode())]
            await send(message)

        self.statistics.in_progress(1)
        try:
            await self.app(scope, receive, send_with_headers)
        finally:
            seconds = monotonic() - begin
            self.statistics.in_progress(-1)
            route = getattr(scope.get("route"), "path", "other")
            self.statistics.request(route, status, seconds)
            fields = {
                "request_id": scope["request_id"],
                "method": scope["method"] if scope["method"].isalpha() else "other",
                "path": route,
                "status": status,
                "ms": round(1000 * seconds, 1),
                **scope.get("log_fields", {}),
            }
            log.info("request", extra={"fields": fields})


class Guard:
    """Refuses requests of other hosts and origins, without a key, or too many of them."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self.app, self.settings = app, settings
        self.hosts = {name.lower() for name in (*LOOPBACK_NAMES, settings.host, *settings.allowed_hosts)}
        self.buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            self._check_host(headers)
            allowed_origin = self._check_origin(scope, headers)
            if scope["type"] == "http" and scope["method"] == "OPTIONS" and allowed_origin:
                await _preflight(allowed_origin)(scope, receive, send)
                return
            self._check_key(scope, headers)
        except ProblemError as problem:
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
                return
            await problem_response(problem, scope.get("request_id"))(scope, receive, send)
            return
        await self.app(scope, receive, _with_origin(send, allowed_origin))

    def _check_host(self, headers: Headers) -> None:
        """Against DNS rebinding: a page of evil.example that resolves to this machine sends its own name as Host."""
        if len(headers.getlist("host")) != 1 or host_name(headers["host"]) not in self.hosts:
            raise ProblemError(
                421, "wrong-host", "this server is not known by the name in the Host header; --allow-host adds names"
            )

    def _check_origin(self, scope: Scope, headers: Headers) -> str:
        """Refuse pages of other origins; return the origin that CORS allows, or nothing."""
        origin = headers.get("origin")
        if origin in self.settings.origins:
            return str(origin)
        secure = "https" if scope["scheme"] in ("https", "wss") else "http"
        if origin is not None and origin.lower() != f"{secure}://{headers['host'].lower()}":
            raise ProblemError(
                403, "wrong-origin", "pages of other origins may not call this server; --origin adds them"
            )
        if origin is None and headers.get("sec-fetch-site") in ("cross-site", "same-site") and _changes(scope):
            raise ProblemError(
                403, "wrong-origin", "pages of other origins may not call this server; --origin adds them"
            )
        return ""

    def _check_key(self, scope: Scope, headers: Headers) -> None:
        if scope["path"] in OPEN_PATHS:
            return
        settings, key = self.settings, _bearer(headers)
        if settings.keys:
            if not any_equal(key, settings.keys) and not self._has_session(headers):
                raise ProblemError(
                    401,
                    "no-key",
                    "this server wants a key: Authorization: Bearer KEY",
                    {"WWW-Authenticate": 'Bearer realm="heedful"'},
                )
        elif settings.session_token and scope["path"] != "/session" and not self._may_enter(headers, key):
            raise ProblemError(401, "no-session", "open the address that the server printed, with its token")
        self._check_rate(key or str((scope.get("client") or ("",))[0]))

    def _may_enter(self, headers: Headers, key: str) -> bool:
        return self._has_session(headers) or any_equal(key, [self.settings.session_token])

    def _has_session(self, headers: Headers) -> bool:
        token = self.settings.session_token
        return bool(token) and any_equal(_cookie(headers), [token])

    def _check_rate(self, client: str) -> None:
        """Count a request of a key (or of an address, without keys): a bucket that refills with time."""
        rate = self.settings.rate
        if not rate:
            return
        now = monotonic()
        tokens, before = self.buckets.pop(client, (float(rate), now))
        tokens = min(float(rate), tokens + (now - before) * rate / 60)
        self.buckets[client] = (tokens - 1 if tokens >= 1 else tokens, now)
        while len(self.buckets) > MAX_BUCKETS:
            self.buckets.popitem(last=False)
        if tokens < 1:
            seconds = math.ceil((1 - tokens) * 60 / rate)
            detail = f"more than {rate:,} requests per minute; try again in {seconds} s"
            raise ProblemError(429, "too-many-requests", detail, {"Retry-After": str(seconds)})


class BodyLimit:
    """Bounds the bytes of a body, announced or not, the time in which it has to arrive, and that of reading answers."""

    def __init__(self, app: ASGIApp, most: int, seconds: float) -> None:
        self.app, self.most, self.seconds = app, most, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "0")
        too_long = ProblemError(
            413, "too-large", f"the request has more than {self.most:,} bytes", {"Connection": "close"}
        )
        if announced.isdecimal() and int(announced[:20]) > self.most:
            await problem_response(too_long, scope.get("request_id"))(scope, receive, send)
            return
        deadline, size, complete = asyncio.get_running_loop().time() + self.seconds, 0, False

        async def receive_bounded() -> Message:
            nonlocal size, complete
            if complete:
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                detail = f"the request did not arrive within {self.seconds:g} s"
                raise ProblemError(408, "slow", detail, {"Connection": "close"}) from None
            size += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if size > self.most:
                raise too_long
            return message

        async def send_bounded(message: Message) -> None:
            async with asyncio.timeout(self.seconds):  # a client that does not read
                await send(message)

        await self.app(scope, receive_bounded, send_bounded)


def host_name(host: str) -> str:
    """Return the name in a Host header, without the port.

    >>> host_name("LocalHost:8000"), host_name("[::1]:80")
    ('localhost', '[::1]')
    """
    name, _, port = host.rpartition(":")
    return (name if name and port.isdecimal() else host).lower()


def any_equal(key: str, keys: Iterable[str]) -> bool:
    """Return whether a key is one of several; how long it takes does not depend on which one."""
    return sum(hmac.compare_digest(key.encode(), known.encode()) for known in keys) > 0


def _bearer(headers: Headers) -> str:
    scheme, _, key = headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def _cookie(headers: Headers) -> str:
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if cookie is None else cookie.value


def _changes(scope: Scope) -> bool:
    return scope["type"] == "websocket" or scope["method"] not in ("GET", "HEAD", "OPTIONS")


def _with_origin(send: Send, origin: str) -> Send:
    """Return a `send` that tells the browser which origin may read the response; none by default."""
    if not origin:
        return send

    async def send_with_origin(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["access-control-allow-origin"], headers["vary"] = origin, "Origin"
            headers["cross-origin-resource-policy"] = "cross-origin"
        await send(message)

    return send_with_origin


def _preflight(origin: str) -> Response:
    headers = {
        "access-control-allow-methods": "GET, POST",
        "access-control-allow-headers": "authorization, content-type, x-request-id",
        "access-control-max-age": "600",
    }
    return Response(status_code=204, headers={"access-control-allow-origin": origin, "vary": "Origin", **headers})
