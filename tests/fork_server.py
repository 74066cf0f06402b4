"""Run commands of `heedful` in processes of their own, without importing torch anew each time.

Importing torch and the package takes longer than most commands. A server process imports everything once and forks a
child per command; each child has its own arguments, environment, standard streams and exit code, like a new process.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from pathlib import Path
from typing import Any


def run_forked(command: list[str], stdin: bytes, environment: dict[str, str]) -> tuple[int, bytes, bytes]:
    """Run `heedful` with the arguments of `command` and return its exit code, standard output and standard error."""
    with tempfile.TemporaryDirectory() as name:
        streams = [Path(name) / stream for stream in ("stdin", "stdout", "stderr")]
        streams[0].write_bytes(stdin)
        request = {
            "command": command,
            "environment": environment,
            "folder": str(Path.cwd()),
            "streams": list(map(str, streams)),
        }
        server = _server()
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        code = json.loads(server.stdout.readline())
        return code, streams[1].read_bytes(), streams[2].read_bytes()


@cache
def _server() -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}  # as the command line sets it before importing torch
    server = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    )
    atexit.register(server.terminate)
    return server


# The server's side.


def _serve() -> None:
    requests, replies = sys.stdin, sys.stdout
    import heedful

    for module in pkgutil.walk_packages(heedful.__path__, "heedful."):
        if module.name.rpartition(".")[2].isidentifier() and not module.name.endswith("__main__"):  # not kernels-0.so
            importlib.import_module(module.name)
    for line in requests:
        child = os.fork()
        if child == 0:
            _run_command(json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=replies, flush=True)


def _run_command(request: dict[str, Any]) -> None:
    """Become the process of one command; does not return."""
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(str(request["folder"]))
    modes = (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT)
    for number, (path, mode) in enumerate(zip(request["streams"], modes, strict=True)):
        os.dup2(os.open(path, mode), number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    sys.argv = request["command"]
    from heedful.cli import main

    code = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
