"""`heedful evaluate` of readers: perplexity with its protocol, by place in the line, and which is better."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heedful.data.lines import Lines, encoded, open_lines
from heedful.data.tokenizer import UNK
from heedful.errors import DataError, ModelError, nearest
from heedful.evaluation import (
    Comparison,
    Metric,
    PositionBucket,
    bits_per_character,
    by_position,
    compared,
    perplexity_tally,
)
from heedful.evaluation.surprisal import Nats
from heedful.tasks.folder import open_model
from heedful.tasks.kind import Question, Table
from heedful.tasks.read import ReaderModel, foreseen, longest_used, protocol_of

PERPLEXITY, BITS = "perplexity", "bits-per-character"
METRICS = (PERPLEXITY, BITS)


class ReadEvaluation(NamedTuple):
    """What was measured on one text."""

    name: str
    metrics: list[Metric]
    sentences: list[Nats]
    places: list[PositionBucket]
    protocol: str
    unknown: int  # words outside the vocabulary
    unit: str = "lines"

    @property
    def items(self) -> int:
        return len(self.sentences)

    def tables(self) -> list[Table]:
        """Perplexity by place in the sentence."""
        rows = [
            (
                f"{p.low}" if p.low == p.high else f"{p.low}-{p.high or ''}",
                f"{p.tokens:,}",
                f"{p.perplexity:.2f}",
            )
            for p in self.places
        ]
        return [Table(("place in the line", "tokens", "perplexity"), rows)]

    def plain(self) -> dict[str, Any]:
        return {
            "metrics": [m._asdict() for m in self.metrics],
            "by_position": [p._asdict() for p in self.places],
            "unknown": self.unknown,
        }

    def against(self, other: ReadEvaluation) -> Comparison:
        """Paired bootstrap over lines, each with all its log-probabilities."""
        same = [len(nats) for nats in self.sentences] == [len(nats) for nats in other.sentences]
        if not same or self.unknown != other.unknown:
            raise DataError(
                f"{self.name} and {other.name} cut the text into different tokens: their perplexities"
                " cannot be compared"
            )
        mine, theirs = (perplexity_tally(made.sentences, made.protocol) for made in (self, other))
        return compared((mine, theirs))


def evaluated(folders: Sequence[Path], asked: Question) -> ReadEvaluation:
    """One reader on the text asked for."""
    _check(folders, asked)
    opened: ReaderModel = open_model(folders[0])
    recipe = opened.recipe
    lines = list(lines_of(opened, asked))
    text = encoded(lines, opened.words.encode_all, recipe.data, longest_used(recipe))
    shortened = text.tally.cut + text.tally.skipped
    protocol = protocol_of(recipe) + (f"|lines {recipe.data.longer}:{shortened}" if shortened else "")
    found = foreseen(opened.model, text, recipe)
    unknown = sum(row.count(UNK) for row in opened.words.text.encode_all(lines))
    metrics = {PERPLEXITY: perplexity_tally(found, protocol).metric()}
    if not unknown and not shortened:
        metrics[BITS] = bits_per_character(found, lines, protocol)
    elif BITS in asked.metrics:
        raise DataError(
            f"{BITS}: {unknown:,} words of the text are unknown to {opened.name} and {shortened:,} lines too"
            " long, so what was read are not its characters"
        )
    names = [*asked.metrics] or list(metrics)
    return ReadEvaluation(
        opened.name, [metrics[name] for name in names], found, by_position(found), protocol, unknown
    )


def _check(folders: Sequence[Path], asked: Question) -> None:
    wrong = [name for name in asked.metrics if name not in METRICS]
    if wrong:
        raise DataError("\n".join(f'"{name}": no such metric; {nearest(name, METRICS)}' for name in wrong))
    if len(folders) > 1:
        raise ModelError(f"readers are measured one at a time; {len(folders)} were given")
    if asked.decoding or asked.int8 or asked.gallery:
        raise DataError(
            "--beam, --length-penalty, --int8, --gallery: a reader writes nothing; it says what is likely"
        )


def lines_of(opened: ReaderModel, asked: Question) -> Iterable[str]:
    if len(asked.data) > 1:
        raise DataError(f"--data: a reader reads one file of text; {len(asked.data)} were given")
    if asked.data:
        return Lines(Path(asked.data[0]), opened.recipe.data)
    splits = open_lines(opened.recipe.data, Path())
    if asked.split not in splits:
        raise DataError(
            f'the recipe of {opened.name} names no "{asked.split}" data; {nearest(asked.split, splits)};'
            " or give --data"
        )
    return splits[asked.split]
