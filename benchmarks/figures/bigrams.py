"""What a classifier must beat: a logistic regression of words and pairs of words, on the same data.

    python benchmarks/figures/bigrams.py          # all classifiers of rows.py; a few minutes

A feature is there or not; the penalty is chosen on validation data, test data is scored once. Written into
the records beside the models' own, from which `run.py --report` makes its table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

import torch
from rows import ROWS, Row
from run import ROOT, commit, write
from torch import Tensor
from torch.nn import functional as F

from heedful.config.load import load_recipe
from heedful.evaluation import evaluate
from heedful.tasks.text import open_splits

PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0)
ROUNDS = 60


class Texts(NamedTuple):
    """Texts as 0 and 1 (sparse), their labels' numbers."""

    features: Tensor
    labels: Tensor


def ngrams(text: str) -> Iterator[str]:
    words = text.lower().split()
    yield from words
    yield from map(" ".join, pairwise(words))


def numbered(texts: Sequence[str], known: Mapping[str, int]) -> Tensor:
    places = [
        (row, known[gram]) for row, text in enumerate(texts) for gram in {*ngrams(text)} if gram in known
    ]
    at = torch.tensor(places, dtype=torch.long).T
    full = torch.sparse_coo_tensor(at, torch.ones(at.shape[1]), (len(texts), len(known)))
    return full.coalesce().to_sparse_csr()


def fitted(train: Texts, classes: int, penalty: float) -> Tensor:
    """The weights that a text's features are multiplied with; the last row is the bias."""
    weights = torch.zeros(train.features.shape[1] + 1, classes, requires_grad=True)
    search = torch.optim.LBFGS([weights], max_iter=ROUNDS, history_size=10, line_search_fn="strong_wolfe")

    def price() -> Tensor:
        search.zero_grad()
        loss = F.cross_entropy(said(train.features, weights), train.labels, reduction="sum")
        total = loss + penalty / 2 * (weights[:-1] ** 2).sum()
        total.backward()
        return total

    search.step(price)
    return weights.detach()


def said(features: Tensor, weights: Tensor) -> Tensor:
    return torch.sparse.mm(features, weights[:-1]) + weights[-1]


def reached(row: Row) -> dict[str, object]:
    path = ROOT / "recipes" / f"{row.recipe}.toml"
    splits = {name: list(pairs) for name, pairs in open_splits(load_recipe(path).recipe, path.parent).items()}
    counts = Counter(gram for pair in splits["train"] for gram in {*ngrams(pair.source)})
    known = {gram: number for number, gram in enumerate(counts)}
    names = sorted({pair.target for pair in splits["train"]})
    sets = {
        name: Texts(
            numbered([pair.source for pair in pairs], known),
            torch.tensor([names.index(pair.target) for pair in pairs]),
        )
        for name, pairs in splits.items()
    }

    def figures(split: str, weights: Tensor, metrics: Sequence[str]) -> dict[str, dict[str, object]]:
        outputs = [names[best] for best in said(sets[split].features, weights).argmax(dim=1).tolist()]
        found = evaluate(metrics, outputs, [pair.target for pair in splits[split]])
        return {m: {"value": f.value, "signature": f.signature} for m, f in zip(metrics, found, strict=True)}

    tried = {penalty: fitted(sets["train"], len(names), penalty) for penalty in PENALTIES}
    metric = row.metrics[0]
    values = {penalty: figures("valid", w, [metric])[metric]["value"] for penalty, w in tried.items()}
    best = max(values, key=values.__getitem__)
    return {
        "title": "a logistic regression of bigrams",
        "by": "bigrams.py",
        "penalty": best,
        "valid": {metric: values[best]},
        "test": figures("test", tried[best], row.metrics),
        "commit": commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }


def main() -> None:
    for row in ROWS:
        if not row.baseline.endswith("-bigrams"):
            continue
        found = reached(row)
        write(row.baseline, found)
        print(row.name, found, flush=True)


if __name__ == "__main__":
    main()
