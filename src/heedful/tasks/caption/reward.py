"""Self-critical training of captioners: the reward is CIDEr-D of sampled captions (Rennie 2017).

For each image several captions are sampled; each is made more likely in proportion to its CIDEr-D minus the mean of
the image's other samples (Luo 2020). Document frequencies are those of the training references. The end token counts
as a word, in captions and references: otherwise captions learn to end without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import torch
import torch.nn.functional as F

from heedful.config import DecodingOptions, Recipe
from heedful.data.batch import Regions, TextBatch, pad
from heedful.data.images.features import CachedFeatures
from heedful.data.tokenizer import END, PAD, START
from heedful.decoding import search
from heedful.layers.readout import Output
from heedful.metrics.captions import Cider
from heedful.models import Seq2Seq
from heedful.tasks.caption.assets import CaptionAssets, all_regions
from heedful.tasks.caption.data import Item
from heedful.tasks.caption.training import CaptionTraining
from heedful.training import Loss

END_WORD = "</s>"


class RewardTraining(CaptionTraining):
    """Batches of images, whose captions the model samples; validation is that of `CaptionTraining`."""

    def __init__(
        self, recipe: Recipe, items: dict[str, list[Item]], assets: CaptionAssets, features: CachedFeatures
    ) -> None:
        super().__init__(recipe, items, assets, features)
        self.n_samples = recipe.training.reward_samples
        self.cider = Cider([[f"{caption} {END_WORD}" for caption in item.captions] for item in self.train])
        mean_length = sum(len(example.target) for example in self.corpus) / len(self.corpus)
        self.images_per_batch = max(1, round(recipe.training.batch_tokens / (mean_length * self.n_samples)))

    def batches(self, epoch: int, start: int = 0, rank: int = 0, world_size: int = 1) -> Iterator[TextBatch]:
        """Yield batches of images; the target of each is its number in the training data."""
        order = list(range(len(self.train)))
        Random(f"{self.recipe.training.seed} {epoch}").shuffle(order)
        for number in range(start + rank, self._count(), world_size):
            rows = order[number * self.images_per_batch : (number + 1) * self.images_per_batch]
            features = self.features.load([self.train[row].image for row in rows])
            yield TextBatch(all_regions(features), pad([[row] for row in rows]))

    def _count(self) -> int:
        return -(-len(self.train) // self.images_per_batch)

    def steps_per_epoch(self, world_size: int = 1) -> int:
        return -(-self._count() // world_size)

    def split_batch(self, batch: TextBatch, n_parts: int) -> list[TextBatch]:
        return [batch]  # samples follow from the batch's random seed

    def loss(self, model: Seq2Seq, batch: TextBatch) -> Loss:
        """Return the summed `-advantage * log p` of sampled captions; in evaluation mode the cross-entropy."""
        if not model.training:
            return super().loss(model, batch)
        assert batch.target is not None
        assert isinstance(batch.source, Regions)
        rows = [row for row in batch.target.ids[:, 0].tolist() for _ in range(self.n_samples)]
        source = all_regions(batch.source.vectors.repeat_interleave(self.n_samples, dim=0))
        captions = self._sample(model, TextBatch(source))
        advantages = self._advantages(rows, captions)
        target = pad([[START, *tokens] for tokens in captions])
        output = model(TextBatch(source, target))
        gold = target.ids[:, 1:]
        real = gold != PAD
        assert isinstance(output.output, Output)
        surprisal = F.cross_entropy(output.output(output.features[real]), gold[real], reduction="none")
        weight = advantages[:, None].expand(gold.shape)[real].to(surprisal)
        return Loss((weight * surprisal).sum(), int(real.sum()))

    @torch.inference_mode()
    def _sample(self, model: Seq2Seq, batch: TextBatch) -> list[tuple[int, ...]]:
        """Return a sampled caption per row, without dropout."""
        seed = int(torch.randint(2**31, ()))
        options = DecodingOptions(method="sample", seed=seed, max_length=self.recipe.decoding.max_length)
        model.eval()
        try:
            return [best[0].tokens for best in search(model, batch, options).hypotheses]
        finally:
            model.train()

    def _advantages(self, rows: Sequence[int], captions: Sequence[tuple[int, ...]]) -> torch.Tensor:
        """Return each caption's reward minus the mean reward of its image's other captions."""
        rewards = torch.tensor(
            [self.cider.score(row, self._words(tokens)) for row, tokens in zip(rows, captions, strict=True)],
            dtype=torch.float64,
        ).view(-1, self.n_samples)
        baseline = (rewards.sum(dim=1, keepdim=True) - rewards) / (self.n_samples - 1)
        return (rewards - baseline).flatten()

    def _words(self, tokens: Sequence[int]) -> str:
        ended = tuple(tokens[-1:]) == (END,)
        return self.target.decode(tokens) + (f" {END_WORD}" if ended else "")
