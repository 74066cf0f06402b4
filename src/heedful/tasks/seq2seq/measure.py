"""`heedful measure` of sequence-to-sequence models: cross-attention while references are forced, and its effect."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heedful.attention import NO_HOOKS, Detail, Hooks
from heedful.config import DecodingOptions
from heedful.data.batch import EncodedPair, collate
from heedful.data.pairs import TextPair
from heedful.decoding import Hypothesis, force_decode
from heedful.layers.state import COPY
from heedful.metrics import evaluate
from heedful.metrics.alignment import diagonal_links, score_alignment
from heedful.tasks.generation_probes import GeneratedCorpus, GenerationProbeTarget
from heedful.tasks.probes import OUTPUT_EDITS
from heedful.tasks.seq2seq.assets import LoadedSeq2Seq
from heedful.tasks.seq2seq.evaluate import evaluation_pairs
from heedful.tasks.seq2seq.predict import search_lines
from heedful.trace.edits import build_edit_hook
from heedful.trace.schema import (
    LINK_METHODS,
    NO_WORD,
    Edit,
    Links,
    entropy_ratio,
    fold_words,
    read_links,
    word_links,
)

ROWS = 50  # pairs per batch
HARDLY_READ = 0.1  # total weight of a source word below which it counts as hardly read


class PairWeights(NamedTuple):
    """The weights (step, position) of one pair, mean over heads, and the word of each token of both sides."""

    weights: np.ndarray
    source: list[int]
    target: list[int]


def forced_weights(
    loaded: LoadedSeq2Seq, pairs: Sequence[TextPair], sites: Sequence[str]
) -> dict[str, list[PairWeights]]:
    """Return the weights of each site while the references are forced."""
    source, target = loaded.assets.source, loaded.assets.target
    ids = [EncodedPair(source.encode(pair.source), target.encode(pair.target)) for pair in pairs]
    order = sorted(range(len(ids)), key=lambda i: len(ids[i].source))
    by_site: dict[str, dict[int, PairWeights]] = {site: {} for site in sites}
    hooks = Hooks(Detail.WEIGHTS, frozenset(sites))
    for first in range(0, len(order), ROWS):
        rows = order[first : first + ROWS]
        hypotheses = force_decode(loaded.model, collate([ids[row] for row in rows]), hooks)
        for row, hypothesis in zip(rows, hypotheses, strict=True):
            words = source.word_ids(ids[row].source), target.word_ids(ids[row].target)
            for site, by_row in by_site.items():
                weights = hypothesis.attentions[site].mean(dim=1).double().numpy()
                by_row[row] = PairWeights(weights, *words)
    return {site: [by_row[i] for i in range(len(pairs))] for site, by_row in by_site.items()}


def describe_weights(pairs: Sequence[PairWeights]) -> dict[str, float]:
    """Return statistics of the weights that need no gold links."""
    entropy, special_mass = 0.0, 0.0
    steps, words, hardly_read, moves, forward = 0, 0, 0, 0, 0
    for weights, source, target in pairs:
        entropy += float(entropy_ratio(weights).sum())
        rows = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-12)
        special = [position for position, word in enumerate(source) if word == NO_WORD]
        special_mass += float(rows[:, special].sum())
        steps += len(rows)
        folded = fold_words(weights, source, target)
        if folded.size:
            hardly_read += int((folded.sum(axis=0) < HARDLY_READ).sum())
            words += folded.shape[1]
            best = folded.argmax(axis=1)
            forward += int((np.diff(best) >= 0).sum())
            moves += len(best) - 1
    return {
        "entropy_ratio": entropy / max(1, steps),
        "special_token_weight": special_mass / max(1, steps),
        "unattended_source_words": hardly_read / max(1, words),
        "monotonic_steps": forward / max(1, moves),
    }


def _score_link_methods(pairs: Sequence[PairWeights], gold: Sequence[Links], shift: int) -> dict[str, Any]:
    scores: dict[str, Any] = {}
    for method in LINK_METHODS:
        links = [word_links(pair.weights, pair.source, pair.target, method, shift) for pair in pairs]
        scores[method] = score_alignment(links, gold)._asdict()
    return scores


def score_gold(pairs: Sequence[PairWeights], gold: Sequence[Links], shift: int) -> dict[str, Any]:
    """Return error rate, precision and recall of every link method, and baselines that use no weights."""
    scores: dict[str, Any] = _score_link_methods(pairs, gold, shift)
    sizes = [(max(pair.source, default=-1) + 1, max(pair.target, default=-1) + 1) for pair in pairs]
    scores["diagonal"] = score_alignment([diagonal_links(*size) for size in sizes], gold)._asdict()
    mass, uniform, count = 0.0, 0.0, 0
    for pair, (sure, possible) in zip(pairs, gold, strict=True):
        folded = fold_words(pair.weights, pair.source, pair.target)
        for target in range(folded.shape[0]):
            linked = [s for s, t in sure | possible if t == target and s < folded.shape[1]]
            if linked:
                mass += float(folded[target, linked].sum())
                uniform += len(linked) / folded.shape[1]
                count += 1
    scores["gold_weight"] = mass / max(1, count)
    scores["gold_weight_uniform"] = uniform / max(1, count)
    return scores


class Seq2SeqProbeTarget(GenerationProbeTarget):
    """A sequence-to-sequence model and its outputs for some pairs."""

    metric_name = "BLEU"

    def __init__(self, loaded: LoadedSeq2Seq, pairs: Sequence[TextPair]) -> None:
        self.assets, self.model = loaded.assets, loaded.model
        self.options = DecodingOptions(max_length=loaded.recipe.decoding.max_length)
        self.lines = [pair.source for pair in pairs]
        self.references = loaded.assets.lowercase_like_target([pair.target for pair in pairs])
        self.hypotheses = self._generate()
        sources = [loaded.assets.source.encode(line) for line in self.lines]
        self.corpus = GeneratedCorpus(sources, [h.tokens for h in self.hypotheses])

    def _generate(self, hooks: Hooks = NO_HOOKS) -> list[Hypothesis]:
        return [best[0] for best in search_lines(self.model, self.lines, self.assets, self.options, hooks)]

    def output_metrics(self, seed: int) -> dict[str, float]:
        """Return BLEU of the outputs: unchanged, and with all weights uniform or permuted in all heads."""
        scores = {"unchanged": self._bleu(self.hypotheses)}
        for name, op in OUTPUT_EDITS.items():
            edit = build_edit_hook([Edit.model_validate({"op": op})], self.model.alignment_site, seed=seed)
            scores[name] = self._bleu(self._generate(Hooks(Detail.NONE, edit=edit)))
        return scores

    def _bleu(self, hypotheses: Sequence[Hypothesis]) -> float:
        texts = [self.assets.target.decode(h.tokens) for h in hypotheses]
        return evaluate(["bleu"], texts, self.references)[0].value


class Seq2SeqAdapter:
    """Measures the cross-attention of sequence-to-sequence models."""

    unit = "sentences"

    def load_items(self, loaded: LoadedSeq2Seq, data: Sequence[str], split: str) -> list[TextPair]:
        return evaluation_pairs(loaded.path, data, split)

    def read_gold(self, path: Path, base: int) -> list[Links]:
        return read_links(path, base)

    def describe_attention(
        self, loaded: LoadedSeq2Seq, items: Sequence[TextPair], gold: Sequence[Links] | None
    ) -> dict[str, Any]:
        model = loaded.model
        alignment = str(model.alignment_site)
        sites = [site.id for site in model.sites if site.kind == "cross" and site.id != COPY]
        weights = forced_weights(loaded, items, sites if gold is not None else [alignment])
        report: dict[str, Any] = {"attention": describe_weights(weights[alignment])}
        if gold is None:
            return report
        report["gold"] = score_gold(weights[alignment], gold, model.alignment_shift)
        if len(sites) > 1:
            report["gold"]["layers"] = {
                site: _score_link_methods(weights[site], gold, model.alignment_shift) for site in sites
            }
        return report

    def make_probe_target(self, loaded: LoadedSeq2Seq, items: Sequence[TextPair]) -> Seq2SeqProbeTarget:
        return Seq2SeqProbeTarget(loaded, items)


ADAPTER = Seq2SeqAdapter()
