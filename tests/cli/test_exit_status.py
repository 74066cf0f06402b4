"""The exit status is documented, and an interrupted start has one too."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from command_line import here

README = Path(__file__).parents[2] / "README.md"


def test_the_exit_status_is_documented_alike() -> None:
    table = re.findall(r"^\| (\d+) \| ", README.read_text(encoding="utf-8"), re.MULTILINE)
    words = re.sub(r"\s+", " ", here("--help").stdout.rpartition("Exit status: ")[2])
    assert table == re.findall(r"(\d+) ", words) == ["0", "1", "2", "130", "141"]


def test_an_interrupt_while_the_program_starts_gives_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "heedful.cli.app", Interrupted("heedful.cli.app"))
    done = here("--version")
    assert (done.returncode, done.stderr) == (130, "stopped\n")
