"""The assets of a sequence-to-sequence model, as training and measuring need them."""

from __future__ import annotations

import torch

from heedful.config import Recipe
from heedful.data.batch import Padded, pad
from heedful.data.tokenizer import SPECIALS, train_tokenizers
from heedful.models import Seq2Seq
from heedful.tasks.base import LoadedModel
from heedful.tasks.seq2seq.text_assets import SIDES, TextAssets
from heedful.tasks.splits import Split

__all__ = ["SIDES", "LoadedSeq2Seq", "Seq2SeqAssets"]


class Seq2SeqAssets(TextAssets):
    """The tokenizers of both sides and statistics of the source text, with the functions that need torch."""

    __slots__ = ()

    @classmethod
    def train(cls, pairs: Split, recipe: Recipe) -> Seq2SeqAssets:
        """Train the tokenizers on pairs."""
        return cls(*train_tokenizers(pairs, recipe.tokenizer))

    def random_source(self, rows: int, length: int, rng: torch.Generator) -> Padded:
        """Return random source ids, to measure speed."""
        ids = torch.randint(len(SPECIALS), max(len(SPECIALS) + 1, len(self.source)), (rows, length), generator=rng)
        return pad(ids.tolist())


LoadedSeq2Seq = LoadedModel[Seq2SeqAssets, Seq2Seq]
