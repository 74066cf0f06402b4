"""Using classifiers on lines of text: a label, its probability, and how much each word weighed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from heedful.attention import PLAIN, Detail, Watch
from heedful.data.tokenizer import END, UNK
from heedful.models.classifier import Judged
from heedful.record import NO_WORD, folded_words
from heedful.tasks.classify import Labeller, judged
from heedful.tasks.folder import RECIPE
from heedful.tasks.use import Say, aloud, limits_of, no_longer, processors


class Found(NamedTuple):
    """What one line is held to be; `weights` are those of its words, the mean over heads."""

    text: str
    label: str
    p: float
    probabilities: dict[str, float]
    words: list[str]
    weights: list[float] | None  # None for a model that weighs nothing
    unknown: int  # tokens that the model has never seen

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return self._asdict()


def classified(
    opened: Labeller,
    lines: Sequence[str],
    *,
    weights: bool = False,
    threads: int = 0,
    first: int = 1,
    say: Say = aloud,
) -> list[Found | None]:
    """The label of each line; a blank one has none. `first` is the first line's number, for what is said.

    Of a line without a single known word it is said that its label is a guess.
    """
    words = opened.words
    lines = no_longer(lines, words.source, limits_of([opened.recipe]), opened.path / RECIPE, first, say)
    full = [i for i, line in enumerate(lines) if line.strip()]
    ids = words.source.encode_all([lines[i] for i in full])
    for i, row in zip(full, ids, strict=True):
        if all(token in (UNK, END) for token in row):
            what = f'line {first + i} ("{lines[i][:20]}")'
            say(f"{what}: the model knows none of its words; its label is a guess")
    site = opened.model.alignment
    watch = Watch(Detail.WEIGHTS, opened.model.weighing) if weights and site is not None else PLAIN
    found: list[Found | None] = [None] * len(lines)

    def hear(rows: Sequence[int], said: Judged) -> None:
        p = said.logits.double().softmax(dim=-1).tolist()
        look = said.weights if watch is not PLAIN else None
        for place, row in enumerate(rows):
            line, mine = lines[full[row]], ids[row]
            read = None if look is None else look[place].double()[: len(mine)].numpy()
            found[full[row]] = _found(opened, line, mine, p[place], read)

    judged(opened.model, ids, hear, watch, threads or processors())
    return found


def _found(
    opened: Labeller, line: str, ids: Sequence[int], p: Sequence[float], read: np.ndarray | None
) -> Found:
    names = opened.words.labels.names
    best = max(range(len(p)), key=lambda i: p[i])
    of_word = opened.words.source.words(ids)
    shares = None
    if read is not None:
        shares = folded_words(read[None], of_word, [0])[0].tolist()
    texts = line.split()
    words = [texts[i] for i in range(max(of_word, default=NO_WORD) + 1)]
    unknown = sum(token == UNK for token in ids)
    return Found(line, names[best], p[best], dict(zip(names, p, strict=True)), words, shares, unknown)
