"""`heedful evaluate` of language models: perplexity with its protocol, and by position in the line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heedful.data.line_file import LineFile, open_lines
from heedful.data.text import encode_text
from heedful.data.tokenizer import UNK
from heedful.errors import DataError, ModelError, nearest
from heedful.metrics import (
    Comparison,
    Metric,
    PerplexityBin,
    bits_per_character,
    compare_states,
    perplexity_by_position,
    surprisal,
)
from heedful.metrics.surprisal import Nats
from heedful.tasks.base import EvaluationRequest, Table
from heedful.tasks.language_model.assets import LoadedLanguageModel
from heedful.tasks.language_model.data import inference_max_tokens, protocol_name
from heedful.tasks.language_model.score import token_surprisals
from heedful.tasks.limits import check_finite
from heedful.tasks.model_folder import load_model
from heedful.tasks.splits import choose_split

PERPLEXITY, BITS = surprisal.PERPLEXITY.name, surprisal.BITS_PER_CHARACTER.name
METRICS = (PERPLEXITY, BITS)


class LanguageModelEvaluation(NamedTuple):
    """The metrics of a language model on one text."""

    name: str
    metrics: list[Metric]
    surprisals: list[Nats]  # of each line
    positions: list[PerplexityBin]
    protocol: str
    unknown: int  # words outside the vocabulary
    unit: str = "lines"

    @property
    def items(self) -> int:
        return len(self.surprisals)

    def tables(self) -> list[Table]:
        """Return the perplexity by position in the line."""
        rows = [
            (
                f"{p.low}" if p.low == p.high else f"{p.low}-{p.high or ''}",
                f"{p.tokens:,}",
                f"{p.perplexity:.2f}",
            )
            for p in self.positions
        ]
        return [Table(("position in the line", "tokens", "perplexity"), rows)]

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        return {
            "metrics": [m.to_dict() for m in self.metrics],
            "by_position": [p._asdict() for p in self.positions],
            "unknown": self.unknown,
        }

    def compare_to(self, other: LanguageModelEvaluation) -> Comparison:
        """Compare two models by a paired bootstrap over lines."""
        lengths, other_lengths = ([len(nats) for nats in each.surprisals] for each in (self, other))
        if lengths != other_lengths or self.unknown != other.unknown:
            raise DataError(
                f"{self.name} and {other.name} split the text into different tokens: their perplexities"
                " cannot be compared"
            )
        first, second = (surprisal.PERPLEXITY.state(each.surprisals, each.protocol) for each in (self, other))
        return compare_states(first, second)


def evaluate_models(folders: Sequence[Path], request: EvaluationRequest) -> LanguageModelEvaluation:
    """Evaluate one language model on the requested text."""
    _check_request(folders, request)
    loaded: LoadedLanguageModel = load_model(folders[0])
    recipe = loaded.recipe
    lines = list(evaluation_lines(loaded, request.data, request.split))
    text = encode_text(lines, loaded.assets.encode_all, recipe.data, inference_max_tokens(recipe))
    shortened = text.counts.cut + text.counts.skipped
    protocol = protocol_name(recipe) + (f"|lines {recipe.data.on_too_long}:{shortened}" if shortened else "")
    surprisals = token_surprisals(loaded.model, text, recipe)
    check_finite(map(float, map(np.sum, surprisals)), "the text", loaded.name)
    unknown = sum(row.count(UNK) for row in loaded.assets.text.encode_all(lines))
    metrics = {PERPLEXITY: surprisal.PERPLEXITY.state(surprisals, protocol).metric()}
    if not unknown and not shortened:
        metrics[BITS] = bits_per_character(surprisals, lines, protocol)
    elif BITS in request.metrics:
        raise DataError(
            f"{BITS}: not defined here: {unknown:,} words are unknown to {loaded.name} and {shortened:,} lines are"
            " too long, so not all characters were read"
        )
    names = [*request.metrics] or list(metrics)
    return LanguageModelEvaluation(
        loaded.name,
        [metrics[name] for name in names],
        surprisals,
        perplexity_by_position(surprisals),
        protocol,
        unknown,
    )


def _check_request(folders: Sequence[Path], request: EvaluationRequest) -> None:
    unknown = [name for name in request.metrics if name not in METRICS]
    if unknown:
        raise DataError("\n".join(f'"{name}": no such metric; {nearest(name, METRICS)}' for name in unknown))
    if len(folders) > 1:
        raise ModelError(f"an ensemble of language models is not supported: give one model, got {len(folders)}")
    if request.decoding.model_fields_set or request.int8 or request.gallery:
        raise DataError("--beam, --length-penalty, --int8, --gallery: a language model scores text and generates none")


def evaluation_lines(loaded: LoadedLanguageModel, data: Sequence[str], split: str) -> Iterable[str]:
    """Return the lines of a file, or of a split of the model's recipe."""
    if len(data) > 1:
        raise DataError(f"--data: expected one text file, got {len(data)}")
    if data:
        return LineFile(Path(data[0]), loaded.recipe.data)
    return choose_split(open_lines(loaded.recipe.data, Path()), split, loaded.name)
