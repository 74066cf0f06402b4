"""The assets of a classifier: a tokenizer and the labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from heedful.config import Recipe
from heedful.data.asset_files import asset_file
from heedful.data.labels import Labels
from heedful.data.token_statistics import TokenStatistics
from heedful.data.tokenizer import SPECIALS, Tokenizer
from heedful.errors import DataError
from heedful.models import Classifier
from heedful.tasks.base import LoadedModel
from heedful.tasks.splits import Split

TOKENIZER, LABELS = "source.tokenizer.json", "labels.json"


class ClassifierAssets(NamedTuple):
    """The tokenizer of the texts, the labels, and statistics of the texts, which old folders lack."""

    source: Tokenizer
    labels: Labels
    statistics: TokenStatistics | None = None

    def save(self, folder: Path) -> None:
        """Write a file each."""
        self.source.save(folder / TOKENIZER)
        self.labels.save(folder / LABELS)
        if self.statistics is not None:
            self.statistics.save(folder)

    @classmethod
    def load(cls, folder: Path) -> ClassifierAssets:
        """Read what `save` wrote."""
        tokenizer = Tokenizer.load(asset_file(folder, TOKENIZER))
        labels = Labels.load(asset_file(folder, LABELS))
        return cls(tokenizer, labels, TokenStatistics.load(folder, len(tokenizer)))

    @classmethod
    def train(cls, pairs: Split, recipe: Recipe) -> ClassifierAssets:
        """Collect the labels and train the tokenizer on labeled texts, which are read twice."""
        labels = Labels.from_labels(pair.target for pair in pairs)
        return cls(Tokenizer.train((pair.source for pair in pairs), recipe.tokenizer), labels)

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the vocabulary and the label set."""
        return {"source": len(self.source), "labels": len(self.labels)}

    def sentence_ends(self, marks: Sequence[str]) -> list[int]:
        """Return the ids of the tokens that end with one of these marks, and so end a sentence."""
        if not marks:
            return []
        tokens = range(len(SPECIALS), len(self.source))
        ends = [i for i in tokens if self.source.token_text(i).endswith(tuple(marks))]
        if not ends:
            raise DataError(
                f"model.classifier.sentences: no word of the texts ends with {' or '.join(marks)}, so there are"
                " no sentences; give other marks, or none"
            )
        return ends


LoadedClassifier = LoadedModel[ClassifierAssets, Classifier]
