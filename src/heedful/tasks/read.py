"""Reading a text, and how likely each next word is: what joins plain text, a reader and its measures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from heedful.attention import PLAIN, Look, Watch
from heedful.config import DecodingConfig, ReadingConfig, Recipe
from heedful.data.batch import Buckets
from heedful.data.lines import ReadBatch, Text, Windows, encoded, open_lines, parts_in_order, sentences
from heedful.data.tokenizer import END, PAD, START, UNK, Tokenizer
from heedful.errors import ModelError, TrainingError, nearest
from heedful.evaluation.surprisal import Nats, perplexity_tally
from heedful.layers.entropy import linear_entropy
from heedful.models import Reader, build_reader
from heedful.models.reader import Carried
from heedful.tasks.begin import begun_with, first_model, words_of
from heedful.tasks.kind import Evaluated, Opened, Question, Started, search_nothing
from heedful.tasks.use import LONGEST
from heedful.tasks.writing import Tick, nothing
from heedful.training import Loss, Validation
from heedful.training.types import Ears

if TYPE_CHECKING:
    from heedful.record import Trace
    from heedful.tasks.tracing import Wanted

TOKENIZER = "text.tokenizer.json"
TOGETHER = 6_000  # positions computed at once where nothing is learnt


class ReadWords(NamedTuple):
    """The task's assets: one vocabulary."""

    text: Tokenizer

    def save(self, folder: Path) -> None:
        self.text.save(folder / TOKENIZER)

    @classmethod
    def load(cls, folder: Path) -> ReadWords:
        return cls(Tokenizer.load(folder / TOKENIZER))

    def sizes(self) -> dict[str, int]:
        return {"text": len(self.text)}

    @property
    def unknown(self) -> int:
        """What stands for a word outside the vocabulary: the text's own `<unk>`, where it has one."""
        return self.text.encode("<unk>")[0] if self.text.kind == "word" else UNK

    def encode_all(self, lines: Sequence[str]) -> list[list[int]]:
        unknown = self.unknown
        return [[unknown if i == UNK else i for i in row] for row in self.text.encode_all(lines)]


ReaderModel = Opened[ReadWords, Reader]


def reading_of(recipe: Recipe) -> ReadingConfig:
    return recipe.data.reading or ReadingConfig()


def first_of(recipe: Recipe) -> int:
    """The token before a sentence: in one long text, the end of the sentence before."""
    return START if reading_of(recipe).protocol == "sentences" else END


def protocol_of(recipe: Recipe) -> str:
    """How a text is read, in a signature's words: what goes from window to window is said."""
    reading, reader = reading_of(recipe), recipe.model.reader
    assert reader is not None
    if reading.protocol == "sentences":
        return "sentences"
    carried = {"lstm": "state", "lstmn": f"tape of {reader.tape}", "transformer": "nothing"}[reader.kind]
    return f"contiguous|window:{reading.window}|carried:{carried}"


def longest(recipe: Recipe) -> int | None:
    """Tokens of the longest line that is read; None: lines run on into one another, and none is too long."""
    return recipe.data.max_source if reading_of(recipe).protocol == "sentences" else None


def longest_used(recipe: Recipe) -> int | None:
    """The same where a model is used: longer lines than it was trained on are read, up to a bound."""
    most, reader = longest(recipe), recipe.model.reader
    assert reader is not None
    table = reader.kind == "transformer" and reader.positions == "learned"
    if most is None:
        return None
    return min(most, reader.max_positions - 1) if table else max(most, LONGEST)


FIGURES = ("loss", "perplexity")  # of the validation text


class ReadTask:
    """What the training loop asks: batches, a loss, and the perplexity of the validation text."""

    def __init__(self, recipe: Recipe, train: Text, valid: Text) -> None:
        self.recipe, self.train, self.valid = recipe, train, valid
        reading, training = reading_of(recipe), recipe.training
        if training.metric not in FIGURES:
            known = nearest(training.metric, FIGURES)
            raise TrainingError(
                f'training.metric = "{training.metric}": this task has no such figure; {known}'
            )
        assert recipe.model.reader is not None
        lead = 0 if recipe.model.reader.kind == "transformer" else reading.lead
        self.windows = Windows(train.flat, reading.window, lead, training.batch_tokens, training.seed)
        self.buckets = Buckets(train, training.batch_tokens, training.seed)
        self.by_sentence = reading.protocol == "sentences"

    def batches(self, epoch: int, start: int = 0, rank: int = 0, world: int = 1) -> Iterator[ReadBatch]:
        if not self.by_sentence:
            plan = self.windows.plan(epoch)
            yield from (self.windows.batch(plan[at]) for at in range(start + rank, len(plan), world))
            return
        arranged = self.buckets.arrange(epoch)
        for number in range(start + rank, len(arranged), world):
            yield sentences([self.train[row].target for row in arranged.batch(number)], START)

    def steps_per_epoch(self, world: int = 1) -> int:
        count = len(self.buckets.arrange(1)) if self.by_sentence else len(self.windows.plan(1))
        return -(-count // world)

    def parts(self, batch: ReadBatch, count: int) -> list[ReadBatch]:
        """Nothing but dropout is left to chance."""
        if len(batch.wanted) < 2 * count:
            return [batch]
        return [batch.rows(start, count) for start in range(count)]

    def loss(self, model: Reader, batch: ReadBatch) -> Loss:
        smoothing = self.recipe.training.smoothing if model.training else 0.0
        total, surprise, _, _ = judged(model, batch, _led_in(model, batch), smoothing=smoothing)
        return Loss(total, len(surprise))

    @torch.inference_mode()
    def validate(self, model: Reader) -> Validation:
        value = perplexity_tally(foreseen(model, self.valid, self.recipe), "").metric().value
        return Validation({"loss": float(np.log(value)), "perplexity": value})


class Judged(NamedTuple):
    """The summed loss, -log p of each wanted word, the state behind them, and the looks."""

    total: torch.Tensor
    surprise: torch.Tensor
    state: Carried
    looks: dict[str, Look]


def judged(
    model: Reader, batch: ReadBatch, state: Carried = (), watch: Watch = PLAIN, smoothing: float = 0.0
) -> Judged:
    """How likely a reader finds the wanted words; the output matrix meets real positions only."""
    given, lead = batch.given, batch.lead
    read = model.read(given.ids[:, lead:], given.keep[:, lead:], state, watch)
    real = batch.wanted != PAD
    total, surprise = linear_entropy(read.said[real], model.output, batch.wanted[real], smoothing)
    return Judged(total, surprise, read.state, dict(read.looks))


def _led_in(model: Reader, batch: ReadBatch) -> Carried:
    """The state that the tokens before a window leave; nothing is learnt from them."""
    if not batch.lead:
        return ()
    with torch.no_grad():
        return model.read(batch.given.ids[:, : batch.lead], batch.given.keep[:, : batch.lead]).state


@torch.inference_mode()
def foreseen(model: Reader, text: Text, recipe: Recipe, tick: Tick = nothing) -> list[Nats]:
    """-log p of every token of every line, by the recipe's protocol; the order is kept."""
    if reading_of(recipe).protocol == "contiguous":
        return _in_one(model, text, reading_of(recipe).window, tick)
    found: dict[int, Nats] = {}
    order = np.argsort(text.lengths.target, kind="stable").tolist()
    for rows in _some(order, text.lengths.target.tolist()):
        batch = sentences([text[row].target for row in rows], START)
        _, surprise, _, _ = judged(model, batch)
        ends = np.cumsum(text.lengths.target[rows])
        found.update(zip(rows, np.split(surprise.double().numpy(), ends[:-1]), strict=True))
        tick(len(rows))
    return [found[row] for row in range(len(text))]


def _some(order: Sequence[int], lengths: Sequence[int]) -> Iterator[list[int]]:
    """Rows of like length, as many as may be computed at once; the longest first."""
    left = list(order)
    while left:
        count = max(1, TOGETHER // lengths[left[-1]])
        yield left[-count:]
        del left[-count:]


def _in_one(model: Reader, text: Text, window: int, tick: Tick) -> list[Nats]:
    """One long text: what is carried goes from window to window to its end."""
    state: Carried = ()
    every = []
    for batch in parts_in_order(text.flat, window):
        _, surprise, state, _ = judged(model, batch, state)
        every.append(surprise.double().numpy())
    tick(len(text))
    return np.split(np.concatenate(every), np.cumsum(text.lengths.target)[:-1])


def _same_steps(theirs: Recipe, mine: Recipe, words: int) -> None:
    """Biases learnt for an output in two steps mean nothing in one, nor with other words in common."""
    cuts = []
    for recipe in (theirs, mine):
        assert recipe.model.reader is not None
        cuts.append(recipe.model.reader.common if recipe.model.reader.common < words else 0)
    if cuts[0] != cuts[1]:
        raise ModelError(
            f"training.start_from: that model foresees with model.reader.common = {cuts[0]}, this recipe with"
            f" {cuts[1]}; make them alike"
        )


class ReadKind:
    """A text in, how likely each of its words was out."""

    files = (TOKENIZER,)

    def load(self, folder: Path) -> ReadWords:
        return ReadWords.load(folder)

    def build(self, recipe: Recipe, words: ReadWords) -> Reader:
        return build_reader(recipe.model, len(words.text))

    def start(self, recipe: Recipe, base: Path, words: ReadWords | None, ears: Ears) -> Started:
        splits = open_lines(recipe.data, base)
        first = first_model(recipe, base) if words is None else None
        if first is not None:
            words = words_of(first, recipe)
            _same_steps(first.recipe, recipe, len(words.text))
        words = words or ReadWords(Tokenizer.learn(splits["train"], recipe.tokenizer))
        valid: Iterable[str] = splits["valid"]
        if recipe.training.validate_pairs:
            valid = list(islice(valid, recipe.training.validate_pairs))
        train, held = (
            encoded(lines, words.encode_all, recipe.data, longest(recipe))
            for lines in (splits["train"], valid)
        )
        facts = (
            f"{len(train):,} lines",
            f"{len(train.flat):,} tokens",
            f"{len(words.text):,} words",
            f"read as {protocol_of(recipe).replace('|', ', ')}",
        )
        notes = [str(train.tally), f"to validate on: {held.tally}" if str(held.tally) else ""]
        started = Started(ReadTask(recipe, train, held), words, facts, [note for note in notes if note])
        return started if first is None else started._replace(prepare=begun_with(first, recipe))

    def tested(self, recipe: Recipe, base: Path) -> bool:
        return "test" in open_lines(recipe.data, base)

    def evaluate(self, folders: Sequence[Path], asked: Question) -> Evaluated:
        from heedful.tasks.read_evaluate import evaluated

        return evaluated(folders, asked)

    def trace(self, opened: ReaderModel, wanted: Wanted, how: DecodingConfig) -> Trace:
        from heedful.tasks.read_trace import traced_text

        search_nothing(opened, how)
        return traced_text(opened, wanted)


KIND = ReadKind()
