"""Evaluate a baseline for replies: the reply to the most similar training utterance.

    python benchmarks/figures/retrieval_baseline.py             # all reply rows of rows.py; minutes
    python benchmarks/figures/retrieval_baseline.py --distinct FILE      # distinct-2 of a file of replies

Utterances are compared by the cosine of their TF-IDF vectors over unigrams and bigrams; of equally similar ones the
first is taken. Nothing is tuned, and test data is evaluated once. Distinct-2 (Li 2016) is the number of different
bigrams per 100 bigrams of all replies; it falls with their number, so only equally many replies are comparable. The
results are written to the records of the rows' baselines, from which `run.py --report` makes its table.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import torch
from bigram_baseline import ngrams
from rows import ROWS, Row
from run import ROOT, git_commit, write_record
from torch import Tensor

from heedful.config.load import load_recipe
from heedful.metrics import evaluate
from heedful.metrics.words import split_words
from heedful.tasks.splits import open_splits

BATCH_SIZE = 64


def tf_idf(texts: Sequence[str], vocabulary: dict[str, int], idf: Tensor) -> Tensor:
    """Return sparse rows of length 1, one per text."""
    rows, columns, values = [], [], []
    for row, text in enumerate(texts):
        counts = Counter(vocabulary[gram] for gram in ngrams(text) if gram in vocabulary)
        weights = {column: (1 + math.log(count)) * float(idf[column]) for column, count in counts.items()}
        norm = math.sqrt(sum(weight**2 for weight in weights.values())) or 1.0
        rows += [row] * len(weights)
        columns += weights
        values += [weight / norm for weight in weights.values()]
    full = torch.sparse_coo_tensor(torch.tensor([rows, columns]), torch.tensor(values), (len(texts), len(vocabulary)))
    return full.coalesce().to_sparse_csr()


def retrieve(train: Sequence[str], queries: Sequence[str]) -> list[int]:
    """Return the number of the most similar training text for each query.

    >>> retrieve(["a red car", "two big dogs", "a blue car"], ["big dogs bark", "the blue one"])
    [1, 2]
    """
    counts = Counter(gram for text in train for gram in {*ngrams(text)})
    vocabulary = {gram: number for number, gram in enumerate(counts)}
    idf = torch.tensor([math.log(len(train) / count) + 1 for count in counts.values()])
    index = tf_idf(train, vocabulary, idf)
    best = []
    for start in range(0, len(queries), BATCH_SIZE):
        batch = tf_idf(queries[start : start + BATCH_SIZE], vocabulary, idf)
        best += torch.sparse.mm(index, batch.to_dense().T.contiguous()).argmax(dim=0).tolist()
    return best


def distinct_2(replies: Iterable[str]) -> float:
    """Return the number of different bigrams per 100 bigrams.

    >>> distinct_2(["have a nice day", "have a good day"])
    83.33333333333333
    """
    bigrams = [bigram for reply in replies for bigram in pairwise(split_words(reply.lower()))]
    return 100 * len({*bigrams}) / max(1, len(bigrams))


def make_record(row: Row) -> dict[str, object]:
    path = ROOT / "recipes" / f"{row.recipe}.toml"
    splits = open_splits(load_recipe(path).recipe, path.parent)
    train = list(splits["train"])
    record: dict[str, object] = {"title": "baseline: reply to the most similar training utterance (TF-IDF)"}
    record["script"] = "retrieval_baseline.py"
    for split in ("valid", "test"):
        pairs = list(splits[split])
        numbers = retrieve([pair.source for pair in train], [pair.source for pair in pairs])
        outputs = [train[number].target for number in numbers]
        values = evaluate(row.metrics, outputs, [pair.target for pair in pairs])
        record[split] = {
            m: {"value": f.value, "signature": f.signature} for m, f in zip(row.metrics, values, strict=True)
        }
        record[f"{split}_distinct_2"] = {
            "retrieval": distinct_2(outputs),
            "references": distinct_2(pair.target for pair in pairs),
            "replies": len(outputs),
        }
    return {**record, "commit": git_commit(), "date": f"{datetime.now(UTC):%Y-%m-%d}"}


def main() -> None:
    if sys.argv[1:2] == ["--distinct"]:
        replies = Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()
        print(f"distinct-2 {distinct_2(replies):.2f} ({len(replies):,} replies)")
        return
    for row in ROWS:
        if row.baseline.endswith("-retrieval"):
            record = make_record(row)
            write_record(row.baseline, record)
            print(row.name, record, flush=True)


if __name__ == "__main__":
    main()
