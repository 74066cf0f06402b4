"""`heedful measure` of classifiers: the weights of each text, and their effect on its label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from heedful.attention import NO_HOOKS, Detail, Hooks
from heedful.data.guides import parse_rationale
from heedful.data.labels import normalize_label
from heedful.data.lines import read_lines
from heedful.data.pairs import TextPair
from heedful.errors import DataError
from heedful.layers.pooling import POOL
from heedful.metrics import evaluate
from heedful.models.classifier import ClassifierOutput
from heedful.tasks.classify.assets import LoadedClassifier
from heedful.tasks.classify.evaluate import evaluation_texts
from heedful.tasks.classify.probes import LabelProbe, label_probes, predict_labels, text_saliency
from heedful.tasks.classify.score import run_classifier
from heedful.tasks.gold_words import PositionWeights, score_gold_words
from heedful.tasks.probes import OUTPUT_EDITS, Decision
from heedful.trace.edits import build_edit_hook
from heedful.trace.schema import NO_WORD, Edit, Links, entropy_ratio


def text_weights(loaded: LoadedClassifier, pairs: Sequence[TextPair]) -> list[PositionWeights]:
    """Return the weights of each text."""
    source = loaded.assets.source
    ids = source.encode_all([pair.source for pair in pairs])
    by_row: dict[int, PositionWeights] = {}

    def collect(rows: Sequence[int], output: ClassifierOutput) -> None:
        assert output.weights is not None
        for batch_row, row in enumerate(rows):
            weights = output.weights[batch_row].double()[: len(ids[row])].numpy()
            by_row[row] = PositionWeights(weights, source.word_ids(ids[row]))

    run_classifier(loaded.model, ids, collect, Hooks(Detail.WEIGHTS, loaded.model.pooling_sites))
    return [by_row[i] for i in range(len(pairs))]


def describe_weights(texts: Sequence[PositionWeights]) -> dict[str, float]:
    """Return statistics of the weights that need no gold words."""
    entropy, special, largest = [], [], []
    for weights, words in texts:
        is_special = np.array([word == NO_WORD for word in words])
        of_words = weights[~is_special] if not is_special.all() else np.array([1.0])
        entropy.append(float(entropy_ratio(of_words[None])[0]))
        special.append(float(weights[is_special].sum()))
        largest.append(float(weights.max(initial=0.0)))
    return {
        "entropy_ratio": float(np.mean(entropy)),
        "special_token_weight": float(np.mean(special)),
        "largest_weight": float(np.mean(largest)),
    }


class ClassifierProbeTarget:
    """A classifier and its labels of some texts."""

    decision_name, metric_name, position_name, has_decisions = "label", "accuracy", "words", True

    def __init__(self, loaded: LoadedClassifier, pairs: Sequence[TextPair]) -> None:
        self.model, self.labels = loaded.model, loaded.assets.labels.names
        self.references = [normalize_label(pair.target) for pair in pairs]
        self.sources = loaded.assets.source.encode_all([pair.source for pair in pairs])

    def sample_steps(self, per_item: int, seed: int) -> list[set[int]]:
        """Return the only step of each text: its label."""
        return [{0} for _ in self.sources]

    def probes(self, steps: Sequence[set[int]]) -> Iterator[LabelProbe]:
        return label_probes(self.model, self.sources, [i for i, item_steps in enumerate(steps) if item_steps])

    def predict_from(self, decisions: Sequence[Decision], sources: Sequence[Sequence[int]]) -> Tensor:
        return predict_labels(self.model, sources)

    def saliency(self, decisions: Sequence[Decision]) -> list[Tensor]:
        return text_saliency(self.model, self.sources, [text for text, _ in decisions])

    def output_metrics(self, seed: int) -> dict[str, float]:
        """Return the accuracy: unchanged, and with all weights uniform or permuted in all heads."""
        scores = {"unchanged": self._accuracy(NO_HOOKS)}
        for name, op in OUTPUT_EDITS.items():
            edit = build_edit_hook([Edit.model_validate({"op": op})], POOL, seed=seed)
            scores[name] = self._accuracy(Hooks(Detail.NONE, edit=edit))
        return scores

    def _accuracy(self, hooks: Hooks) -> float:
        by_row: dict[int, str] = {}

        def collect(rows: Sequence[int], output: ClassifierOutput) -> None:
            best = output.logits.argmax(dim=-1).tolist()
            by_row.update(zip(rows, (self.labels[i] for i in best), strict=True))

        run_classifier(self.model, self.sources, collect, hooks)
        outputs = [by_row[i] for i in range(len(self.sources))]
        return evaluate(["accuracy"], outputs, self.references)[0].value


class ClassificationAdapter:
    """Measures the attention pooling of classifiers."""

    unit = "texts"

    def load_items(self, loaded: LoadedClassifier, data: Sequence[str], split: str) -> list[TextPair]:
        return evaluation_texts(loaded, data, split)

    def read_gold(self, path: Path, base: int) -> list[Links]:
        """Read one line per text: the numbers of the decisive words, as `heedful world moods` writes them."""
        gold = []
        for number, line in enumerate(read_lines(path), 1):
            try:
                links = frozenset(parse_rationale(line, base))
            except DataError as error:
                raise DataError(f"{path}, line {number}: {error}") from None
            gold.append(Links(links, links))
        return gold

    def describe_attention(
        self, loaded: LoadedClassifier, items: Sequence[TextPair], gold: Sequence[Links] | None
    ) -> dict[str, Any]:
        weights = text_weights(loaded, items)
        report: dict[str, Any] = {"attention": describe_weights(weights)}
        if gold is not None:
            report["gold"] = score_gold_words(weights, gold)
        return report

    def make_probe_target(self, loaded: LoadedClassifier, items: Sequence[TextPair]) -> ClassifierProbeTarget:
        return ClassifierProbeTarget(loaded, items)


ADAPTER = ClassificationAdapter()
