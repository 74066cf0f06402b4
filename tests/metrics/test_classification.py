"""Accuracy, F1 and confusion matrix against counts in plain loops."""

from __future__ import annotations

import random

import pytest

from heedful.errors import DataError
from heedful.metrics import evaluate, paired_bootstrap
from heedful.metrics.classification import class_scores, confusion_matrix

# a is correct in 1 of 2 (predicted 3 times), b in 1 of 2 (predicted once), c in 0 of 1; d is predicted once
GOLD, PREDICTED = ["a", "a", "b", "b", "c"], ["a", "d", "b", "a", "a"]


def test_metrics_have_the_values_computed_by_hand() -> None:
    accuracy, macro, weighted = evaluate(["accuracy", "macro-f1", "weighted-f1"], PREDICTED, GOLD)
    f1 = {"a": 2 * 1 / (3 + 2), "b": 2 * 1 / (1 + 2), "c": 0.0, "d": 0.0}
    assert accuracy.value == pytest.approx(40.0)
    assert macro.value == pytest.approx(100 * sum(f1.values()) / 4)
    assert weighted.value == pytest.approx(100 * (2 * f1["a"] + 2 * f1["b"]) / 5)
    assert (accuracy.signature, macro.signature) == ("classes:4", "classes:4|mean:classes")
    first = class_scores(PREDICTED, GOLD)[0]
    assert (first.label, first.items, first.predicted) == ("a", 2, 3)
    assert (first.precision, first.recall, first.f1) == pytest.approx((100 / 3, 50.0, 40.0))


def test_metrics_equal_counts_in_plain_loops() -> None:
    rng = random.Random(4)
    for _ in range(20):
        names = [f"label {n}" for n in range(rng.randint(2, 6))]
        gold = [rng.choice(names) for _ in range(40)]
        predicted = [g if rng.random() < 0.6 else rng.choice(names) for g in gold]
        classes = sorted(set(gold) | set(predicted))
        f1, weight = [], []
        for name in classes:
            correct = sum(g == s == name for g, s in zip(gold, predicted, strict=True))
            precision = correct / max(1, predicted.count(name))
            recall = correct / max(1, gold.count(name))
            f1.append(2 * precision * recall / (precision + recall) if correct else 0.0)
            weight.append(gold.count(name))
        macro, weighted = (m.value for m in evaluate(["macro-f1", "weighted-f1"], predicted, gold))
        assert macro == pytest.approx(100 * sum(f1) / len(classes))
        assert weighted == pytest.approx(100 * sum(f * w for f, w in zip(f1, weight, strict=True)) / 40)
        labels, matrix = confusion_matrix(predicted, gold)
        assert labels == classes
        assert matrix.sum() == 40
        assert matrix[0, 1] == sum(g == labels[0] and s == labels[1] for g, s in zip(gold, predicted, strict=True))


def test_two_classifiers_can_be_compared_by_bootstrap() -> None:
    gold = ["a", "b"] * 100
    good, bad = list(gold), ["a"] * 200
    comparison = paired_bootstrap(good, bad, gold, metric="macro-f1", samples=200)
    assert comparison.difference == pytest.approx(100 - 100 / 3)
    assert comparison.p < 0.05
    assert paired_bootstrap(good, good, gold, metric="accuracy", samples=50).p == 1.0


def test_too_many_different_labels_are_an_error() -> None:
    lines = [f"line {n}" for n in range(1_200)]
    with pytest.raises(
        DataError, match="1,200 different labels, more than 1,000: are these outputs texts and not labels"
    ):
        evaluate(["macro-f1"], lines, lines)
