"""`heedful evaluate` of sequence-to-sequence models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from heedful.config import DecodingOptions, load_recipe
from heedful.data.asset_files import asset_file
from heedful.data.batch import collate
from heedful.data.corpus import open_corpus
from heedful.data.pairs import PairFiles, TextPair
from heedful.decoding import NEVER, StopCondition, force_decode
from heedful.errors import DataError
from heedful.metrics import (
    Comparison,
    LengthBucket,
    Metric,
    RecallBin,
    check_metric_names,
    evaluate,
    metric_by_length,
    paired_bootstrap,
    perplexity,
    primary_metric,
    recall_by_position,
)
from heedful.tasks.base import EvaluationRequest, Table, no_log
from heedful.tasks.model_card import RECIPE
from heedful.tasks.seq2seq.predict import Predictor, generate_texts, load_predictor
from heedful.tasks.splits import choose_split, open_splits

ROWS = 50  # pairs per batch
DEFAULT_METRICS = {
    "translate": ("bleu", "chrf", "ter", "exact"),
    "summarize": ("rouge", "exact"),
    "reply": ("bleu", "chrf", "exact"),
    "transduce": ("line-error", "symbol-error", "exact"),
}


class Seq2SeqEvaluation(NamedTuple):
    """The metrics of a model on some pairs, by source length and by position in the reference."""

    name: str
    task: str
    metrics: list[Metric]
    lengths: list[LengthBucket]
    positions: list[RecallBin]
    outputs: list[str]
    references: list[str]
    unit: str = "pairs"
    main: str = "bleu"  # the metric of comparisons

    @property
    def items(self) -> int:
        return len(self.outputs)

    def tables(self) -> list[Table]:
        """Return quality by source length, and recall by position in the reference."""
        lengths = [
            (f"{b.low}-{'' if b.high is None else b.high}", str(b.items), f"{b.metric.value:.2f}") for b in self.lengths
        ]
        positions = [(f"{p.low:.0%}-{p.high:.0%}", str(p.words), f"{p.recall:.1f} %") for p in self.positions]
        return [
            Table(("source words", "sentences", self.lengths[0].metric.name), lengths),
            Table(("part of the reference", "words", "found in the output"), positions),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        return {
            "metrics": [m.to_dict() for m in self.metrics],
            "by_source_length": [{**b._asdict(), "metric": b.metric.to_dict()} for b in self.lengths],
            "by_position": [p._asdict() for p in self.positions],
        }

    def compare_to(self, other: Seq2SeqEvaluation) -> Comparison:
        """Compare two models by a paired bootstrap over the main metric."""
        return paired_bootstrap(self.outputs, other.outputs, self.references, metric=self.main)


def evaluate_models(folders: Sequence[Path], request: EvaluationRequest) -> Seq2SeqEvaluation:
    """Evaluate one model or an ensemble on the requested data."""
    check_metric_names(request.metrics)
    if request.gallery is not None:
        raise DataError("--gallery: only captioning models have one")
    predictor = load_predictor(folders, request.int8, request.threads)
    decoding = predictor.decoding.override(request.decoding)
    pairs = evaluation_pairs(folders[0], request.data, request.split, request.log)
    return evaluate_pairs(predictor, pairs, decoding, request.metrics, request.stop)


def evaluation_pairs(
    model: Path, files: Sequence[str], split: str, log: Callable[[str], None] = no_log
) -> list[TextPair]:
    """Return the pairs of the given files, or of a split of the model's recipe."""
    if len(files) > 2:
        raise DataError(
            f"--data: expected one table (CSV, TSV, JSON, Parquet), or a source and a target file, got {len(files)}"
        )
    recipe = load_recipe(asset_file(model, RECIPE)).recipe
    if files:
        by_name = any(isinstance(column, str) for column in recipe.data.columns)
        pairs = PairFiles(files, Path.cwd(), recipe.data if by_name and len(files) == 1 else None)
        for line in pairs.describe():
            log(line)
        return list(pairs)
    splits = open_splits(recipe, Path())
    return list(choose_split(splits, split, str(model)))


def evaluate_pairs(
    predictor: Predictor,
    pairs: Sequence[TextPair],
    decoding: DecodingOptions,
    metrics: Sequence[str] = (),
    stop: StopCondition = NEVER,
) -> Seq2SeqEvaluation:
    """Generate an output for every source and compare it with its reference."""
    sources, references = [p.source for p in pairs], [p.target for p in pairs]
    likelihood = reference_perplexity(
        predictor, pairs, lambda: stop.check(0, decoding.max_length)
    )  # fast, so errors in the data are reported early
    policy = predictor.limits.on_too_long
    outputs = [best[0] for best in generate_texts(predictor, sources, decoding, on_too_long=policy, stop=stop)]
    names = list(metrics) or list(DEFAULT_METRICS[predictor.task])
    if not metrics and "bleu" in names and predictor.assets.target.lowercases:
        names.insert(0, "bleu-lc")  # `bleu` counts every capital as an error of a lowercasing model
    main = primary_metric(names)
    lengths = [len(source.split()) for source in sources]
    return Seq2SeqEvaluation(
        predictor.name,
        predictor.task,
        [*evaluate(names, outputs, references), likelihood],
        metric_by_length(lengths, outputs, references, metric=main),
        recall_by_position(outputs, references),
        outputs,
        references,
        main=main,
    )


@torch.inference_mode()
def reference_perplexity(predictor: Predictor, pairs: Sequence[TextPair], before_batch: Callable[[], None]) -> Metric:
    """Return the perplexity of the references; the end token counts."""
    corpus = open_corpus(list(pairs), predictor.assets.source, predictor.assets.target, predictor.limits)
    total, count = 0.0, 0
    for first in range(0, len(corpus), ROWS):
        before_batch()
        batch = collate([corpus[row] for row in range(first, min(first + ROWS, len(corpus)))])
        for hypothesis in force_decode(predictor.model, batch):
            total += hypothesis.logp
            count += len(hypothesis.tokens)
    return perplexity(total, count)
