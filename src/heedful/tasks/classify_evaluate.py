"""`heedful evaluate` of classifiers: accuracy, F1, every class, and which label is taken for which."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from heedful.data.labels import plain_label
from heedful.data.readers import Pairs, TextPair
from heedful.errors import DataError, ModelError, nearest
from heedful.evaluation import Comparison, Metric, evaluate, paired_bootstrap
from heedful.evaluation.classes import class_scores, confusion
from heedful.tasks.classify import FIGURES, Labeller, probabilities
from heedful.tasks.folder import open_for
from heedful.tasks.kind import Question, Table
from heedful.tasks.text import open_splits
from heedful.tasks.use import processors

COUNTED = (*FIGURES, "exact", "line-error")  # what can be counted of labels
WIDE = 20  # classes; a larger confusion table is only in the JSON
CLIP = 12  # letters of a label as a column's head


class LabelEvaluation(NamedTuple):
    """What was measured on some texts."""

    name: str
    metrics: list[Metric]
    outputs: list[str]
    references: list[str]
    unseen: frozenset[str]  # labels of these texts that training never saw
    main: str = "accuracy"  # the metric to compare by
    unit: str = "texts"

    @property
    def items(self) -> int:
        return len(self.outputs)

    def tables(self) -> list[Table]:
        """Every class, and which is taken for which."""
        scores = class_scores(self.outputs, self.references)
        classes = [
            (
                self._shown(s.label),
                f"{s.items:,}",
                f"{s.said:,}",
                *(f"{v:.2f}" for v in (s.precision, s.recall, s.f1)),
            )
            for s in scores
        ]
        made = [Table(("class", "texts", "said", "precision", "recall", "F1"), classes)]
        labels, table = confusion(self.outputs, self.references)
        if len(labels) <= WIDE:
            rows = [
                (self._shown(label), *(f"{count:,}" if count else "·" for count in row))
                for label, row in zip(labels, table.tolist(), strict=True)
            ]
            made.append(Table(("is, said to be", *(label[:CLIP] for label in labels)), rows))
        return made

    def _shown(self, label: str) -> str:
        return f"{label} (not in the training data)" if label in self.unseen else label

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        labels, table = confusion(self.outputs, self.references)
        return {
            "metrics": [m._asdict() for m in self.metrics],
            "classes": [s._asdict() for s in class_scores(self.outputs, self.references)],
            "confusion": {"labels": labels, "rows": table.tolist()},
            "not_in_training": sorted(self.unseen),
        }

    def against(self, other: LabelEvaluation) -> Comparison:
        """Paired bootstrap by the first metric asked for."""
        return paired_bootstrap(self.outputs, other.outputs, self.references, metric=self.main)


def texts_of(opened: Labeller, files: Sequence[str], split: str) -> list[TextPair]:
    """The texts to measure on: a file with the recipe's columns, or a split of the model's recipe."""
    if len(files) > 2:
        raise DataError(f"--data: one TSV or JSONL, or texts and labels; {len(files)} were given")
    if files:
        return list(Pairs(files, Path.cwd(), opened.recipe.data))
    splits = open_splits(opened.recipe, Path())
    if split not in splits:
        raise DataError(
            f'the recipe of {opened.name} names no "{split}" data; {nearest(split, splits)}; or give --data'
        )
    return list(splits[split])


def evaluated(folders: Sequence[Path], asked: Question) -> LabelEvaluation:
    """One model, or the mean of several, on the data asked for. A label they do not know is never right."""
    if asked.decoding or asked.int8 or asked.gallery is not None:
        raise DataError(
            "--beam, --length-penalty, --int8, --gallery: a classifier searches and draws nothing"
        )
    strange = [
        f'"{name}": is not for labels; {nearest(name, COUNTED)}'
        for name in asked.metrics
        if name not in COUNTED
    ]
    if strange:
        raise DataError("\n".join(strange))
    models: list[Labeller] = [open_for(folder, "classify") for folder in folders]
    first = models[0]
    names = first.words.labels.names
    for other in models[1:]:
        if other.words.labels.names != names:
            raise ModelError(
                f"{first.name} and {other.name} have different labels, so they cannot judge as one"
            )
    pairs = texts_of(first, asked.data, asked.split)
    lines = [pair.source for pair in pairs]
    threads = asked.threads or processors()
    p = torch.stack([probabilities(m.model, m.words.source.encode_all(lines), threads) for m in models])
    outputs = [names[best] for best in p.mean(dim=0).argmax(dim=1).tolist()]
    references = [plain_label(pair.target) for pair in pairs]
    asked_for = list(asked.metrics) or list(FIGURES)
    metrics = evaluate(asked_for, outputs, references)
    unseen = frozenset(references) - frozenset(names)
    name = "+".join(m.name for m in models)
    return LabelEvaluation(name, metrics, outputs, references, unseen, asked_for[0])
