"""Read lines with a language model: the surprisal of each word, and which earlier words it attends to."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from heedful.attention import NO_HOOKS, Detail, Hooks
from heedful.data.text import sentence_batch
from heedful.data.tokenizer import UNK
from heedful.tasks.language_model.assets import LoadedLanguageModel
from heedful.tasks.language_model.data import inference_max_tokens, start_token
from heedful.tasks.language_model.score import score_batch
from heedful.tasks.limits import MIN_LIMIT, Log, OnTooLong, check_finite, limit_lines, warn
from heedful.trace.schema.fold import Array, fold

START_TEXT, END_TEXT = "<s>", "</s>"


def exp2(exponent: float) -> float:
    """Return 2 ** exponent; infinity where it is too large for a float.

    >>> exp2(3.0), exp2(5000.0)
    (8.0, inf)
    """
    return 2.0**exponent if exponent < sys.float_info.max_exp else math.inf


class Word(NamedTuple):
    """A word as it was typed, or the end token of the line."""

    text: str
    bits: float
    unknown: bool
    weights: tuple[float, ...]  # of `<s>` and of each earlier word; () without attention

    def top(self, earlier: Sequence[str], count: int) -> list[tuple[str, float]]:
        """Return the earlier words with the largest attention weights."""
        order = sorted(range(len(self.weights)), key=lambda i: -self.weights[i])[:count]
        return [(earlier[i], self.weights[i]) for i in order if self.weights[i] > 0]


class Line(NamedTuple):
    """A line with the surprisal of each word."""

    text: str
    words: list[Word]
    tokens: int

    @property
    def bits(self) -> float:
        return sum(word.bits for word in self.words)

    @property
    def perplexity(self) -> float:
        return exp2(self.bits / max(1, self.tokens))

    @property
    def readable(self) -> list[str]:
        """Return the positions that words attend to, in order: `<s>` and the words."""
        return [START_TEXT, *(word.text for word in self.words)]

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON; `weights` are those of `<s>` and of each earlier word."""
        words = [{"word": w.text, "bits": w.bits, "unknown": w.unknown, "weights": list(w.weights)} for w in self.words]
        total = {"tokens": self.tokens, "bits": self.bits, "perplexity": self.perplexity}
        return {"text": self.text, **(total if words else {}), "words": words}


def limit_to_model(
    loaded: LoadedLanguageModel,
    lines: Sequence[str],
    on_too_long: OnTooLong = "cut",
    first_line: int = 1,
    log: Log = warn,
) -> list[str]:
    """Cut lines that are too long for the model, replace them by blank lines (skip), or raise an error."""
    max_tokens = inference_max_tokens(loaded.recipe) or MIN_LIMIT
    return limit_lines(lines, loaded.assets.text, max_tokens, on_too_long, first_line, log)


@torch.inference_mode()
def read_lines(
    loaded: LoadedLanguageModel,
    lines: Sequence[str],
    first_line: int = 1,
    log: Log = warn,
    on_too_long: OnTooLong = "cut",
) -> Iterator[Line]:
    """Yield each line with its surprisals; a blank line has no words. Messages number the lines from `first_line`."""
    for number, line in enumerate(limit_to_model(loaded, lines, on_too_long, first_line, log), first_line):
        yield _read_line(loaded, line, number, log) if line.strip() else Line(line, [], 0)


def _read_line(loaded: LoadedLanguageModel, line: str, number: int, log: Log) -> Line:
    ids = loaded.assets.text.encode(line)
    unknown = [i == UNK for i in ids[:-1]]
    if unknown and all(unknown):
        log(f"line {number}: {loaded.name} knows none of its words; all are read as <unk>")
    site = loaded.model.alignment_site
    hooks = NO_HOOKS if site is None else Hooks(Detail.WEIGHTS, frozenset({site}))
    (row,) = loaded.assets.encode_all([line])
    scores = score_batch(loaded.model, sentence_batch([row], start_token(loaded.recipe)), hooks=hooks)
    bits = (scores.surprisal.double() / math.log(2)).tolist()
    check_finite(bits, f"line {number}", loaded.name)
    weights = None if site is None else scores.attentions[site].weights
    matrix = None if weights is None else weights[0].double().mean(dim=1).numpy()
    return Line(line, _fold_words(loaded, line, ids, bits, matrix), len(ids))


def _fold_words(
    loaded: LoadedLanguageModel, line: str, ids: Sequence[int], bits: Sequence[float], matrix: Array | None
) -> list[Word]:
    """Fold subwords into words: bits are summed, weights folded as in a trace."""
    texts = line.split()
    positions: list[list[int]] = [[] for _ in texts]
    for position, word in enumerate(loaded.assets.text.word_ids(ids)[:-1]):
        positions[word].append(position)
    folded = None
    if matrix is not None:  # position p has read p inputs: the start token, then all words but the last
        on_inputs = matrix[:, matrix.shape[1] - matrix.shape[0] :]
        inputs = [[0], *([position + 1 for position in group] for group in positions)]
        folded = fold(np.asarray(on_inputs), inputs, inputs)
    words = []
    for index, (text, group) in enumerate(zip(texts, positions, strict=True)):
        weights = () if folded is None else tuple(folded[index + 1, : index + 1].tolist())
        unknown = any(ids[i] == UNK for i in group)
        words.append(Word(text, sum(bits[i] for i in group), unknown, weights))
    return [*words, Word(END_TEXT, bits[-1], False, ())]
