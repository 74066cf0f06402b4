"""The command line through its real entry point."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from heedful.record import Trace

HEEDFUL = Path(sys.executable).parent / "heedful"
RECIPE = Path(__file__).parent.parent / "recipes" / "world-phrases.toml"
VERBS = (
    "check",
    "train",
    "models",
    "translate",
    "summarise",
    "reply",
    "transduce",
    "classify",
    "bench",
    "trace",
    "show",
    "world",
)


def heedful(*words: str | Path, stdin: str | bytes = "", **env: str) -> subprocess.CompletedProcess[str]:
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        [HEEDFUL, *map(str, words)], input=data, capture_output=True, env={**os.environ, **env}, check=False
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
    )


def refused(*words: str | Path, stdin: str | bytes = "") -> str:
    """What is said to a user who got something wrong: exit 2, no traceback, nothing on stdout."""
    done = heedful(*words, stdin=stdin)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    return done.stderr


def test_help_names_every_verb_and_answers_at_once() -> None:
    best = 9.9
    for _ in range(5):
        began = time.perf_counter()
        done = heedful("--help")
        best = min(best, time.perf_counter() - began)
    assert done.returncode == 0
    assert [verb for verb in VERBS if verb not in done.stdout] == []
    assert best < 0.5


def test_the_version_is_the_packages() -> None:
    assert heedful("--version").stdout.startswith("heedful 0.")


def test_check_prints_every_value_as_a_recipe(tmp_path: Path) -> None:
    done = heedful("check", RECIPE, "model.attention.score=general", "training.epochs=2")
    assert done.returncode == 0
    assert 'score = "general"' in done.stdout
    assert "(override)" in done.stdout
    again = tmp_path / "again.toml"
    again.write_text(done.stdout, encoding="utf-8")
    assert heedful("check", again).returncode == 0


def test_a_wrong_recipe_or_override_is_refused_in_words(tmp_path: Path) -> None:
    assert 'did you mean "additive"?' in refused("check", RECIPE, "model.attention.score=aditive")
    assert "no such setting" in refused("train", RECIPE, "training.epoch=2", "--out", tmp_path / "m")
    assert "there is no such file" in refused("check", tmp_path / "none.toml")
    assert list(tmp_path.iterdir()) == []


def test_other_mistakes_are_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("{}")
    assert "there is no such model folder" in refused("translate", "-m", tmp_path / "m", stdin="a\n")
    assert "there is no such file" in refused("translate", "-m", tmp_path, tmp_path / "none.txt")
    assert "empty sentence" in refused("trace", " ", "-m", tmp_path, "-o", tmp_path / "o.json")
    assert "not a trace" in refused("show", tmp_path / "t.json")
    assert "is a file" in refused("train", RECIPE, "--out", tmp_path / "t.json")


@pytest.mark.parametrize("name", ["phrases", "scenes", "tastes", "moods"])
def test_every_world_is_written_and_the_same_seed_writes_the_same(tmp_path: Path, name: str) -> None:
    for out in ("a", "b"):
        done = heedful("world", name, "--n", "30", "--seed", "5", "--out", tmp_path / out, LC_ALL="C")
        assert done.returncode == 0, done.stderr
    files = sorted(p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*") if p.is_file())
    assert len(files) > 3
    for file in files:
        if file.name != "README.md":
            assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_a_world_that_cannot_be_is_refused(tmp_path: Path) -> None:
    assert "en-de" in refused("world", "phrases", "--n", "9", "--languages", "en-de", "--out", tmp_path / "w")


def test_links_are_read_as_asked(tmp_path: Path) -> None:
    weights = [[0.5, 0.4, 0.1], [0.7, 0.1, 0.2]]
    file, out = tmp_path / "t.json", tmp_path / "t.links"
    Trace.from_weights(["the", "black", "cat"], ["chat", "noir"], weights).save(file)
    for reading, links in (("naive", "0-0 0-1"), ("shared", "1-0 2-1")):
        assert heedful("show", file, "-o", out, "--reading", reading).returncode == 0
        assert out.read_text() == links + "\n"
    done = heedful("show", file, "-o", out, "--reading", "share")
    assert done.returncode == 2
    assert 'did you mean "shared"' in done.stderr
