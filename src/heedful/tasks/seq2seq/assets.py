"""The assets of a sequence-to-sequence model: one tokenizer per side."""

from __future__ import annotations

import filecmp
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from heedful.config import Recipe
from heedful.data.asset_files import asset_file
from heedful.data.batch import Padded, pad
from heedful.data.token_statistics import TokenStatistics
from heedful.data.tokenizer import SPECIALS, Tokenizer, train_tokenizers
from heedful.models import Seq2Seq
from heedful.tasks.base import LoadedModel
from heedful.tasks.splits import Split

SIDES = ("source", "target")


class Seq2SeqAssets(NamedTuple):
    """The tokenizers of the source and the target, and statistics of the source text, which old folders lack."""

    source: Tokenizer
    target: Tokenizer
    statistics: TokenStatistics | None = None

    def save(self, folder: Path) -> None:
        """Write one file per side, and the statistics."""
        self.source.save(folder / "source.tokenizer.json")
        self.target.save(folder / "target.tokenizer.json")
        if self.statistics is not None:
            self.statistics.save(folder)

    @classmethod
    def load(cls, folder: Path) -> Seq2SeqAssets:
        """Read what `save` wrote."""
        source, target = (asset_file(folder, f"{side}.tokenizer.json") for side in SIDES)
        tokenizer = Tokenizer.load(source)
        shared = filecmp.cmp(source, target, shallow=False)  # one vocabulary for both sides is read once
        statistics = TokenStatistics.load(folder, len(tokenizer))
        return cls(tokenizer, tokenizer if shared else Tokenizer.load(target), statistics)

    @classmethod
    def train(cls, pairs: Split, recipe: Recipe) -> Seq2SeqAssets:
        """Train the tokenizers on pairs."""
        return cls(*train_tokenizers(pairs, recipe.tokenizer))

    def sizes(self) -> dict[str, int]:
        """Return the sizes of both vocabularies."""
        return {"source": len(self.source), "target": len(self.target)}

    def equals(self, other: Seq2SeqAssets) -> bool:
        """Return whether both sides have the same tokenizers."""
        return all(getattr(self, side).to_json() == getattr(other, side).to_json() for side in SIDES)

    def lowercase_like_target(self, references: Sequence[str]) -> list[str]:
        """Return the references in lower case if the target tokenizer lowercases, so that outputs can match them."""
        return [line.lower() for line in references] if self.target.lowercases else list(references)

    def random_source(self, rows: int, length: int, rng: torch.Generator) -> Padded:
        """Return random source ids, to measure speed."""
        ids = torch.randint(len(SPECIALS), max(len(SPECIALS) + 1, len(self.source)), (rows, length), generator=rng)
        return pad(ids.tolist())


LoadedSeq2Seq = LoadedModel[Seq2SeqAssets, Seq2Seq]
