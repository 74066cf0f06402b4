"""`heedful evaluate`: how good a model's outputs are, where quality is lost, and which of two is better."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from heedful.config import DecodingConfig, Recipe, load_recipe
from heedful.data.batch import collate
from heedful.data.corpus import open_corpus
from heedful.data.readers import TextPair, read_pairs
from heedful.decoding import Forced, search
from heedful.errors import DataError, nearest
from heedful.evaluation import (
    Comparison,
    LengthBucket,
    Metric,
    Place,
    by_length,
    by_place,
    check_names,
    evaluate,
    main_of,
    paired_bootstrap,
    perplexity,
)
from heedful.tasks.folder import RECIPE
from heedful.tasks.kind import Question, Table
from heedful.tasks.text import open_splits
from heedful.tasks.use import Ready, open_models, texts

USUAL = {
    "translate": ("bleu", "chrf", "ter", "exact"),
    "summarise": ("rouge", "exact"),
    "reply": ("bleu", "chrf", "exact"),
    "transduce": ("line-error", "symbol-error", "exact"),
}


class Evaluation(NamedTuple):
    """What was measured on one set of pairs."""

    name: str
    task: str
    metrics: list[Metric]
    lengths: list[LengthBucket]
    places: list[Place]
    outputs: list[str]
    references: list[str]
    unit: str = "pairs"
    main: str = "bleu"  # the metric to compare by

    @property
    def items(self) -> int:
        return len(self.outputs)

    def tables(self) -> list[Table]:
        """Quality by length, and by place in the sentence."""
        lengths = [
            (f"{b.low}-{'' if b.high is None else b.high}", str(b.items), f"{b.metric.value:.2f}")
            for b in self.lengths
        ]
        places = [(f"{p.low:.0%}-{p.high:.0%}", str(p.words), f"{p.recall:.1f} %") for p in self.places]
        return [
            Table(("source words", "sentences", self.lengths[0].metric.name), lengths),
            Table(("part of the reference", "words", "found in the output"), places),
        ]

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "metrics": [m._asdict() for m in self.metrics],
            "by_source_length": [{**b._asdict(), "metric": b.metric._asdict()} for b in self.lengths],
            "by_place": [p._asdict() for p in self.places],
        }

    def against(self, other: Evaluation) -> Comparison:
        """Paired bootstrap between two systems' outputs, by the first metric."""
        return paired_bootstrap(self.outputs, other.outputs, self.references, metric=self.main)


def evaluated(folders: Sequence[Path], asked: Question) -> Evaluation:
    """One model, or several as one, on the data asked for."""
    check_names(asked.metrics)
    if asked.gallery is not None:
        raise DataError("--gallery is for captions: it shows pictures")
    ready = open_models(folders, asked.int8, asked.threads)
    how = ready.decoding.model_copy(update=dict(asked.decoding))
    return measure(ready, pairs_of(folders[0], asked.data, asked.split), how, asked.metrics)


def pairs_of(model: Path, files: Sequence[str], split: str) -> list[TextPair]:
    """The pairs to measure on: the files given, or a split of the recipe the model was trained by."""
    if len(files) > 2:
        raise DataError(f"--data: one TSV or JSONL, or a source and a target file; {len(files)} were given")
    if files:
        return read_pairs(files, Path.cwd())
    recipe: Recipe = load_recipe(model / RECIPE).recipe
    splits = open_splits(recipe, Path())
    if split not in splits:
        raise DataError(
            f'the recipe of {model} names no "{split}" data; {nearest(split, splits)}; or give --data'
        )
    return list(splits[split])


def measure(
    ready: Ready, pairs: Sequence[TextPair], how: DecodingConfig, metrics: Sequence[str] = ()
) -> Evaluation:
    """Write an output for every source and compare it with its reference."""
    sources, references = [p.source for p in pairs], [p.target for p in pairs]
    likely = likelihood(ready, pairs)  # quick, so what it refuses is refused soon
    outputs = [best[0] for best in texts(ready, sources, how)]
    names = list(metrics) or list(USUAL[ready.task])
    if not metrics and "bleu" in names and ready.words.target.small:
        names.insert(0, "bleu-lc")  # a model of small letters: `bleu` counts every capital against it
    found = [*evaluate(names, outputs, references), likely]
    main = main_of(names)
    lengths = [len(source.split()) for source in sources]
    return Evaluation(
        ready.name,
        ready.task,
        found,
        by_length(lengths, outputs, references, metric=main),
        by_place(outputs, references),
        outputs,
        references,
        main=main,
    )


@torch.inference_mode()
def likelihood(ready: Ready, pairs: Sequence[TextPair]) -> Metric:
    """Perplexity of the references, the end token counted."""
    corpus = open_corpus(list(pairs), ready.words.source, ready.words.target, ready.limits)
    total, count = 0.0, 0
    for first in range(0, len(corpus), 50):
        batch = collate([corpus[row] for row in range(first, min(first + 50, len(corpus)))])
        for (hypothesis,) in search(ready.writer, batch, Forced()).best:
            total += hypothesis.logp
            count += len(hypothesis.tokens)
    return perplexity(total, count)
