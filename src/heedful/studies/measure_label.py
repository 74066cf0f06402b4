"""What `heedful measure` says of classifiers: one look a text, and each label a decision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from heedful.attention import Detail, Watch
from heedful.data.labels import plain_label
from heedful.data.readers import TextPair, read_lines
from heedful.errors import DataError
from heedful.evaluation import evaluate
from heedful.layers.pooling import POOL
from heedful.models.classifier import Judged
from heedful.record import NO_WORD, Edit, Links, entropy_ratio, folded_words
from heedful.studies.probe import Decision
from heedful.studies.probe_label import LabelProbe, label_probes, label_saliency, label_scores
from heedful.tasks.classify import Labeller, judged
from heedful.tasks.classify_evaluate import texts_of
from heedful.trace.whatif import change_of


class Looked(NamedTuple):
    """One text: the weights of its positions, the mean over heads, and the word of each position."""

    weights: np.ndarray
    words: list[int]


def looked_at(opened: Labeller, pairs: Sequence[TextPair]) -> list[Looked]:
    """Where the model looks in each text."""
    source = opened.words.source
    ids = source.encode_all([pair.source for pair in pairs])
    found: dict[int, Looked] = {}

    def hear(rows: Sequence[int], said: Judged) -> None:
        weights = said.weights
        assert weights is not None
        for place, row in enumerate(rows):
            mine = weights[place].double()[: len(ids[row])].numpy()
            found[row] = Looked(mine, source.words(ids[row]))

    judged(opened.model, ids, hear, Watch(Detail.WEIGHTS, opened.model.weighing))
    return [found[i] for i in range(len(pairs))]


def looking(looked: Sequence[Looked]) -> dict[str, float]:
    """How the looks are, whatever the gold says."""
    spread = [
        float(
            entropy_ratio(np.array([[w for w, word in zip(*mine, strict=True) if word != NO_WORD] or [1.0]]))[
                0
            ]
        )
        for mine in looked
    ]
    special = [sum(w for w, word in zip(*mine, strict=True) if word == NO_WORD) for mine in looked]
    largest = [float(mine.weights.max(initial=0.0)) for mine in looked]
    return {
        "entropy ratio": float(np.mean(spread)),
        "weight on special tokens": float(np.mean(special)),
        "largest weight": float(np.mean(largest)),
    }


def against_gold(looked: Sequence[Looked], gold: Sequence[Links]) -> dict[str, float]:
    """The weight on words that decide, beside what uniform weights would put there."""
    mass, even, favoured = [], [], []
    for mine, links in zip(looked, gold, strict=True):
        words = folded_words(mine.weights[None], mine.words, [0])[0]
        decisive = sorted({s for s, _ in links.possible if s < len(words)})
        if decisive and len(words):
            mass.append(float(words[decisive].sum()))
            even.append(len(decisive) / len(words))
            favoured.append(int(words.argmax()) in decisive)
    if not mass:
        raise DataError("none of these texts has a gold word")
    return {
        "mass on gold": float(np.mean(mass)),
        "mass on gold, uniform": float(np.mean(even)),
        "favoured word is gold": float(np.mean(favoured)),
    }


class LabelSubject:
    """A model and the labels it gave."""

    decision, quality, things, probed = "label", "accuracy", "words", True

    def __init__(self, opened: Labeller, pairs: Sequence[TextPair]) -> None:
        self.opened = opened
        self.references = [plain_label(pair.target) for pair in pairs]
        self.ids = opened.words.source.encode_all([pair.source for pair in pairs])

    @property
    def sources(self) -> Sequence[Sequence[int]]:
        return self.ids

    def chosen(self, each: int, seed: int) -> list[set[int]]:
        """A text has one label."""
        return [{0} for _ in self.ids]

    def probes(self, steps: Sequence[set[int]]) -> Iterator[LabelProbe]:
        return label_probes(self.opened.model, self.ids, [i for i, mine in enumerate(steps) if mine])

    def again(self, decisions: Sequence[Decision], sources: Sequence[Sequence[int]]) -> Tensor:
        return label_scores(self.opened.model, sources)

    def saliency(self, decisions: Sequence[Decision]) -> list[Tensor]:
        return label_saliency(self.opened.model, self.ids, [text for text, _ in decisions])

    def outputs(self, seed: int) -> dict[str, float]:
        """Accuracy when all weights are uniform, or permuted, in all heads."""
        found = {"as it is": self._accuracy(Watch())}
        for op in ("uniform", "permute"):
            change = change_of([Edit.model_validate({"op": op})], POOL, seed=seed)
            found[op] = self._accuracy(Watch(Detail.NONE, edit=change))
        return found

    def _accuracy(self, watch: Watch) -> float:
        names = self.opened.words.labels.names
        said: dict[int, str] = {}

        def hear(rows: Sequence[int], found: Judged) -> None:
            best = found.logits.argmax(dim=-1).tolist()
            said.update(zip(rows, (names[i] for i in best), strict=True))

        judged(self.opened.model, self.ids, hear, watch)
        outputs = [said[i] for i in range(len(self.ids))]
        return evaluate(["accuracy"], outputs, self.references)[0].value


class LabelWay:
    """Texts in, labels out."""

    unit = "texts"

    def items(self, opened: Labeller, data: Sequence[str], split: str) -> list[TextPair]:
        return texts_of(opened, data, split)

    def gold(self, path: Path, base: int) -> list[Links]:
        """A line a text: the numbers of the words that decide, as `heedful world moods` writes them."""
        found = []
        for number, line in enumerate(read_lines(path), 1):
            cells = line.split()
            if not all(cell.isdecimal() and int(cell) >= base for cell in cells):
                raise DataError(f"{path}, line {number}: expected words' numbers from {base}: {line[:60]!r}")
            links = frozenset((int(cell) - base, 0) for cell in cells)
            found.append(Links(links, links))
        return found

    def looks(
        self, opened: Labeller, pairs: Sequence[TextPair], gold: Sequence[Links] | None
    ) -> dict[str, Any]:
        looked = looked_at(opened, pairs)
        found: dict[str, Any] = {"looks": looking(looked)}
        if gold is not None:
            found["gold"] = against_gold(looked, gold)
        return found

    def subject(self, opened: Labeller, pairs: Sequence[TextPair]) -> LabelSubject:
        return LabelSubject(opened, pairs)


WAY = LabelWay()
