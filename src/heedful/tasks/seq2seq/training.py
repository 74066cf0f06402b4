"""Training of sequence-to-sequence models: batches of pairs and validation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from random import Random

import torch

from heedful.attention import NO_HOOKS, Hooks
from heedful.config import DecodingOptions, Recipe
from heedful.data.batch import BucketBatches, EncodedPair, TextBatch, collate
from heedful.data.bpe_dropout import BpeDropout
from heedful.data.corpus import Corpus, filter_by_length, open_corpus
from heedful.data.guides import ExampleWords, LinkRows
from heedful.decoding import Hypothesis
from heedful.models import Seq2Seq
from heedful.tasks.generation import VALIDATION_ROWS, GenerationTraining, validation_metrics
from heedful.tasks.guided import GuideMaker
from heedful.tasks.seq2seq.assets import Seq2SeqAssets
from heedful.tasks.seq2seq.predict import search_lines
from heedful.tasks.splits import Split


class Seq2SeqTraining(GenerationTraining):
    """Batches of pairs of similar length, and validation on held-out pairs."""

    has_end_token = True

    def __init__(self, recipe: Recipe, splits: Mapping[str, Split], assets: Seq2SeqAssets) -> None:
        training, seed = recipe.training, recipe.training.seed
        self.recipe, self.assets, self.target = recipe, assets, assets.target
        self.metrics = validation_metrics(training.metric)
        self.corpus: Corpus = open_corpus(splits["train"], assets.source, assets.target, recipe.data)
        self.buckets = BucketBatches(self.corpus, training.batch_tokens, seed)
        valid = list(islice(splits["valid"], training.validate_pairs or None))
        self.valid_corpus = open_corpus(valid, assets.source, assets.target, recipe.data)
        self.sources = [pair.source for pair in valid]
        self.references = assets.lowercase_like_target([pair.target for pair in valid])
        self.guides: GuideMaker | None = None
        if training.guided is not None:
            kept, _ = filter_by_length(splits["train"], assets.source, assets.target, recipe.data)
            links = LinkRows(pair.links for pair in kept)
            self.guides = GuideMaker(training.guided, links, self.buckets, training)
        dropout = recipe.tokenizer.bpe_dropout
        self.bpe_dropout = BpeDropout(assets.source, assets.target, dropout, seed) if dropout else None

    def batches(self, epoch: int, start: int = 0, rank: int = 0, world_size: int = 1) -> Iterator[TextBatch]:
        """Yield the batches of an epoch that belong to one process."""
        plan = self.buckets.epoch_plan(epoch)
        for number in range(start + rank, len(plan), world_size):
            rows = plan.batch_rows(number)
            examples = [self.corpus[row] for row in rows]
            if self.bpe_dropout is not None:
                rng = Random(f"{self.recipe.training.seed} {epoch} {number}")
                examples = [self.bpe_dropout.resample(example, rng) for example in examples]
            batch = collate(examples)
            if self.guides is not None:
                words = (self._words(example) for example in examples)
                batch = batch._replace(guide=self.guides.make(rows, words, epoch, number))
            yield batch

    def _words(self, example: EncodedPair) -> ExampleWords:
        return ExampleWords(self.assets.source.word_ids(example.source), self.assets.target.word_ids(example.target))

    def validation_batches(self) -> Iterator[TextBatch]:
        for first in range(0, len(self.valid_corpus), VALIDATION_ROWS):
            rows = range(first, min(first + VALIDATION_ROWS, len(self.valid_corpus)))
            yield collate([self.valid_corpus[row] for row in rows])

    def search(
        self, model: Seq2Seq, options: DecodingOptions, hooks: Hooks = NO_HOOKS, limit: int | None = None
    ) -> list[list[Hypothesis]]:
        threads = torch.get_num_threads()
        return search_lines(model, self.sources[:limit], self.assets, options, hooks, threads=threads)
