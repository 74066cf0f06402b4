"""Who may come in: each rule refuses a request that is answered without it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from command_line import complaint
from heedful.serve.middleware import SECURITY_HEADERS, any_equal
from heedful.serve.settings import ServeSettings, check_settings
from serve.local import LocalServer, running

KEY, OTHER_KEY = "a-key-that-nobody-guesses", "another-key-of-another-user"
BODY = {"inputs": ["the black cat"]}


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost.evil", ""])
def test_other_hosts_are_refused_against_dns_rebinding(local: LocalServer, host: str) -> None:
    answer = local.post("/v1/translate", BODY, headers={"host": host})
    assert answer.status_code in (400, 421)
    assert "outputs" not in answer.text


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8000"])
def test_names_of_this_machine_are_known(local: LocalServer, host: str) -> None:
    assert local.get("/health", headers={"host": host}).status_code == 200


def test_two_host_headers_are_refused(local: LocalServer) -> None:
    answer = local.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
    assert b" 421 " in answer.partition(b"\r\n")[0]


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1", "file://", ""])
def test_pages_of_other_origins_are_refused(local: LocalServer, origin: str) -> None:
    answer = local.post("/v1/translate", BODY, headers={"origin": origin})
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


def test_forms_of_other_sites_are_refused(local: LocalServer) -> None:
    answer = local.post("/v1/translate", BODY, headers={"sec-fetch-site": "cross-site"})
    assert answer.status_code == 403


def test_the_servers_own_pages_may_call_it(local: LocalServer) -> None:
    own = {"origin": f"http://127.0.0.1:{local.port}", "sec-fetch-site": "same-origin"}
    assert local.post("/v1/translate", BODY, headers=own).status_code == 200


def test_there_is_no_cors_unless_configured(local: LocalServer, folder: Path) -> None:
    page = {"origin": "https://page.example"}
    ask = {**page, "access-control-request-method": "POST"}
    assert local.client.options("/v1/translate", headers=ask).status_code == 403
    with running(folder, origins=("https://page.example",)) as open_server:
        asked = open_server.client.options("/v1/translate", headers=ask)
        assert asked.status_code == 204
        answer = open_server.post("/v1/translate", BODY, headers=page)
        for headers in (asked.headers, answer.headers):
            assert headers["access-control-allow-origin"] == "https://page.example"
            assert "access-control-allow-credentials" not in headers
        assert open_server.post("/v1/translate", BODY, headers={"origin": "https://x.example"}).status_code == 403


def test_keys_and_rates(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.serve.middleware.monotonic", lambda: 100.0)
    with running(folder, keys=(KEY, OTHER_KEY), rate=3) as guarded:
        for header in ("", KEY, f"Basic {KEY}", "Bearer", f"Bearer {KEY[:-1]}", f"Bearer {KEY}x", "Bearer \u00e9"):
            headers = {"authorization": header.encode("latin-1")}
            refused = guarded.post("/v1/translate", BODY, headers=headers)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"].startswith("Bearer")
        assert guarded.get("/metrics").status_code == guarded.get("/openapi.json").status_code == 401
        assert guarded.get("/health").status_code == 200
        with_key = {"authorization": f"Bearer {KEY}"}
        statuses = [guarded.post("/v1/translate", BODY, headers=with_key).status_code for _ in range(4)]
        assert statuses == [200, 200, 200, 429]
        limited = guarded.post("/v1/translate", BODY, headers=with_key)
        assert 1 <= int(limited.headers["retry-after"]) <= 20
        other = {"authorization": f"bearer {OTHER_KEY}"}
        assert guarded.post("/v1/translate", BODY, headers=other).status_code == 200


def test_keys_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append(other)
        return one == other

    monkeypatch.setattr("hmac.compare_digest", compare)
    assert any_equal(KEY, [KEY, OTHER_KEY])
    assert compared == [KEY.encode(), OTHER_KEY.encode()]


def test_a_browser_exchanges_the_token_for_a_cookie(folder: Path) -> None:
    with running(folder, session_token=KEY) as studio:
        assert studio.post("/v1/translate", BODY).status_code == 401
        assert studio.get("/session", params={"token": "wrong"}).status_code == 401
        answer = studio.get("/session", params={"token": KEY})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert studio.post("/v1/translate", BODY).status_code == 200


def test_every_answer_has_the_usual_headers(local: LocalServer) -> None:
    for answer in (local.get("/health"), local.get("/nothing"), local.get("/health", headers={"host": "evil"})):
        for name, value in SECURITY_HEADERS.items():
            assert answer.headers[name] == value
        policy = answer.headers["content-security-policy"].split("; ")
        assert {"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"} <= set(policy)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "server" not in answer.headers or "uvicorn" in answer.headers["server"]


def test_another_address_than_loopback_needs_a_key() -> None:
    assert "requests need a key" in complaint("serve", "--host", "0.0.0.0")
    assert "at least 16 ASCII characters" in complaint("serve", "--host", "0.0.0.0", "--key", "short")
    assert '"*" is refused' in complaint("serve", "--origin", "*")
    check_settings(ServeSettings(host="0.0.0.0", keys=(KEY,)))


@pytest.mark.parametrize("text", ["http://127.0.0.1:9/x.png", "file:///etc/passwd", "/etc/passwd"])
def test_no_address_and_no_path_is_opened(server: Any, text: str) -> None:
    fields = {"request": "{}", "file": text}
    answer = server.client.post("/v1/caption", data=fields)
    assert answer.status_code == 422
    assert server.post("/v1/trace", {"input": text, "model": "photos"}).status_code == 422
    assert server.post("/v1/translate", {"inputs": ["a"], "model": text}).status_code == 404


def test_bodies_are_bounded_in_bytes(folder: Path) -> None:
    with running(folder, limits={"body_bytes": 1_000}) as bounded:
        announced = bounded.post("/v1/translate", {"inputs": ["a" * 1_000]})
        chunks = iter([b'{"inputs":["', *[b"a" * 100] * 20, b'"]}'])
        json = {"content-type": "application/json"}
        counted = bounded.client.post("/v1/translate", content=chunks, headers=json)
        assert [announced.status_code, counted.status_code] == [413, 413]
        assert counted.headers["content-type"] == "application/problem+json"


def test_bodies_are_bounded_in_time(folder: Path) -> None:
    head = b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with running(folder, limits={"body_seconds": 0.3}) as bounded:
        answer = bounded.raw(head + b'Content-Length: 99\r\n\r\n{"inputs":')
        assert b" 408 " in answer.partition(b"\r\n")[0]


def test_heads_are_bounded_in_bytes_and_time(local: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
    assert b" 200 " not in local.raw(begin + b"X-Long: " + b"a" * 200_000 + b"\r\nConnection: close\r\n\r\n")
    monkeypatch.setattr("heedful.serve.protocol.HEAD_SECONDS", 0.2)
    assert local.raw(begin) == b""
    assert local.raw(b"") == b""


def test_a_client_that_leaves_frees_its_place(folder: Path) -> None:
    with running(folder) as busy:
        body = b'{"inputs":["the cat"],"options":{"max_length":1000,"beam":32}}'
        head = b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        for _ in range(3):
            busy.raw(head + b"Content-Length: %d\r\n\r\n" % len(body) + body, wait=False)
        begin = time.monotonic()
        busy.wait_until(lambda: busy.state.batcher.waiting + busy.state.batcher.running == 0)
        assert time.monotonic() - begin < 60
        assert busy.post("/v1/translate", BODY).status_code == 200
