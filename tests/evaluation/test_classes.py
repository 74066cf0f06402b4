"""Accuracy, F1 and confusion against counting in plain loops."""

from __future__ import annotations

import random

import pytest

from heedful.errors import DataError
from heedful.evaluation import evaluate, paired_bootstrap
from heedful.evaluation.classes import class_scores, confusion

# By hand: a is right 1 of 2 (1 of 3 said), b 1 of 2 (1 of 1 said), c 0 of 1, d is said once and never there.
GOLD, SAID = ["a", "a", "b", "b", "c"], ["a", "d", "b", "a", "a"]


def test_figures_computed_by_hand() -> None:
    accuracy, macro, weighted = evaluate(["accuracy", "macro-f1", "weighted-f1"], SAID, GOLD)
    f1 = {"a": 2 * 1 / (3 + 2), "b": 2 * 1 / (1 + 2), "c": 0.0, "d": 0.0}
    assert accuracy.value == pytest.approx(40.0)
    assert macro.value == pytest.approx(100 * sum(f1.values()) / 4)
    assert weighted.value == pytest.approx(100 * (2 * f1["a"] + 2 * f1["b"]) / 5)
    assert (accuracy.signature, macro.signature) == ("classes:4", "classes:4|mean:classes")
    first = class_scores(SAID, GOLD)[0]
    assert (first.label, first.items, first.said) == ("a", 2, 3)
    assert (first.precision, first.recall, first.f1) == pytest.approx((100 / 3, 50.0, 40.0))


def test_against_plain_loops() -> None:
    rng = random.Random(4)
    for _ in range(20):
        names = [f"label {n}" for n in range(rng.randint(2, 6))]
        gold = [rng.choice(names) for _ in range(40)]
        said = [g if rng.random() < 0.6 else rng.choice(names) for g in gold]
        there = sorted(set(gold) | set(said))
        f1, weight = [], []
        for name in there:
            right = sum(g == s == name for g, s in zip(gold, said, strict=True))
            precision = right / max(1, said.count(name))
            recall = right / max(1, gold.count(name))
            f1.append(2 * precision * recall / (precision + recall) if right else 0.0)
            weight.append(gold.count(name))
        macro, weighted = (m.value for m in evaluate(["macro-f1", "weighted-f1"], said, gold))
        assert macro == pytest.approx(100 * sum(f1) / len(there))
        assert weighted == pytest.approx(100 * sum(f * w for f, w in zip(f1, weight, strict=True)) / 40)
        labels, table = confusion(said, gold)
        assert labels == there
        assert table.sum() == 40
        assert table[0, 1] == sum(g == labels[0] and s == labels[1] for g, s in zip(gold, said, strict=True))


def test_two_systems_are_compared_by_bootstrap() -> None:
    gold = ["a", "b"] * 100
    good, bad = list(gold), ["a"] * 200
    found = paired_bootstrap(good, bad, gold, metric="macro-f1", samples=200)
    assert found.difference == pytest.approx(100 - 100 / 3)
    assert found.p < 0.05
    assert paired_bootstrap(good, good, gold, metric="accuracy", samples=50).p == 1.0


def test_lines_are_no_classes() -> None:
    lines = [f"line {n}" for n in range(1_200)]
    with pytest.raises(DataError, match="1,200 different labels: these measures are for classes"):
        evaluate(["macro-f1"], lines, lines)
