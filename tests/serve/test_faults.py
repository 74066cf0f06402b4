"""What goes wrong has a clear answer, and nothing hangs: killed workers, SIGTERM, vanished folders, full disks."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from command_line import complaint
from serve.local import LocalServer, running
from serve.server import serving

BODY = {"inputs": ["the black cat"], "options": {"max_length": 9}}
CLIENTS = 4
LONG = {"inputs": ["the black cat"] * 4, "options": {"beam": 32, "max_length": 300}}
JSON_HEAD = b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_sigterm_finishes_what_was_begun(folder: Path) -> None:
    with serving("-m", folder, "--threads", "1") as server:
        expected = server.post("/v1/translate", LONG).json()
        answers: list[Any] = []
        thread = threading.Thread(target=lambda: answers.append(server.post("/v1/translate", LONG)))
        thread.start()
        server.wait_until(lambda: "heedful_requests_in_progress 2.0" in httpx.get(f"{server.address}/metrics").text)
        server.process.terminate()
        thread.join()
        assert answers[0].json() == expected
        assert server.process.wait(60) in (0, -signal.SIGTERM)
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{server.address}/health")


def test_a_client_that_leaves_during_its_upload_is_no_error_of_the_server(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    head = b"POST /v1/caption HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999\r\n"
    kind = b"Content-Type: multipart/form-data; boundary=x\r\n\r\n--x\r\n"
    with running(folder) as local:
        local.raw(head + kind, wait=False)
        local.wait_until(lambda: 'status="499"' in local.get("/metrics").text)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_sigterm_ends_what_takes_too_long(folder: Path) -> None:
    endless = {"inputs": ["the black cat"] * 128, "options": {"beam": 32, "max_length": 1_000}}
    with serving("-m", folder, "--threads", "1", "--drain", "1") as server:
        answers: list[httpx.Response] = []

        def send() -> None:
            with contextlib.suppress(httpx.TransportError):
                answers.append(server.post("/v1/translate", endless))

        thread = threading.Thread(target=send)
        thread.start()
        server.wait_until(lambda: "heedful_requests_in_progress 2.0" in httpx.get(f"{server.address}/metrics").text)
        server.process.terminate()
        assert server.process.wait(60) in (0, -signal.SIGTERM)
        thread.join()
        assert all(answer.status_code != 200 for answer in answers)


@pytest.mark.skipif(sys.platform == "win32", reason="needs kill -9")
def test_a_killed_worker_is_replaced_and_the_others_go_on(folder: Path) -> None:
    statuses: list[int | str] = []
    killed, enough = threading.Event(), threading.Event()

    def send(address: str) -> None:
        while not enough.is_set():
            try:  # a connection of its own each; one that the killed worker had accepted is lost
                status: int | str = httpx.post(f"{address}/v1/translate", json=BODY, timeout=60).status_code
            except httpx.TransportError:
                status = "lost after the kill" if killed.is_set() else "lost"
            statuses.append(status)

    with serving("-m", folder, "--workers", "2", "--threads", "1") as server:
        threads = [threading.Thread(target=send, args=[server.address]) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        server.wait_until(lambda: statuses.count(200) > 2 * CLIENTS)
        workers = find_workers(server.process.pid)
        assert len(workers) == 2
        killed.set()
        os.kill(workers[0], signal.SIGKILL)
        answered = statuses.count(200)
        server.wait_until(lambda: statuses.count(200) > answered + 5 * CLIENTS)
        enough.set()
        for thread in threads:
            thread.join()
        assert set(statuses) <= {200, "lost after the kill"}
        assert statuses.count("lost after the kill") <= CLIENTS
        assert "heedful_requests_total" in httpx.get(f"{server.address}/metrics").text
        server.wait_until(lambda: len(set(find_workers(server.process.pid)) - {workers[0]}) == 2)


def find_workers(pid: int) -> list[int]:
    children = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()
    return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def test_a_folder_that_vanishes(folder: Path, tmp_path: Path) -> None:
    kept, gone = (Path(shutil.copytree(folder, tmp_path / name)) for name in ("kept", "gone"))
    with running(models={"kept": str(kept), "gone": str(gone)}, max_models=1) as local:
        assert local.post("/v1/translate", {**BODY, "model": "kept"}).status_code == 200
        shutil.rmtree(gone)
        shutil.rmtree(kept)
        assert local.post("/v1/translate", {**BODY, "model": "kept"}).status_code == 200  # in memory
        trace = {"input": "the cat", "model": "kept", "detail": "weights", "what_if": False}
        assert local.post("/v1/trace", trace).status_code == 200
        answer = local.post("/v1/translate", {**BODY, "model": "gone"})
        assert (answer.status_code, answer.json()["title"]) == (503, "Service Unavailable")
        assert "no such model folder" in answer.json()["detail"]
        assert {model["name"] for model in local.get("/v1/models").json()["models"]} == {"kept", "gone"}


def test_the_least_recently_used_model_leaves(folder: Path) -> None:
    with running(models={name: str(folder) for name in "abc"}, max_models=2) as local:
        assert local.post("/v1/translate", {**BODY, "model": "b"}).status_code == 200
        leaving = weakref.ref(local.state.store.peek("b"))
        for name in "ac":
            assert local.post("/v1/translate", {**BODY, "model": name}).status_code == 200
        assert local.state.store.loaded == ["a", "c"]
        gc.collect()
        assert leaving() is None  # nothing else holds its memory


def test_a_full_disk_is_said(local: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tempfile.SpooledTemporaryFile.rollover", full)
    answer = local.client.post("/v1/caption", files={"file": ("a.png", b"a" * 3_000_000)})
    assert answer.status_code == 503
    assert "No space left" in answer.json()["detail"]


def test_a_client_that_does_not_read_is_left(folder: Path) -> None:
    body = b'{"inputs":["the black cat sleeps"],"detail":"full","options":{"max_length":400}}'
    head = b"POST /v1/trace HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with running(folder, limits={"body_seconds": 2.0}) as server, socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        server.wait_until(lambda: "heedful_requests_in_progress 2.0" in server.get("/metrics").text)
        server.wait_until(lambda: "heedful_requests_in_progress 1.0" in server.get("/metrics").text)
        assert server.post("/v1/translate", BODY).status_code == 200


def test_half_sent_bodies_leave_nothing_behind(local: LocalServer) -> None:
    for _ in range(5):
        local.raw(JSON_HEAD + b'Content-Length: 500\r\n\r\n{"inputs":["the', wait=False)
    local.raw(JSON_HEAD + b"Content-Length: 500\r\n\r\n", wait=False)
    assert local.post("/v1/translate", BODY).status_code == 200
    local.wait_until(lambda: local.get("/metrics").text.count("heedful_requests_in_progress 1.0"))


def test_a_taken_port_is_said(local: LocalServer) -> None:
    assert "Address already in use" in complaint("serve", "--port", str(local.port))
    assert "no such model folder" in complaint("serve", "-m", "/nowhere/model")
