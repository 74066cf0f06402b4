"""Accuracy, F1 over classes, and the confusion matrix.

The classes are all labels that occur as references or outputs. A class that occurs as neither in a bootstrap sample
is excluded from the mean of that sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.errors import DataError
from heedful.metrics.state import (
    Counts,
    MetricSpec,
    MetricState,
    References,
    StateFunction,
    percent,
    single_references,
)

MAX_CLASSES = 1_000  # with more, the outputs are not labels
MeanF1 = Callable[[Counts, Counts], float]  # of the F1 and the number of references of each class


class ClassScore(NamedTuple):
    """Precision, recall and F1 of one class, in percent."""

    label: str
    items: int  # references of this class
    predicted: int  # outputs of this class
    precision: float
    recall: float
    f1: float


def accuracy_state(outputs: Sequence[str], references: References) -> MetricState:
    """Return the counts of the accuracy."""
    labels = single_references("accuracy", outputs, references)
    rows = [[output == label, 1] for output, label in zip(outputs, labels, strict=True)]
    return MetricState("accuracy", np.array(rows, np.float64), percent, f"classes:{len(_classes(outputs, labels))}")


def _f1_state_function(name: str, mean: MeanF1, signature: str) -> StateFunction:
    """Return the state function of a mean of the classes' F1."""

    def f1_state(outputs: Sequence[str], references: References) -> MetricState:
        labels = single_references(name, outputs, references)
        classes = _classes(outputs, labels)
        rows = _class_counts(classes, outputs, labels)

        def score(total: Counts) -> float:
            correct, predicted, actual = total.reshape(3, -1)
            occurs = predicted + actual > 0
            return mean(_f1(correct[occurs], predicted[occurs], actual[occurs]), actual[occurs])

        return MetricState(name, rows, score, f"classes:{len(classes)}|{signature}")

    return f1_state


def _macro_mean(f1: Counts, _actual: Counts) -> float:
    return float(f1.mean()) if f1.size else 0.0


def _weighted_mean(f1: Counts, actual: Counts) -> float:
    return float((f1 * actual).sum() / max(actual.sum(), 1.0))


macro_f1_state = _f1_state_function("macro F1", _macro_mean, "mean:classes")
weighted_f1_state = _f1_state_function("weighted F1", _weighted_mean, "mean:items")

ACCURACY = MetricSpec("accuracy", accuracy_state, "labels that are correct", unit="%")
MACRO_F1 = MetricSpec("macro-f1", macro_f1_state, "mean F1 over classes", unit="%")
WEIGHTED_F1 = MetricSpec("weighted-f1", weighted_f1_state, "mean F1 over items", unit="%")


def class_scores(outputs: Sequence[str], references: References) -> list[ClassScore]:
    """Return precision, recall and F1 of every class, in alphabetical order.

    >>> for score in class_scores(["a", "a", "b"], ["a", "b", "b"]):
    ...     print(score.label, score.precision, score.recall, round(score.f1, 1))
    a 50.0 100.0 66.7
    b 100.0 50.0 66.7
    """
    labels = single_references("class scores", outputs, references)
    classes = _classes(outputs, labels)
    correct, predicted, actual = _class_counts(classes, outputs, labels).sum(axis=0).reshape(3, -1)
    f1 = _f1(correct, predicted, actual)
    return [
        ClassScore(
            label,
            int(actual[i]),
            int(predicted[i]),
            100 * float(correct[i] / predicted[i]) if predicted[i] else 0.0,
            100 * float(correct[i] / actual[i]) if actual[i] else 0.0,
            float(f1[i]),
        )
        for i, label in enumerate(classes)
    ]


def confusion_matrix(outputs: Sequence[str], references: References) -> tuple[list[str], NDArray[np.int64]]:
    """Return the labels, and how often each (row) was predicted as each (column).

    >>> labels, matrix = confusion_matrix(["a", "a", "b"], ["a", "b", "b"])
    >>> labels, matrix.tolist()
    (['a', 'b'], [[1, 0], [1, 1]])
    """
    labels = single_references("confusion matrix", outputs, references)
    classes = _classes(outputs, labels)
    index = {label: number for number, label in enumerate(classes)}
    matrix = np.zeros((len(classes), len(classes)), dtype=np.int64)
    for output, label in zip(outputs, labels, strict=True):
        matrix[index[label], index[output]] += 1
    return classes, matrix


def _classes(outputs: Sequence[str], labels: Sequence[str]) -> list[str]:
    classes = sorted({*outputs, *labels})
    if len(classes) > MAX_CLASSES:
        raise DataError(
            f"{len(classes):,} different labels, more than {MAX_CLASSES:,}: are these outputs texts and not labels?"
        )
    return classes


def _class_counts(classes: Sequence[str], outputs: Sequence[str], labels: Sequence[str]) -> Counts:
    """Return for each item and class whether it is predicted correctly, predicted, and actual: (item, 3 x class)."""
    index = {label: number for number, label in enumerate(classes)}
    rows = np.zeros((len(outputs), 3, len(classes)))
    for item, (output, label) in enumerate(zip(outputs, labels, strict=True)):
        rows[item, 1, index[output]] = 1
        rows[item, 2, index[label]] = 1
        rows[item, 0, index[label]] = output == label
    return rows.reshape(len(outputs), -1)


def _f1(correct: Counts, predicted: Counts, actual: Counts) -> Counts:
    """Return 2 correct / (predicted + actual) in percent; 0 for a class that is neither."""
    return np.asarray(200 * correct / np.maximum(predicted + actual, 1))
