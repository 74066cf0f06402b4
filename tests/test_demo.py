"""The model that `make demo` trains, evaluated on test sentences and gold attention of its world."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import heedful
from command_line import heedful as run_heedful
from demo import RECIPE
from heedful.config import load_recipe
from heedful.data.pairs import world_pairs
from heedful.trace.schema import Trace


def test_training_again_does_nothing_and_another_recipe_is_refused(demo_model: Path) -> None:
    assert "already trained" in run_heedful("train", RECIPE, "--out", demo_model).stdout
    other = run_heedful("train", RECIPE, "training.seed=2", "--out", demo_model)
    assert other.returncode == 2
    assert "training.seed: 1 -> 2" in other.stderr


def test_unseen_sentences_are_translated_exactly_and_attention_follows_the_gold(demo_model: Path) -> None:
    model = heedful.load(demo_model)
    world = load_recipe(RECIPE).recipe.data.world
    assert world is not None
    pairs = world_pairs(world)["test"]
    outputs = model([pair.source for pair in pairs])
    exact = [pair for pair, output in zip(pairs, outputs, strict=True) if output == pair.target]
    assert len(exact) / len(pairs) >= 0.94
    hits = words = 0
    for pair in exact[:100]:
        largest = model.trace(pair.source, detail="weights").matrix().argmax(axis=1)
        for target in {target for _, target in pair.links or ()}:
            words += 1
            hits += (int(largest[target]), target) in (pair.links or ())
    assert hits / words >= 0.85  # some articles attend to their noun, whose gender they need


def test_empty_lines_stay_empty(demo_model: Path) -> None:
    process = run_heedful("translate", "-m", demo_model, stdin="\nmy sister sleeps\n\n")
    first, second, third = process.stdout.split("\n")[:3]
    assert (first, third) == ("", "")
    assert second


def test_show_draws_the_recorded_trace(demo_model: Path, tmp_path: Path) -> None:
    sentence = "my sister sees the small cat"
    assert run_heedful("trace", sentence, "-m", demo_model, "-o", tmp_path / "t.json").returncode == 0
    trace = Trace.load(tmp_path / "t.json")
    assert [token.text for token in trace.source.tokens] == [*sentence.split(), "</s>"]
    assert trace.matrix().sum(axis=1) == pytest.approx(np.ones(len(trace.steps)), abs=1e-6)
    text = run_heedful("show", tmp_path / "t.json", COLUMNS="120").stdout
    assert all(token.text in text for token in trace.target.tokens)
    assert run_heedful("show", tmp_path / "t.json", "-o", tmp_path / "t.png").returncode == 0
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")
