"""`heedful evaluate` of classifiers: accuracy, F1, scores of each class, and the confusion matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from heedful.data.labels import normalize_label
from heedful.data.pairs import LABEL_ROLES, PairFiles, TextPair
from heedful.errors import DataError, ModelError, nearest
from heedful.metrics import Comparison, Metric, evaluate, paired_bootstrap
from heedful.metrics.classification import class_scores, confusion_matrix
from heedful.parallel import available_cpus
from heedful.tasks.base import EvaluationRequest, Table, no_log
from heedful.tasks.classify.assets import LoadedClassifier
from heedful.tasks.classify.score import label_probabilities
from heedful.tasks.classify.training import VALIDATION_METRICS
from heedful.tasks.limits import check_finite
from heedful.tasks.model_folder import load_model_for
from heedful.tasks.splits import choose_split, open_splits

METRICS = (*VALIDATION_METRICS, "exact", "line-error")
MAX_CONFUSION = 20  # classes; a larger confusion matrix is in the JSON only
MAX_TITLE = 12  # characters of a label as a column title


class LabelEvaluation(NamedTuple):
    """The metrics of a classifier on some texts."""

    name: str
    metrics: list[Metric]
    outputs: list[str]
    references: list[str]
    unseen: frozenset[str]  # labels of these texts that are not in the training data
    main: str = "accuracy"  # the metric of comparisons
    unit: str = "texts"

    @property
    def items(self) -> int:
        return len(self.outputs)

    def tables(self) -> list[Table]:
        """Return the scores of each class, and the confusion matrix."""
        classes = [
            (
                self._mark_unseen(s.label),
                f"{s.items:,}",
                f"{s.predicted:,}",
                *(f"{v:.2f}" for v in (s.precision, s.recall, s.f1)),
            )
            for s in class_scores(self.outputs, self.references)
        ]
        tables = [Table(("class", "texts", "predicted", "precision", "recall", "F1"), classes)]
        labels, matrix = confusion_matrix(self.outputs, self.references)
        if len(labels) <= MAX_CONFUSION:
            rows = [
                (self._mark_unseen(label), *(f"{count:,}" if count else "·" for count in row))
                for label, row in zip(labels, matrix.tolist(), strict=True)
            ]
            tables.append(Table(("label, predicted as", *(label[:MAX_TITLE] for label in labels)), rows))
        return tables

    def _mark_unseen(self, label: str) -> str:
        return f"{label} (not in the training data)" if label in self.unseen else label

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        labels, matrix = confusion_matrix(self.outputs, self.references)
        return {
            "metrics": [m.to_dict() for m in self.metrics],
            "classes": [s._asdict() for s in class_scores(self.outputs, self.references)],
            "confusion": {"labels": labels, "rows": matrix.tolist()},
            "not_in_training": sorted(self.unseen),
        }

    def compare_to(self, other: LabelEvaluation) -> Comparison:
        """Compare two models by a paired bootstrap over the main metric."""
        return paired_bootstrap(self.outputs, other.outputs, self.references, metric=self.main)


def evaluation_texts(
    loaded: LoadedClassifier, files: Sequence[str], split: str, log: Callable[[str], None] = no_log
) -> list[TextPair]:
    """Return the texts of a file with the recipe's columns, or of a split of the model's recipe."""
    if len(files) > 2:
        raise DataError(f"--data: expected one table (CSV, TSV, JSON, Parquet), or texts and labels, got {len(files)}")
    if files:
        pairs = PairFiles(files, Path.cwd(), loaded.recipe.data, roles=LABEL_ROLES)
        for line in pairs.describe():
            log(line)
        return list(pairs)
    return list(choose_split(open_splits(loaded.recipe, Path()), split, loaded.name))


def evaluate_models(folders: Sequence[Path], request: EvaluationRequest) -> LabelEvaluation:
    """Evaluate one classifier, or the mean probabilities of several; labels outside the training data are errors."""
    if request.decoding.model_fields_set or request.int8 or request.gallery is not None:
        raise DataError("--beam, --length-penalty, --int8, --gallery: a classifier generates no text")
    unknown = [
        f'"{name}": not a metric for classification; {nearest(name, METRICS)}'
        for name in request.metrics
        if name not in METRICS
    ]
    if unknown:
        raise DataError("\n".join(unknown))
    models: list[LoadedClassifier] = [load_model_for(folder, "classify") for folder in folders]
    first = models[0]
    labels = first.assets.labels.names
    for other in models[1:]:
        if other.assets.labels.names != labels:
            raise ModelError(f"{first.name} and {other.name} have different labels and cannot form an ensemble")
    pairs = evaluation_texts(first, request.data, request.split, request.log)
    texts = [pair.source for pair in pairs]
    threads = request.threads or available_cpus()
    by_model = [label_probabilities(m.model, m.assets.source.encode_all(texts), threads) for m in models]
    for model, probabilities in zip(models, by_model, strict=True):
        check_finite([float(probabilities.sum())], "the texts", model.name)
    outputs = [labels[best] for best in torch.stack(by_model).mean(dim=0).argmax(dim=1).tolist()]
    references = [normalize_label(pair.target) for pair in pairs]
    names = list(request.metrics) or list(VALIDATION_METRICS)
    return LabelEvaluation(
        "+".join(model.name for model in models),
        evaluate(names, outputs, references),
        outputs,
        references,
        frozenset(references) - frozenset(labels),
        names[0],
    )
