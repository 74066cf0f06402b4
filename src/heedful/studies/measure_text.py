"""What `heedful measure` says of text models: looks while references are written, decisions word by word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from heedful.attention import Detail, Watch
from heedful.config import DecodingConfig
from heedful.data.batch import Encoded, collate
from heedful.data.readers import TextPair
from heedful.decoding import Forced, Hypothesis, search
from heedful.evaluation import evaluate
from heedful.evaluation.alignment import alignment_error, diagonal
from heedful.layers.state import COPY
from heedful.models import Seq2Seq
from heedful.record import NO_WORD, READINGS, Edit, Links, entropy_ratio, folded_words, read_links, word_links
from heedful.studies.probe import (
    Corpus,
    Decision,
    TextProbe,
    chosen_steps,
    saliency,
    scored,
    text_probes,
)
from heedful.tasks.evaluate import pairs_of
from heedful.tasks.text import TextModel, answer, writable
from heedful.trace.whatif import change_of


class Looked(NamedTuple):
    """One sentence written with its weights: (step, position), mean over heads; words of both sides."""

    weights: np.ndarray
    source: list[int]
    target: list[int]


def forced_looks(
    opened: TextModel, pairs: Sequence[TextPair], sites: Sequence[str]
) -> dict[str, list[Looked]]:
    """Where the model looks, by each of these sites, while it writes the references."""
    model, words = opened.model, opened.words
    ids = [Encoded(words.source.encode(p.source), words.target.encode(p.target)) for p in pairs]
    order = sorted(range(len(ids)), key=lambda i: len(ids[i].source))
    found: dict[str, dict[int, Looked]] = {site: {} for site in sites}
    watch = Watch(Detail.WEIGHTS, frozenset(sites))
    for first in range(0, len(order), 50):
        rows = order[first : first + 50]
        best = search(model, collate([ids[row] for row in rows]), Forced(), watch).best
        for row, (hypothesis,) in zip(rows, best, strict=True):
            of_source, of_target = words.source.words(ids[row].source), words.target.words(ids[row].target)
            for site, mine in found.items():
                weights = hypothesis.looks[site].mean(dim=1).double().numpy()
                mine[row] = Looked(weights, of_source, of_target)
    return {site: [mine[i] for i in range(len(pairs))] for site, mine in found.items()}


def looking(looked: Sequence[Looked]) -> dict[str, float]:
    """How the looks are, whatever the gold says."""
    entropy, sink, unread, forward, steps, words = 0.0, 0.0, 0, 0, 0, 0
    moves = 0
    for weights, source, target in looked:
        entropy += float(entropy_ratio(weights).sum())
        rows = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-12)
        special = [at for at, word in enumerate(source) if word == NO_WORD]
        sink += float(rows[:, special].sum())
        steps += len(rows)
        folded = folded_words(weights, source, target)
        if folded.size:
            unread += int((folded.sum(axis=0) < 0.1).sum())
            words += folded.shape[1]
            best = folded.argmax(axis=1)
            forward += int((np.diff(best) >= 0).sum())
            moves += len(best) - 1
    return {
        "entropy ratio": entropy / max(1, steps),
        "weight on special tokens": sink / max(1, steps),
        "source words hardly read": unread / max(1, words),
        "steps that do not go back": forward / max(1, moves),
    }


def _readings(looked: Sequence[Looked], gold: Sequence[Links], shift: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for how in READINGS:
        links = [word_links(mine.weights, mine.source, mine.target, how, shift) for mine in looked]
        found[how] = alignment_error(links, gold)._asdict()
    return found


def against_gold(looked: Sequence[Looked], gold: Sequence[Links], shift: int) -> dict[str, Any]:
    """Error rate, precision and recall of every reading, and baselines that see no weights."""
    found: dict[str, Any] = _readings(looked, gold, shift)
    sizes = [(max(m.source, default=-1) + 1, max(m.target, default=-1) + 1) for m in looked]
    found["diagonal"] = alignment_error([diagonal(*size) for size in sizes], gold)._asdict()
    mass, even, count = 0.0, 0.0, 0
    for mine, (sure, possible) in zip(looked, gold, strict=True):
        folded = folded_words(mine.weights, mine.source, mine.target)
        for target in range(folded.shape[0]):
            linked = [s for s, t in sure | possible if t == target and s < folded.shape[1]]
            if linked:
                mass += float(folded[target, linked].sum())
                even += len(linked) / folded.shape[1]
                count += 1
    found["mass on gold"] = mass / max(1, count)
    found["mass on gold, uniform"] = even / max(1, count)
    return found


class WritingSubject:
    """A model and the outputs it wrote itself: every next word is a decision."""

    decision, things, probed = "next word", "source words", True
    model: Seq2Seq
    corpus: Corpus

    @property
    def sources(self) -> Sequence[Sequence[int]]:
        return self.corpus.sources

    def chosen(self, each: int, seed: int) -> list[set[int]]:
        return chosen_steps(self.corpus, each, seed)

    def probes(self, steps: Sequence[set[int]]) -> Iterator[TextProbe]:
        return text_probes(self.model, self.corpus, steps)

    def again(self, decisions: Sequence[Decision], sources: Sequence[Sequence[int]]) -> Tensor:
        return scored(self.model, self.corpus, decisions, sources)

    def saliency(self, decisions: Sequence[Decision]) -> list[Tensor]:
        return saliency(self.model, self.corpus, decisions)


class TextSubject(WritingSubject):
    """Lines into lines."""

    quality = "BLEU"

    def __init__(self, opened: TextModel, pairs: Sequence[TextPair]) -> None:
        self.opened, self.model, self.pairs = opened, opened.model, pairs
        lines = [pair.source for pair in pairs]
        self.own = [best[0] for best in answer(opened.model, lines, opened.words, self._how())]
        sources = [opened.words.source.encode(line) for line in lines]
        self.corpus = Corpus(sources, [h.tokens for h in self.own])

    def _how(self) -> DecodingConfig:
        return DecodingConfig(max_length=self.opened.recipe.decoding.max_length)

    def outputs(self, seed: int) -> dict[str, float]:
        """BLEU of whole outputs when every step's weights are uniform, or permuted, in all heads."""
        model, words = self.opened.model, self.opened.words
        lines = [p.source for p in self.pairs]
        references = writable([p.target for p in self.pairs], words)

        def bleu(found: Sequence[Hypothesis]) -> float:
            texts = [words.target.decode(h.tokens) for h in found]
            return evaluate(["bleu"], texts, references)[0].value

        scores = {"as it is": bleu(self.own)}
        for op in ("uniform", "permute"):
            change = change_of([Edit.model_validate({"op": op})], model.alignment, seed=seed)
            found = answer(model, lines, words, self._how(), Watch(Detail.NONE, edit=change))
            scores[op] = bleu([best[0] for best in found])
        return scores


class TextWay:
    """Sentences in, sentences out."""

    unit = "sentences"

    def items(self, opened: TextModel, data: Sequence[str], split: str) -> list[TextPair]:
        return pairs_of(opened.path, data, split)

    def gold(self, path: Path, base: int) -> list[Links]:
        return read_links(path, base)

    def looks(
        self, opened: TextModel, pairs: Sequence[TextPair], gold: Sequence[Links] | None
    ) -> dict[str, Any]:
        model = opened.model
        usual = str(model.alignment)
        sites = [site.id for site in model.sites if site.kind == "cross" and site.id != COPY]
        looked = forced_looks(opened, pairs, sites if gold is not None else [usual])
        found: dict[str, Any] = {"looks": looking(looked[usual])}
        if gold is None:
            return found
        found["gold"] = against_gold(looked[usual], gold, model.shift)
        if len(sites) > 1:
            found["gold"]["layers"] = {site: _readings(looked[site], gold, model.shift) for site in sites}
        return found

    def subject(self, opened: TextModel, pairs: Sequence[TextPair]) -> TextSubject:
        return TextSubject(opened, pairs)


WAY = TextWay()
