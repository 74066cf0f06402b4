"""How well labels are found: accuracy, F1 over classes, and which label is taken for which.

Classes are all labels that occur, as references or as outputs. Where a class is neither, in a resample for
instance, it does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.errors import DataError
from heedful.evaluation.tally import Counts, Maker, References, Tally, one_each, percent

MOST = 1_000  # classes; more are no classes
Means = Callable[[Counts, Counts], float]  # F1 and references of each class


class ClassScore(NamedTuple):
    """One class: how many it has, how many were said to be of it, and what that is worth, in percent."""

    label: str
    items: int
    said: int
    precision: float
    recall: float
    f1: float


def accuracy_tally(outputs: Sequence[str], references: References) -> Tally:
    """How many labels in a hundred are right."""
    answers = one_each("accuracy", outputs, references)
    rows = [[output == answer, 1] for output, answer in zip(outputs, answers, strict=True)]
    return Tally(
        "accuracy", np.array(rows, np.float64), percent, f"classes:{len(_classes(outputs, answers))}"
    )


def f1_tally(name: str, mean: Means, signature: str) -> Maker:
    """A mean of the classes' F1."""

    def make(outputs: Sequence[str], references: References) -> Tally:
        answers = one_each(name, outputs, references)
        labels = _classes(outputs, answers)
        rows = _rows(labels, outputs, answers)

        def score(total: Counts) -> float:
            right, said, there = total.reshape(3, -1)
            some = said + there > 0
            return mean(_f1(right[some], said[some], there[some]), there[some])

        return Tally(name, rows, score, f"classes:{len(labels)}|{signature}")

    return make


def _macro(f1: Counts, _: Counts) -> float:
    return float(f1.mean()) if f1.size else 0.0


def _weighted(f1: Counts, there: Counts) -> float:
    return float((f1 * there).sum() / max(there.sum(), 1.0))


macro_f1_tally = f1_tally("macro F1", _macro, "mean:classes")
weighted_f1_tally = f1_tally("weighted F1", _weighted, "mean:items")


def class_scores(outputs: Sequence[str], references: References) -> list[ClassScore]:
    """Precision, recall and F1 of every class, in alphabetical order.

    >>> for found in class_scores(["a", "a", "b"], ["a", "b", "b"]):
    ...     print(found.label, found.precision, found.recall, round(found.f1, 1))
    a 50.0 100.0 66.7
    b 100.0 50.0 66.7
    """
    answers = one_each("a class's score", outputs, references)
    labels = _classes(outputs, answers)
    right, said, there = _rows(labels, outputs, answers).sum(axis=0).reshape(3, -1)
    f1 = _f1(right, said, there)
    return [
        ClassScore(
            label,
            int(there[i]),
            int(said[i]),
            100 * float(right[i] / said[i]) if said[i] else 0.0,
            100 * float(right[i] / there[i]) if there[i] else 0.0,
            float(f1[i]),
        )
        for i, label in enumerate(labels)
    ]


def confusion(outputs: Sequence[str], references: References) -> tuple[list[str], NDArray[np.int64]]:
    """The labels, and how often each (row) was said to be each (column).

    >>> labels, table = confusion(["a", "a", "b"], ["a", "b", "b"])
    >>> labels, table.tolist()
    (['a', 'b'], [[1, 0], [1, 1]])
    """
    answers = one_each("confusion", outputs, references)
    labels = _classes(outputs, answers)
    place = {label: number for number, label in enumerate(labels)}
    table = np.zeros((len(labels), len(labels)), dtype=np.int64)
    for output, answer in zip(outputs, answers, strict=True):
        table[place[answer], place[output]] += 1
    return labels, table


def _classes(outputs: Sequence[str], answers: Sequence[str]) -> list[str]:
    found = sorted({*outputs, *answers})
    if len(found) > MOST:
        raise DataError(f"{len(found):,} different labels: these measures are for classes, {MOST:,} at most")
    return found


def _rows(labels: Sequence[str], outputs: Sequence[str], answers: Sequence[str]) -> Counts:
    """For each item and class: was it rightly said, said at all, there?"""
    place = {label: number for number, label in enumerate(labels)}
    rows = np.zeros((len(outputs), 3, len(labels)))
    for item, (output, answer) in enumerate(zip(outputs, answers, strict=True)):
        rows[item, 1, place[output]] = 1
        rows[item, 2, place[answer]] = 1
        rows[item, 0, place[answer]] = output == answer
    return rows.reshape(len(outputs), -1)


def _f1(right: Counts, said: Counts, there: Counts) -> Counts:
    """2 right / (said + there), in percent; 0 for a class that is neither."""
    return np.asarray(200 * right / np.maximum(said + there, 1))
