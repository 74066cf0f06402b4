"""Text in, text out: what joins pairs of lines, an encoder-decoder, search and its measures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import torch

from heedful.attention import PLAIN, Detail, Watch
from heedful.config import DecodingConfig, Recipe
from heedful.data.batch import Buckets, TextBatch, collate, pad
from heedful.data.corpus import Corpus, open_corpus, within
from heedful.data.pieces import Cutters
from heedful.data.readers import Pairs, TextPair, open_pairs, world_pairs
from heedful.data.tokenizer import END, PAD, UNK, Tokenizer, learn_both
from heedful.decoding import Hypothesis
from heedful.errors import DataError
from heedful.models import Seq2Seq, Writer, build
from heedful.tasks.begin import begun_with, first_model, words_of
from heedful.tasks.kind import Evaluated, Opened, Question, Started
from heedful.tasks.writing import Tick, loss_of, nothing, parts_of, searched, validated
from heedful.training import Loss, Validation
from heedful.training import Sample as Shown
from heedful.training.types import Ears
from heedful.training.watch import attention_warnings

if TYPE_CHECKING:
    from heedful.record import Trace
    from heedful.tasks.tracing import Wanted

Split = Pairs | list[TextPair]
SHOWN = 3  # samples at each validation
WATCHED = 32  # validation sentences whose attention is looked at


def writable(references: Sequence[str], words: Vocabularies) -> list[str]:
    """References as a model could write them: one of small letters knows no capitals."""
    return [line.lower() for line in references] if words.target.small else list(references)


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

    def sizes(self) -> dict[str, int]:
        return {side: len(tokenizer) for side, tokenizer in self._asdict().items()}

    def same(self, other: Vocabularies) -> bool:
        mine, theirs = (tuple(t.to_json() for t in words) for words in (self, other))
        return mine == theirs


TextModel = Opened[Vocabularies, Seq2Seq]


def open_splits(recipe: Recipe, base: Path) -> dict[str, Split]:
    """The pairs of every split the recipe names: streams over files, or a world's lists."""
    if recipe.data.world is not None:
        return dict(world_pairs(recipe.data.world))
    return dict(open_pairs(recipe.data, base))


def learn(pairs: Split, recipe: Recipe) -> Vocabularies:
    return Vocabularies(*learn_both(pairs, recipe.tokenizer))


class TextTask:
    """What the training loop asks: batches, a loss, and figures on the validation pairs."""

    def __init__(self, recipe: Recipe, splits: Mapping[str, Split], words: Vocabularies) -> None:
        self.recipe = recipe
        self.words = words
        self.figures = validated(recipe.training.metric)
        self.corpus: Corpus = open_corpus(splits["train"], words.source, words.target, recipe.data)
        self.buckets = Buckets(self.corpus, recipe.training.batch_tokens, recipe.training.seed)
        self.valid = list(islice(splits["valid"], recipe.training.validate_pairs or None))
        dropout, seed = recipe.tokenizer.dropout, recipe.training.seed
        self.cutters = Cutters(words.source, words.target, dropout, seed) if dropout else None
        self.valid_corpus = open_corpus(self.valid, words.source, words.target, recipe.data)

    def batches(self, epoch: int, start: int = 0, rank: int = 0, world: int = 1) -> Iterator[TextBatch]:
        plan = self.buckets.arrange(epoch)
        for number in range(start + rank, len(plan), world):
            examples = [self.corpus[row] for row in plan.batch(number)]
            if self.cutters is not None:
                rng = Random(f"{self.recipe.training.seed} {epoch} {number}")
                examples = [self.cutters.example(example, rng) for example in examples]
            yield collate(examples)

    def steps_per_epoch(self, world: int = 1) -> int:
        return -(-len(self.buckets.arrange(1)) // world)

    def parts(self, batch: TextBatch, count: int) -> list[TextBatch]:
        """Batches can be computed in parts where nothing but dropout is left to chance."""
        return parts_of(batch, count, self.recipe)

    def loss(self, model: Seq2Seq, batch: TextBatch) -> Loss:
        return loss_of(model, batch, self.recipe)

    @torch.inference_mode()
    def validate(self, model: Seq2Seq) -> Validation:
        """Loss per token; BLEU, exact match and the chosen metric of greedy outputs; samples; odd looks."""
        total, count = 0.0, 0
        for first in range(0, len(self.valid_corpus), 100):
            rows = range(first, min(first + 100, len(self.valid_corpus)))
            loss = self.loss(model, collate([self.valid_corpus[row] for row in rows]))
            total, count = total + float(loss.total), count + loss.tokens
        how = self.recipe.decoding.model_copy(update={"method": "greedy", "n_best": 1})
        sources = [pair.source for pair in self.valid]
        found = answer(model, sources, self.words, how, threads=torch.get_num_threads())
        outputs = [self.words.target.decode(h[0].tokens) for h in found]
        references = writable([pair.target for pair in self.valid], self.words)
        from heedful.evaluation import evaluate

        exact = sum(o == r for o, r in zip(outputs, references, strict=True)) / len(outputs)
        figures = {"loss": total / count, "exact": exact}
        figures |= {name: evaluate([name], outputs, references)[0].value for name in self.figures}
        shown = [Shown(*row) for row in islice(zip(sources, references, outputs, strict=True), SHOWN)]
        return Validation(figures, shown, self._oddities(model, sources[:WATCHED]))

    def _oddities(self, model: Seq2Seq, sources: Sequence[str]) -> list[str]:
        site = model.alignment
        if site is None or self.recipe.model.attention.placement == "uniform":
            return []
        how = DecodingConfig(max_length=self.recipe.decoding.max_length)
        found = answer(model, sources, self.words, how, Watch(Detail.WEIGHTS, frozenset({site})))
        weights = [h[0].looks[site].float().mean(dim=1).numpy() for h in found]
        ends = [w.shape[-1] - 1 for w in weights]
        return attention_warnings(site, weights, ends)


def answer(
    model: Writer,
    lines: Sequence[str],
    words: Vocabularies,
    how: DecodingConfig,
    watch: Watch = PLAIN,
    tick: Tick = nothing,
    threads: int = 1,
) -> list[list[Hypothesis]]:
    """Search outputs for each line, those of like length together; the order is kept.

    `tick` hears how many lines more are done. Batches go to so many `threads` side by side.
    """
    if how.replace_unknown and watch.detail is Detail.NONE and model.alignment is not None:
        watch = Watch(Detail.WEIGHTS, frozenset({model.alignment}))
    ids = words.source.encode_all(lines)
    sizes = [len(row) for row in ids]
    return searched(
        model, lambda rows: TextBatch(pad([ids[row] for row in rows])), sizes, how, watch, tick, threads
    )


def spoken(
    hypothesis: Hypothesis, line: str, words: Vocabularies, site: str | None, replace_unknown: bool = False
) -> str:
    """The text of an output; where asked, `<unk>` becomes the source word it looked at most (Luong 2015)."""
    if not replace_unknown or site is None or UNK not in hypothesis.tokens or words.target.kind != "word":
        return words.target.decode(hypothesis.tokens)
    source = line.split()
    best = hypothesis.looks[site].mean(dim=1).argmax(dim=-1).tolist()
    texts = words.target.tokens(hypothesis.tokens)
    of_piece = words.source.words(words.source.encode(line))
    said = []
    for token, text, position in zip(hypothesis.tokens, texts, best, strict=True):
        if token == UNK and of_piece[position] >= 0:
            said.append(source[of_piece[position]])
        elif token not in (PAD, END):
            said.append(text)
    return " ".join(said)


def translate(model: Writer, lines: Sequence[str], words: Vocabularies, how: DecodingConfig) -> list[str]:
    """One line out for each line in."""
    found = answer(model, lines, words, how)
    return [
        spoken(best[0], line, words, model.alignment, how.replace_unknown)
        for best, line in zip(found, lines, strict=True)
    ]


class TextKind:
    """Lines to lines: translation, headlines, replies, spellings."""

    files = tuple(f"{side}.tokenizer.json" for side in Vocabularies._fields)

    def load(self, folder: Path) -> Vocabularies:
        return Vocabularies.load(folder)

    def build(self, recipe: Recipe, words: Vocabularies) -> Seq2Seq:
        return build(recipe.model, len(words.source), len(words.target))

    def start(self, recipe: Recipe, base: Path, words: Vocabularies | None, ears: Ears) -> Started:
        splits = open_splits(recipe, base)
        first = first_model(recipe, base) if words is None else None
        words = words or (learn(splits["train"], recipe) if first is None else words_of(first, recipe))
        splits["valid"], left_out = within(splits["valid"], words.source, words.target, recipe.data)
        task = TextTask(recipe, splits, words)
        facts = (
            f"{len(task.corpus):,} pairs",
            f"{len(words.source):,} and {len(words.target):,} words",
            f"{task.buckets.padding_share(1).both:.1%} padding",
        )
        notes = [str(task.corpus.tally), f"to validate on: {left_out}" if str(left_out) else ""]
        started = Started(task, words, facts, [note for note in notes if note])
        return started if first is None else started._replace(prepare=begun_with(first, recipe))

    def tested(self, recipe: Recipe, base: Path) -> bool:
        return recipe.data.world is not None or "test" in open_pairs(recipe.data, base)

    def evaluate(self, folders: Sequence[Path], asked: Question) -> Evaluated:
        from heedful.tasks.evaluate import evaluated

        return evaluated(folders, asked)

    def trace(self, opened: TextModel, wanted: Wanted, how: DecodingConfig) -> Trace:
        from heedful.tasks.tracing import trace_line
        from heedful.tasks.use import fitting, ready_of

        (line,) = fitting(ready_of([opened]), [wanted.line])
        if not line:
            raise DataError("nothing of the sentence is left to trace")
        return trace_line(opened, replace(wanted, line=line), how)


KIND = TextKind()
