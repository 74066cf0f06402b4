"""`heedful measure` of captioners: attention over regions while captions are generated, and its effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heedful.attention import NO_HOOKS, Detail, Hooks
from heedful.config import DecodingOptions
from heedful.data.batch import Regions, TextBatch
from heedful.data.tokenizer import END
from heedful.decoding import Hypothesis, search_all
from heedful.errors import DataError
from heedful.metrics import evaluate
from heedful.tasks.caption.assets import LoadedCaptioner, all_regions
from heedful.tasks.caption.data import Item
from heedful.tasks.caption.evaluate import evaluation_items
from heedful.tasks.caption.pointing_game import play_pointing_game
from heedful.tasks.caption.predict import open_features
from heedful.tasks.generation_probes import GeneratedCorpus, GenerationProbeTarget
from heedful.tasks.probes import OUTPUT_EDITS
from heedful.trace.edits import build_edit_hook
from heedful.trace.schema import Edit, Links, entropy_ratio

FIRST_REGION = 10  # region r has the id FIRST_REGION + r, after all special tokens
HARDLY_READ = 0.1  # total weight of a region below which it counts as not read


@dataclass(frozen=True)
class ImageCorpus(GeneratedCorpus):
    """Images as sources: their regions have ids, and can be left out like words."""

    features: Tensor  # (image, region, width)

    def encode(self, rows: Sequence[int], sources: Sequence[Sequence[int]]) -> Regions:
        keep = torch.zeros(len(rows), self.features.shape[1], dtype=torch.bool)
        for index, source in enumerate(sources):
            keep[index, [region - FIRST_REGION for region in source if region != END]] = True
        return Regions(self.features[list(rows)], keep)

    def special_positions(self, batch: TextBatch) -> Tensor:
        return torch.zeros_like(batch.source.keep)


def load_features(loaded: LoadedCaptioner, items: Sequence[Item]) -> Tensor:
    """Return the features of all images: (image, region, width)."""
    images = [item.image for item in items]
    features = open_features(loaded)
    features.extract(images)
    return features.load(images)


def generate_captions(loaded: LoadedCaptioner, features: Tensor, hooks: Hooks = NO_HOOKS) -> list[Hypothesis]:
    """Return a greedy caption per image."""

    def make_batch(rows: Sequence[int]) -> TextBatch:
        return TextBatch(all_regions(features[list(rows)]))

    options = DecodingOptions(max_length=loaded.recipe.decoding.max_length)
    hypotheses = search_all(loaded.model, make_batch, [1] * len(features), options, hooks)
    return [best[0] for best in hypotheses]


class CaptionProbeTarget(GenerationProbeTarget):
    """A captioner and its captions of some images."""

    metric_name, position_name = "CIDEr-D times 100", "regions"

    def __init__(self, loaded: LoadedCaptioner, items: Sequence[Item]) -> None:
        self.loaded, self.model, self.items = loaded, loaded.model, items
        features = load_features(loaded, items)
        self.hypotheses = generate_captions(loaded, features)
        regions = [*range(FIRST_REGION, FIRST_REGION + features.shape[1]), END]
        outputs = [hypothesis.tokens for hypothesis in self.hypotheses]
        self.features, self.corpus = features, ImageCorpus([regions] * len(items), outputs, features)

    def output_metrics(self, seed: int) -> dict[str, float]:
        """Return CIDEr-D of the captions: unchanged, and with all weights uniform or permuted."""
        scores = {"unchanged": self._cider(self.hypotheses)}
        for name, op in OUTPUT_EDITS.items():
            edit = build_edit_hook([Edit.model_validate({"op": op})], self.model.alignment_site, seed=seed)
            hooks = Hooks(Detail.NONE, edit=edit)
            scores[name] = self._cider(generate_captions(self.loaded, self.features, hooks))
        return scores

    def _cider(self, hypotheses: Sequence[Hypothesis]) -> float:
        texts = [self.loaded.assets.target.decode(h.tokens) for h in hypotheses]
        return 100 * evaluate(["cider"], texts, [item.captions for item in self.items])[0].value


def describe_weights(captions: Sequence[np.ndarray]) -> dict[str, float]:
    """Return statistics of the weights (word, region) of captions."""
    entropy = np.concatenate([entropy_ratio(weights) for weights in captions])
    moves = [np.abs(np.diff(weights, axis=0)).sum(axis=1) / 2 for weights in captions if len(weights) > 1]
    read = [(weights.sum(axis=0) >= HARDLY_READ).mean() for weights in captions]
    return {
        "entropy_ratio": float(entropy.mean()),
        "weight_movement": float(np.concatenate(moves).mean()) if moves else 0.0,
        "attended_regions": float(np.mean(read)),
    }


class CaptionAdapter:
    """Measures the attention of captioners over regions."""

    unit = "images"

    def load_items(self, loaded: LoadedCaptioner, data: Sequence[str], split: str) -> list[Item]:
        return evaluation_items(loaded, data, split)

    def read_gold(self, path: Path, base: int) -> list[Links]:
        raise DataError("--gold: not used for captions; the gold regions of the scenes world are known without it")

    def describe_attention(
        self, loaded: LoadedCaptioner, items: Sequence[Item], gold: Sequence[Links] | None
    ) -> dict[str, Any]:
        site = str(loaded.model.alignment_site)
        captions = generate_captions(loaded, load_features(loaded, items), Hooks(Detail.WEIGHTS, frozenset({site})))
        weights = [h.attentions[site].mean(dim=1).double().numpy() for h in captions]
        report: dict[str, Any] = {"attention": describe_weights(weights)}
        pointing = play_pointing_game(loaded, items) if any(item.objects for item in items) else {}
        if pointing:
            report["gold"] = {
                "gold_weight": pointing.pop("region_weight"),
                "gold_weight_uniform": pointing.pop("region_weight_uniform"),
                **pointing,
            }
        return report

    def make_probe_target(self, loaded: LoadedCaptioner, items: Sequence[Item]) -> CaptionProbeTarget:
        return CaptionProbeTarget(loaded, items)


ADAPTER = CaptionAdapter()
