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
from heedful.data.tokenizer import SPECIALS, Tokenizer, train_tokenizers
from heedful.models import Seq2Seq
from heedful.tasks.base import LoadedModel
from heedful.tasks.splits import Split


class Seq2SeqAssets(NamedTuple):
    """The tokenizers of the source and the target."""

    source: Tokenizer
    target: Tokenizer

    def save(self, folder: Path) -> None:
        """Write one file per side."""
        for side, tokenizer in self._asdict().items():
            tokenizer.save(folder / f"{side}.tokenizer.json")

    @classmethod
    def load(cls, folder: Path) -> Seq2SeqAssets:
        """Read what `save` wrote."""
        source, target = (asset_file(folder, f"{side}.tokenizer.json") for side in cls._fields)
        tokenizer = Tokenizer.load(source)
        shared = filecmp.cmp(source, target, shallow=False)  # one vocabulary for both sides is read once
        return cls(tokenizer, tokenizer if shared else Tokenizer.load(target))

    @classmethod
    def train(cls, pairs: Split, recipe: Recipe) -> Seq2SeqAssets:
        """Train the tokenizers on pairs."""
        return cls(*train_tokenizers(pairs, recipe.tokenizer))

    def sizes(self) -> dict[str, int]:
        """Return the sizes of both vocabularies."""
        return {side: len(tokenizer) for side, tokenizer in self._asdict().items()}

    def equals(self, other: Seq2SeqAssets) -> bool:
        """Return whether both sides have the same tokenizers."""
        return all(mine.to_json() == its.to_json() for mine, its in zip(self, other, strict=True))

    def lowercase_like_target(self, references: Sequence[str]) -> list[str]:
        """Return the references in lower case if the target tokenizer lowercases, so that outputs can match them."""
        return [line.lower() for line in references] if self.target.lowercases else list(references)

    def random_source(self, rows: int, length: int, rng: torch.Generator) -> Padded:
        """Return random source ids, to measure speed."""
        ids = torch.randint(len(SPECIALS), max(len(SPECIALS) + 1, len(self.source)), (rows, length), generator=rng)
        return pad(ids.tolist())


LoadedSeq2Seq = LoadedModel[Seq2SeqAssets, Seq2Seq]
