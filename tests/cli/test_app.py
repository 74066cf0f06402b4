"""The program imports only what a call needs, and its list of commands is that of the commands themselves."""

from __future__ import annotations

import subprocess
import sys

import pytest

from command_line import here
from heedful.cli.app import COMMANDS, build_app


def test_the_summaries_are_the_first_sentences_of_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        build_app()(["--help"], prog_name="heedful")
    listed, helped = capsys.readouterr().out, here("--help").stdout
    assert listed.splitlines()[1:] == helped.splitlines()[1:]  # the first line names the program, which is pytest here


@pytest.mark.parametrize("arguments", [["--help"], ["models"], ["check", "--help"]])
def test_no_other_command_is_imported(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom heedful.cli.app import build_app\n"
        f"try: build_app({arguments})({arguments}, prog_name='heedful')\nexcept SystemExit: pass\n"
        "print([m[12:] for m in sys.modules if m.startswith('heedful.cli.')], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = set(done.stderr.strip().strip("[]").replace("'", "").split(", "))
    assert imported & set(COMMANDS) == set(arguments) & set(COMMANDS)


def test_an_unknown_command_names_its_neighbors() -> None:
    done = here("tran")
    assert done.returncode == 2
    assert "No such command 'tran'" in done.stderr
    assert "'train'" in done.stderr
