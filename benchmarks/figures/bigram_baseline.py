"""Evaluate a baseline for classifiers: logistic regression over unigrams and bigrams.

    python benchmarks/figures/bigram_baseline.py          # all classifier rows of rows.py; a few minutes

Features are binary; the L2 penalty is chosen on validation data and test data is evaluated once. The results are
written to the records of the rows' baselines, from which `run.py --report` makes its table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

import torch
from rows import ROWS, Row
from run import ROOT, git_commit, write_record
from torch import Tensor
from torch.nn import functional as F

from heedful.config.load import load_recipe
from heedful.metrics import evaluate
from heedful.tasks.splits import open_splits

PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0)
MAX_ITERATIONS = 60


class Dataset(NamedTuple):
    """Sparse binary features per text, and label ids."""

    features: Tensor
    labels: Tensor


def ngrams(text: str) -> Iterator[str]:
    words = text.lower().split()
    yield from words
    yield from map(" ".join, pairwise(words))


def extract_features(texts: Sequence[str], vocabulary: Mapping[str, int]) -> Tensor:
    pairs = [
        (row, vocabulary[gram]) for row, text in enumerate(texts) for gram in {*ngrams(text)} if gram in vocabulary
    ]
    indices = torch.tensor(pairs, dtype=torch.long).T
    full = torch.sparse_coo_tensor(indices, torch.ones(indices.shape[1]), (len(texts), len(vocabulary)))
    return full.coalesce().to_sparse_csr()


def fit(train: Dataset, classes: int, penalty: float) -> Tensor:
    """Return the weights; the last row is the bias."""
    weights = torch.zeros(train.features.shape[1] + 1, classes, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=MAX_ITERATIONS, history_size=10, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(logits(train.features, weights), train.labels, reduction="sum")
        total = loss + penalty / 2 * (weights[:-1] ** 2).sum()
        total.backward()
        return total

    optimizer.step(closure)
    return weights.detach()


def logits(features: Tensor, weights: Tensor) -> Tensor:
    return torch.sparse.mm(features, weights[:-1]) + weights[-1]


def make_record(row: Row) -> dict[str, object]:
    path = ROOT / "recipes" / f"{row.recipe}.toml"
    splits = {name: list(pairs) for name, pairs in open_splits(load_recipe(path).recipe, path.parent).items()}
    counts = Counter(gram for pair in splits["train"] for gram in {*ngrams(pair.source)})
    vocabulary = {gram: number for number, gram in enumerate(counts)}
    names = sorted({pair.target for pair in splits["train"]})
    datasets = {
        name: Dataset(
            extract_features([pair.source for pair in pairs], vocabulary),
            torch.tensor([names.index(pair.target) for pair in pairs]),
        )
        for name, pairs in splits.items()
    }

    def evaluate_split(split: str, weights: Tensor, metrics: Sequence[str]) -> dict[str, dict[str, object]]:
        outputs = [names[best] for best in logits(datasets[split].features, weights).argmax(dim=1).tolist()]
        values = evaluate(metrics, outputs, [pair.target for pair in splits[split]])
        return {m: {"value": f.value, "signature": f.signature} for m, f in zip(metrics, values, strict=True)}

    candidates = {penalty: fit(datasets["train"], len(names), penalty) for penalty in PENALTIES}
    metric = row.metrics[0]
    values = {penalty: evaluate_split("valid", w, [metric])[metric]["value"] for penalty, w in candidates.items()}
    best = max(values, key=values.__getitem__)
    return {
        "title": "baseline: logistic regression over bigrams",
        "script": "bigram_baseline.py",
        "penalty": best,
        "valid": {metric: values[best]},
        "test": evaluate_split("test", candidates[best], row.metrics),
        "commit": git_commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }


def main() -> None:
    for row in ROWS:
        if row.baseline.endswith("-bigrams"):
            record = make_record(row)
            write_record(row.baseline, record)
            print(row.name, record, flush=True)


if __name__ == "__main__":
    main()
