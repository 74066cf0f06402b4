"""Learning from one's own captions (self-critical training): what is measured is what is taught.

Of each picture some captions are drawn from the model; each earns its CIDEr-D against the picture's
references, and is made likelier by as much as it earned more than the others did (Rennie 2017; the others'
mean as baseline: Luo 2020). Words' rarity is that of the training references. The end counts as a word, in
captions and in references: otherwise captions learn to break off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import torch
import torch.nn.functional as F

from heedful.config import Recipe
from heedful.data.batch import Regions, TextBatch, pad
from heedful.data.tokenizer import END, PAD, START
from heedful.decoding import Sample, search
from heedful.evaluation.captions import Cider
from heedful.layers.readout import Output
from heedful.models import Seq2Seq
from heedful.tasks.caption import CaptionTask, CaptionWords, Item, Seen, regions
from heedful.training import Loss

END_WORD = "</s>"


class RewardTask(CaptionTask):
    """A batch is pictures, without words: the model finds its own. Validation is as ever."""

    def __init__(
        self, recipe: Recipe, items: dict[str, list[Item]], words: CaptionWords, features: Seen
    ) -> None:
        super().__init__(recipe, items, words, features)
        self.draws = recipe.training.draws
        self.cider = Cider([[f"{caption} {END_WORD}" for caption in item.captions] for item in self.train])
        usual = sum(len(example.target) for example in self.corpus) / len(self.corpus)
        self.pictures = max(1, round(recipe.training.batch_tokens / (usual * self.draws)))

    def batches(self, epoch: int, start: int = 0, rank: int = 0, world: int = 1) -> Iterator[TextBatch]:
        order = list(range(len(self.train)))
        Random(f"{self.recipe.training.seed} {epoch}").shuffle(order)
        for number in range(start + rank, self._count(), world):
            rows = order[number * self.pictures : (number + 1) * self.pictures]
            maps = self.features.of([self.train[row].picture for row in rows])
            yield TextBatch(regions(maps), pad([[row] for row in rows]))

    def _count(self) -> int:
        return -(-len(self.train) // self.pictures)

    def steps_per_epoch(self, world: int = 1) -> int:
        return -(-self._count() // world)

    def parts(self, batch: TextBatch, count: int) -> list[TextBatch]:
        return [batch]

    def loss(self, model: Seq2Seq, batch: TextBatch) -> Loss:
        if not model.training:
            return super().loss(model, batch)
        assert batch.target is not None
        assert isinstance(batch.source, Regions)
        rows = [row for row in batch.target.ids[:, 0].tolist() for _ in range(self.draws)]
        seen = TextBatch(regions(batch.source.vectors.repeat_interleave(self.draws, dim=0)))
        drawn = self._draw(model, seen)
        gains = self._gains(rows, drawn)
        target = pad([[START, *tokens] for tokens in drawn])
        stepped = model.score(TextBatch(seen.source, target))
        gold = target.ids[:, 1:]
        real = gold != PAD
        assert isinstance(stepped.output, Output)
        surprise = F.cross_entropy(stepped.output(stepped.said[real]), gold[real], reduction="none")
        weight = gains[:, None].expand(gold.shape)[real].to(surprise)
        return Loss((weight * surprise).sum(), int(real.sum()))

    @torch.inference_mode()
    def _draw(self, model: Seq2Seq, seen: TextBatch) -> list[tuple[int, ...]]:
        """A caption for each row, as the model is when nothing is dropped."""
        how = Sample(seed=int(torch.randint(2**31, ())), max_length=self.recipe.decoding.max_length)
        model.eval()
        try:
            return [best[0].tokens for best in search(model, seen, how).best]
        finally:
            model.train()

    def _gains(self, rows: Sequence[int], drawn: Sequence[tuple[int, ...]]) -> torch.Tensor:
        """What each caption earned beyond the mean of its picture's others."""
        words = self.words.target
        earned = torch.tensor(
            [
                self.cider.score(
                    row, words.decode(tokens) + (f" {END_WORD}" if tokens[-1:] == (END,) else "")
                )
                for row, tokens in zip(rows, drawn, strict=True)
            ],
            dtype=torch.float64,
        ).view(-1, self.draws)
        others = (earned.sum(dim=1, keepdim=True) - earned) / (self.draws - 1)
        return (earned - others).flatten()
