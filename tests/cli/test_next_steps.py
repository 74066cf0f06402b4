"""After a command the user knows what the numbers are and what to type next."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from command_line import heedful
from heedful.cli import progress

RECIPE = """
[data.world]
train = 60
valid = 10
test = 10
max_words = 4
[model]
embedding = 8
[model.encoder]
hidden = 8
[model.decoder]
hidden = 8
[model.attention]
hidden = 8
[training]
max_steps = 2
threads = 1
"""


def test_training_ends_with_the_command_that_uses_the_model(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(RECIPE)
    done = heedful("train", tmp_path / "r.toml", "--out", tmp_path / "m")
    assert done.returncode == 0, done.stderr
    assert f"next: echo 'A text.' | heedful translate -m {tmp_path / 'm'}" in done.stderr


def test_the_bar_of_a_training_run_ends_at_its_last_step(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(progress, "make_console", lambda **_: Console(file=screen, force_terminal=True, width=100))
    with progress.training_progress() as callbacks:
        callbacks.on_start(1002, 0)
        callbacks.on_step(1001, 0.5)
    assert "1001/1001" in screen.getvalue()
