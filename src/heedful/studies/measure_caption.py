"""What `heedful measure` says of captioners: looks while captions are written, and regions for words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heedful.attention import PLAIN, Detail, Watch
from heedful.config import DecodingConfig
from heedful.data.batch import Regions, TextBatch
from heedful.data.tokenizer import END
from heedful.decoding import Hypothesis
from heedful.errors import DataError
from heedful.evaluation import evaluate
from heedful.record import Edit, Links, entropy_ratio
from heedful.studies.measure_text import WritingSubject
from heedful.studies.pointing import pointing
from heedful.studies.probe import Corpus
from heedful.tasks.caption import Captioner, Item, features_of, regions
from heedful.tasks.caption_evaluate import items_of
from heedful.tasks.writing import searched
from heedful.trace.whatif import change_of

FIRST = 10  # region r goes by the number FIRST + r, past all special tokens


@dataclass(frozen=True)
class PictureCorpus(Corpus):
    """Pictures in place of sentences: their regions are numbered, and can be taken away like words."""

    maps: Tensor  # (picture, region, width)

    def read(self, rows: Sequence[int], sources: Sequence[Sequence[int]]) -> Regions:
        keep = torch.zeros(len(rows), self.maps.shape[1], dtype=torch.bool)
        for place, mine in enumerate(sources):
            keep[place, [number - FIRST for number in mine if number != END]] = True
        return Regions(self.maps[list(rows)], keep)

    def special(self, batch: TextBatch) -> Tensor:
        return torch.zeros_like(batch.source.keep)


class Shots:
    """Pictures as a captioner saw them, and what it writes of them."""

    def __init__(self, opened: Captioner, items: Sequence[Item]) -> None:
        self.opened = opened
        features = features_of(opened)
        features.extract([item.picture for item in items])
        self.maps = features.of([item.picture for item in items])

    def write(self, watch: Watch = PLAIN) -> list[Hypothesis]:
        how = DecodingConfig(max_length=self.opened.recipe.decoding.max_length)
        found = searched(
            self.opened.model,
            lambda rows: TextBatch(regions(self.maps[list(rows)])),
            [1] * len(self.maps),
            how,
            watch,
        )
        return [best[0] for best in found]


class CaptionSubject(WritingSubject):
    """Pictures into captions."""

    quality, things = "CIDEr-D times 100", "regions"

    def __init__(self, opened: Captioner, items: Sequence[Item]) -> None:
        self.opened, self.model, self.items = opened, opened.model, items
        self.shots = Shots(opened, items)
        self.own = self.shots.write()
        numbers = [*range(FIRST, FIRST + self.shots.maps.shape[1]), END]
        written = [h.tokens for h in self.own]
        self.corpus = PictureCorpus([numbers] * len(items), written, self.shots.maps)

    def outputs(self, seed: int) -> dict[str, float]:
        """CIDEr-D of whole captions when every step's weights are uniform, or permuted."""
        scores = {"as it is": self._quality(self.own)}
        for op in ("uniform", "permute"):
            change = change_of([Edit.model_validate({"op": op})], self.opened.model.alignment, seed=seed)
            scores[op] = self._quality(self.shots.write(Watch(Detail.NONE, edit=change)))
        return scores

    def _quality(self, found: Sequence[Hypothesis]) -> float:
        texts = [self.opened.words.target.decode(h.tokens) for h in found]
        return 100 * evaluate(["cider"], texts, [item.captions for item in self.items])[0].value


def looking(looked: Sequence[np.ndarray]) -> dict[str, float]:
    """How the looks are: (word, region) of each caption."""
    entropy = np.concatenate([entropy_ratio(weights) for weights in looked])
    moves = [np.abs(np.diff(weights, axis=0)).sum(axis=1) / 2 for weights in looked if len(weights) > 1]
    read = [(weights.sum(axis=0) >= 0.1).mean() for weights in looked]
    return {
        "entropy ratio": float(entropy.mean()),
        "weight that moves from word to word": float(np.concatenate(moves).mean()) if moves else 0.0,
        "regions that are read": float(np.mean(read)),
    }


class CaptionWay:
    """Pictures in, sentences out."""

    unit = "pictures"

    def items(self, opened: Captioner, data: Sequence[str], split: str) -> list[Item]:
        return items_of(opened, data, split)

    def gold(self, path: Path, base: int) -> list[Links]:
        raise DataError("--gold: captions have no word links; the scene world knows its regions itself")

    def looks(self, opened: Captioner, items: Sequence[Item], gold: Sequence[Links] | None) -> dict[str, Any]:
        site = str(opened.model.alignment)
        written = Shots(opened, items).write(Watch(Detail.WEIGHTS, frozenset({site})))
        looked = [h.looks[site].mean(dim=1).double().numpy() for h in written]
        found: dict[str, Any] = {"looks": looking(looked)}
        known = pointing(opened, items) if any(item.things for item in items) else {}
        if known:
            found["gold"] = {
                "mass on gold": known.pop("weight in region"),
                "mass on gold, uniform": known.pop("weight in region, uniform"),
                **known,
            }
        return found

    def subject(self, opened: Captioner, items: Sequence[Item]) -> CaptionSubject:
        return CaptionSubject(opened, items)


WAY = CaptionWay()
