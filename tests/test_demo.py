"""The demo's model, trained as `make demo` trains it, graded on what its world knows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from heedful.config import load_recipe
from heedful.data.readers import world_pairs
from heedful.record import Trace
from heedful.tasks.folder import open_model
from heedful.tasks.text import translate
from heedful.tasks.tracing import Wanted, trace_line
from test_cli import RECIPE, heedful

DEMO = Path(__file__).parent.parent / "build" / "demo"


@pytest.fixture(scope="module")
def model() -> Path:
    """Trained once; the command itself says when there is nothing left to do."""
    done = heedful("train", RECIPE, "--out", DEMO)
    assert done.returncode == 0, done.stderr
    return DEMO


def test_training_again_has_nothing_to_do_and_another_recipe_is_refused(model: Path) -> None:
    assert "already trained" in heedful("train", RECIPE, "--out", model).stdout
    other = heedful("train", RECIPE, "training.seed=2", "--out", model)
    assert other.returncode == 2
    assert "training.seed: 1 -> 2" in other.stderr


def test_unseen_sentences_are_translated_exactly_and_the_looks_follow_the_gold(model: Path) -> None:
    opened = open_model(model)
    world = load_recipe(RECIPE).recipe.data.world
    assert world is not None
    pairs = world_pairs(world)["test"]
    outputs = translate(opened.model, [p.source for p in pairs], opened.words, opened.recipe.decoding)
    right = [p for p, o in zip(pairs, outputs, strict=True) if o == p.target]
    assert len(right) / len(pairs) >= 0.94
    hits = words = 0
    for pair in right[:100]:
        found = trace_line(opened, Wanted(pair.source, "weights"), opened.recipe.decoding)
        best = found.matrix().argmax(axis=1)
        for target in {t for _, t in pair.links or ()}:
            words += 1
            hits += (int(best[target]), target) in (pair.links or ())
    assert hits / words >= 0.85  # some articles look at their noun, whose gender they need


def test_lines_in_are_lines_out(model: Path) -> None:
    done = heedful("translate", "-m", model, stdin="\nmy sister sleeps\n\n")
    first, second, third = done.stdout.split("\n")[:3]
    assert (first, third) == ("", "")
    assert second


def test_trace_and_show_draw_what_was_recorded(model: Path, tmp_path: Path) -> None:
    sentence = "my sister sees the small cat"
    assert heedful("trace", sentence, "-m", model, "-o", tmp_path / "t.json").returncode == 0
    found = Trace.load(tmp_path / "t.json")
    assert [t.text for t in found.source.tokens] == [*sentence.split(), "</s>"]
    assert found.matrix().sum(axis=1) == pytest.approx(np.ones(len(found.steps)), abs=1e-6)
    shown = heedful("show", tmp_path / "t.json", COLUMNS="120").stdout
    assert all(token.text in shown for token in found.target.tokens)
    assert heedful("show", tmp_path / "t.json", "-o", tmp_path / "t.png").returncode == 0
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")
