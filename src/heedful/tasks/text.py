"""Text in, text out: what joins pairs of lines, an encoder-decoder, search and its measures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

from heedful.attention import PLAIN, Detail, Watch
from heedful.config import Recipe
from heedful.data.batch import Buckets, Encoded, TextBatch, collate, pad
from heedful.data.readers import TextPair, read_pairs, world_pairs
from heedful.data.tokenizer import END, PAD, UNK, Tokenizer
from heedful.decoding import Hypothesis, search
from heedful.models import Seq2Seq, Writer
from heedful.record import Token, Trace
from heedful.training import Loss


class Vocabularies(NamedTuple):
    """The task's assets: one tokeniser a side, saved in the model folder."""

    source: Tokenizer
    target: Tokenizer

    def save(self, folder: Path) -> None:
        for side, tokenizer in self._asdict().items():
            tokenizer.save(folder / f"{side}.tokenizer.json")

    @classmethod
    def load(cls, folder: Path) -> Vocabularies:
        return cls(*(Tokenizer.load(folder / f"{side}.tokenizer.json") for side in cls._fields))


def open_splits(recipe: Recipe, base: Path) -> dict[str, list[TextPair]]:
    """The pairs of every split the recipe names."""
    data = recipe.data
    if data.world is not None:
        return world_pairs(data.world)
    named = {"train": data.train, "valid": data.valid, "test": data.test}
    return {split: read_pairs(files, base) for split, files in named.items() if files}


def learn(pairs: Sequence[TextPair], recipe: Recipe) -> Vocabularies:
    return Vocabularies(
        Tokenizer.learn((p.source for p in pairs), recipe.tokenizer),
        Tokenizer.learn((p.target for p in pairs), recipe.tokenizer),
    )


class TextTask:
    """What the training loop asks: batches, a loss, and figures on the validation pairs."""

    def __init__(self, recipe: Recipe, splits: Mapping[str, Sequence[TextPair]], words: Vocabularies) -> None:
        self.recipe = recipe
        self.words = words
        self.valid = splits["valid"]
        self.buckets = Buckets(
            self._encode(splits["train"]), recipe.training.batch_tokens, recipe.training.seed
        )
        self.valid_encoded = self._encode(self.valid)

    def _encode(self, pairs: Sequence[TextPair]) -> list[Encoded]:
        sources = self.words.source.encode_all([p.source for p in pairs])
        targets = self.words.target.encode_all([p.target for p in pairs])
        return [Encoded(s, t) for s, t in zip(sources, targets, strict=True)]

    def batches(self, epoch: int) -> Iterator[TextBatch]:
        return self.buckets.epoch(epoch)

    def steps_per_epoch(self) -> int:
        return len(self.buckets.plan(1))

    def loss(self, model: Seq2Seq, batch: TextBatch) -> Loss:
        assert batch.target is not None
        gold = batch.target.ids[:, 1:]
        logits = model.score(batch).logits
        total = nn.functional.cross_entropy(
            logits.flatten(end_dim=1),
            gold.flatten(),
            ignore_index=PAD,
            label_smoothing=self.recipe.training.smoothing if model.training else 0.0,
            reduction="sum",
        )
        return Loss(total, int((gold != PAD).sum()))

    @torch.inference_mode()
    def validate(self, model: Seq2Seq) -> dict[str, float]:
        """Loss per token, and the share of sentences written exactly as the reference."""
        total, count = 0.0, 0
        for first in range(0, len(self.valid_encoded), 200):
            loss = self.loss(model, collate(self.valid_encoded[first : first + 200]))
            total, count = total + float(loss.total), count + loss.tokens
        outputs = translate(model, [p.source for p in self.valid], self.words, self.recipe)
        exact = sum(o == p.target for o, p in zip(outputs, self.valid, strict=True)) / len(self.valid)
        return {"loss": total / count, "exact": exact}


def answer(
    model: Writer, lines: Sequence[str], words: Vocabularies, recipe: Recipe, watch: Watch = PLAIN
) -> list[Hypothesis]:
    """Search an output for each line, those of like length together; the order is kept."""
    ids = words.source.encode_all(lines)
    order = sorted(range(len(lines)), key=lambda i: len(ids[i]))
    found: dict[int, Hypothesis] = {}
    for first in range(0, len(order), 64):
        rows = order[first : first + 64]
        batch = TextBatch(pad([ids[row] for row in rows]))
        found.update(zip(rows, search(model, batch, recipe.decoding.max_length, watch), strict=True))
    return [found[i] for i in range(len(lines))]


def translate(model: Writer, lines: Sequence[str], words: Vocabularies, recipe: Recipe) -> list[str]:
    """One line out for each line in."""
    return [words.target.decode(h.tokens) for h in answer(model, lines, words, recipe)]


def trace(model: Writer, line: str, words: Vocabularies, recipe: Recipe, name: str) -> Trace:
    """The record of one translation, weights of every site included."""
    (hypothesis,) = answer(model, [line], words, recipe, Watch(Detail.WEIGHTS))
    source = words.source.encode(line)
    shown = [*line.split(), "</s>"]  # an unknown word is shown as it was typed
    weights = {site: w.double().numpy() for site, w in hypothesis.looks.items()}
    return Trace.make(
        model=name,
        source=[_token(text, i) for text, i in zip(shown, source, strict=True)],
        target=[
            _token(text, i)
            for text, i in zip(words.target.tokens(hypothesis.tokens), hypothesis.tokens, strict=True)
        ],
        logp=list(hypothesis.token_logp),
        weights=weights,
        sites=list(model.sites),
        alignment=model.alignment,
    )


def _token(text: str, id: int) -> Token:
    return Token(text=text, role="end" if id == END else "unknown" if id == UNK else "normal")
