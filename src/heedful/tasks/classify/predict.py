"""Classify lines of text: the label, its probability, and the attention weight of each word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from heedful.attention import NO_HOOKS, Detail, Hooks
from heedful.data.token_statistics import is_unlike_training
from heedful.data.tokenizer import END, UNK
from heedful.models.classifier import ClassifierOutput
from heedful.parallel import available_cpus
from heedful.tasks.classify.assets import LoadedClassifier
from heedful.tasks.classify.score import run_classifier
from heedful.tasks.generation_result import UnlikeNotes
from heedful.tasks.limits import Log, OnTooLong, check_finite, inference_limits, limit_lines, warn
from heedful.terminal_text import shorten
from heedful.trace.schema import NO_WORD, fold_words

MAX_SHOWN, MAX_TEXT = 3, 40  # labels, and letters of the text, in the repr of a result


class Classification(NamedTuple):
    """The label of one line; `weights` are those of its words, mean over heads."""

    text: str
    label: str
    p: float
    probabilities: dict[str, float]
    words: list[str]
    weights: list[float] | None  # None for a model without attention
    unknown: int  # tokens outside the vocabulary
    unlike_training: bool | None = None  # None if the model folder has no statistics of its training data

    def __repr__(self) -> str:
        likely = sorted(self.probabilities.items(), key=lambda item: -item[1])[:MAX_SHOWN]
        shown = ", ".join(f"{name}: {p:.3f}" for name, p in likely)
        return f"<Classification of {shorten(self.text, MAX_TEXT)!r}: {shown}>"

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        return {**self._asdict(), "confidence": self.confidence}

    @property
    def confidence(self) -> float:
        """The probability of the label times the fraction of known words."""
        n_words = max(1, len(self.words), self.unknown)
        return self.p * (1 - self.unknown / n_words)


def classify_lines(
    loaded: LoadedClassifier,
    lines: Sequence[str],
    *,
    weights: bool = False,
    threads: int = 0,
    first_line: int = 1,
    log: Log = warn,
    on_too_long: OnTooLong = "cut",
    notes: UnlikeNotes | None = None,
) -> list[Classification | None]:
    """Return the classification of each line; None for a blank one. Messages number the lines from `first_line`.

    Lines that are unlike the training text are told to `notes`, by default to new ones, which log the first few.
    """
    tokenizer, max_tokens = loaded.assets.source, inference_limits([loaded.recipe]).max_source
    lines = limit_lines(lines, tokenizer, max_tokens, on_too_long, first_line, log)
    filled = [i for i, line in enumerate(lines) if line.strip()]
    ids = tokenizer.encode_all([lines[i] for i in filled])
    unlike: dict[int, bool | None] = {}
    own_notes = UnlikeNotes(log=log)
    for i, row in zip(filled, ids, strict=True):
        unlike[i] = _note_unlike(loaded, lines[i], row, first_line + i, own_notes if notes is None else notes)
    own_notes.finish()
    has_attention = loaded.model.alignment_site is not None
    hooks = Hooks(Detail.WEIGHTS, loaded.model.pooling_sites) if weights and has_attention else NO_HOOKS
    results: list[Classification | None] = [None] * len(lines)

    def collect(rows: Sequence[int], output: ClassifierOutput) -> None:
        probabilities = output.logits.double().softmax(dim=-1).tolist()
        by_position = output.weights if hooks is not NO_HOOKS else None
        for batch_row, row in enumerate(rows):
            token_weights = None if by_position is None else by_position[batch_row].double()[: len(ids[row])].numpy()
            line = lines[filled[row]]
            check_finite(probabilities[batch_row], f"line {first_line + filled[row]}", loaded.name)
            result = _classification(loaded, line, ids[row], probabilities[batch_row], token_weights)
            results[filled[row]] = result._replace(unlike_training=unlike[filled[row]])

    run_classifier(loaded.model, ids, collect, hooks, threads or available_cpus())
    return results


def _note_unlike(
    loaded: LoadedClassifier, line: str, ids: Sequence[int], number: int, notes: UnlikeNotes
) -> bool | None:
    """Return whether a line is unlike the training text, None if that is not known, and note it."""
    n_tokens, n_unknown = sum(token != END for token in ids), sum(token == UNK for token in ids)
    place = f'line {number} ("{line[:20]}")'
    if n_unknown == n_tokens:
        notes.add(place, "the model knows none of its words", "its label is a guess")
        return True
    if n_unknown > n_tokens / 2:
        notes.add(place, f"the model does not know {n_unknown} of its {n_tokens} words", "its label is uncertain")
        return True
    unlike = is_unlike_training(line, ids, loaded.assets.statistics)
    if unlike:
        notes.add(place, "most of this text is unlike the training data", "its label is a guess")
    return unlike


def _classification(
    loaded: LoadedClassifier,
    line: str,
    ids: Sequence[int],
    probabilities: Sequence[float],
    token_weights: np.ndarray | None,
) -> Classification:
    names = loaded.assets.labels.names
    best = max(range(len(probabilities)), key=lambda i: probabilities[i])
    word_ids = loaded.assets.source.word_ids(ids)
    weights = None if token_weights is None else fold_words(token_weights[None], word_ids, [0])[0].tolist()
    return Classification(
        line,
        names[best],
        probabilities[best],
        dict(zip(names, probabilities, strict=True)),
        line.split()[: max(word_ids, default=NO_WORD) + 1],
        weights,
        sum(token == UNK for token in ids),
    )
