"""Texts in, labels out: what joins texts with labels, a classifier and its measures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from heedful.attention import PLAIN, Watch
from heedful.config import DecodingConfig, Recipe
from heedful.data.batch import Buckets, pad
from heedful.data.corpus import Corpus, open_corpus, within
from heedful.data.labels import LabelBatch, Labels, label_batch, plain_label
from heedful.data.pieces import Cutter
from heedful.data.readers import Pairs, TextPair, open_pairs
from heedful.data.tokenizer import SPECIALS, Tokenizer
from heedful.errors import DataError
from heedful.layers.entropy import plainly_agreed
from heedful.layers.modules import must
from heedful.models import Classifier, build_classifier
from heedful.models.classifier import Judged
from heedful.tasks.classify_start import beginning
from heedful.tasks.classify_teach import lessons, teachers_of
from heedful.tasks.kind import Evaluated, Opened, Question, Started, search_nothing
from heedful.tasks.text import Split, open_splits
from heedful.tasks.writing import side_by_side, validated
from heedful.training import Loss, Validation
from heedful.training import Sample as Shown
from heedful.training.types import Ears

if TYPE_CHECKING:
    from heedful.record import Trace
    from heedful.tasks.tracing import Wanted

SHOWN = 3  # samples at each validation
TOGETHER = 200  # texts judged at once
TOKENIZER, LABELS = "source.tokenizer.json", "labels.json"
FIGURES = ("accuracy", "macro-f1", "weighted-f1")  # of a validation


class Answers(NamedTuple):
    """The task's assets: the words of texts, and the labels."""

    source: Tokenizer
    labels: Labels

    def save(self, folder: Path) -> None:
        self.source.save(folder / TOKENIZER)
        self.labels.save(folder / LABELS)

    @classmethod
    def load(cls, folder: Path) -> Answers:
        return cls(Tokenizer.load(folder / TOKENIZER), Labels.load(folder / LABELS))

    def sizes(self) -> dict[str, int]:
        return {"source": len(self.source), "labels": len(self.labels)}


Labeller = Opened[Answers, Classifier]


def learn(pairs: Split, recipe: Recipe) -> Answers:
    """The words and the labels of the training data, which is read twice."""
    labels = Labels.learn(pair.target for pair in pairs)
    return Answers(Tokenizer.learn((pair.source for pair in pairs), recipe.tokenizer), labels)


def known(pairs: Split, labels: Labels, skip: bool) -> tuple[list[TextPair], str]:
    """The pairs whose labels training saw, and what is said of the others; or the first of those refused."""
    kept: list[TextPair] = []
    strange: dict[str, int] = {}
    numbered = pairs.numbered() if isinstance(pairs, Pairs) else enumerate(pairs, 1)
    where = str(pairs) if isinstance(pairs, Pairs) else "the validation data"
    for line, pair in numbered:
        if pair.target in labels:
            kept.append(pair)
            continue
        name = plain_label(pair.target)
        strange[name] = strange.get(name, 0) + 1
        if not skip:
            raise DataError(
                f'{where}, line {line}: the label "{name}" is not in the training data;'
                f' {labels.nearest(name)} (data.broken = "skip" goes on without such lines)'
            )
    if not strange:
        return kept, ""
    if not kept:
        raise DataError(f"{where}: none of its labels is in the training data ({', '.join(strange)})")
    told = ", ".join(f'"{name}" {count:,}' for name, count in strange.items())
    return kept, f"to validate on: left out for labels that are not in the training data: {told}"


def judged(
    model: Classifier,
    ids: Sequence[Sequence[int]],
    hear: Callable[[Sequence[int], Judged], None],
    watch: Watch = PLAIN,
    threads: int = 1,
) -> None:
    """Judge texts, those of like length together; `hear` gets which they are and what came of them."""
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))

    def one(first: int) -> None:
        rows = order[first : first + TOGETHER]
        with torch.inference_mode():  # which belongs to a thread
            hear(rows, model.judge(LabelBatch(pad([ids[row] for row in rows])), watch))

    side_by_side(one, range(0, len(order), TOGETHER), threads)


def probabilities(model: Classifier, ids: Sequence[Sequence[int]], threads: int = 1) -> Tensor:
    """Of every text the probability of every label: (text, label)."""
    found = torch.zeros(len(ids), model.output.out_features)

    def hear(rows: Sequence[int], said: Judged) -> None:
        found[list(rows)] = said.logits.float().softmax(dim=-1).cpu()

    judged(model, ids, hear, threads=threads)
    return found


class ClassifyTask:
    """What the training loop asks: batches, a loss, and figures on the validation texts."""

    def __init__(self, recipe: Recipe, splits: Mapping[str, Split], words: Answers) -> None:
        self.recipe, self.words = recipe, words
        self.taught: Float[Tensor, "text label"] | None = None  # what teachers hold each text to be
        training = recipe.training
        self.figures = validated(training.metric, FIGURES)
        self.corpus: Corpus = open_corpus(splits["train"], words.source, words.labels, recipe.data)
        self.buckets = Buckets(self.corpus, training.batch_tokens, training.seed)
        self.valid = list(islice(splits["valid"], training.validate_pairs or None))
        self.valid_ids = words.source.encode_all([pair.source for pair in self.valid])
        self.weights = words.labels.weights(training.class_weights)
        dropout = recipe.tokenizer.dropout
        self.cutter = Cutter(words.source, dropout, training.seed) if dropout else None

    def batches(self, epoch: int, start: int = 0, rank: int = 0, world: int = 1) -> Iterator[LabelBatch]:
        plan = self.buckets.arrange(epoch)
        for number in range(start + rank, len(plan), world):
            rows = plan.batch(number)
            examples = [self.corpus[row] for row in rows]
            if self.cutter is not None:
                rng = Random(f"{self.recipe.training.seed} {epoch} {number}")
                examples = [e._replace(source=self.cutter.cut(e.source, rng)) for e in examples]
            batch = label_batch(examples)
            yield batch if self.taught is None else batch._replace(taught=self.taught[list(rows)])

    def steps_per_epoch(self, world: int = 1) -> int:
        return -(-len(self.buckets.arrange(1)) // world)

    def parts(self, batch: LabelBatch, count: int) -> list[LabelBatch]:
        """Nothing but dropout is left to chance."""
        return [batch] if batch.size < 2 * count else [batch.rows(start, count) for start in range(count)]

    def loss(self, model: Classifier, batch: LabelBatch) -> Loss:
        """Cross-entropy of the labels, summed; in training by their weights, and smoothed."""
        assert batch.labels is not None
        said = model.judge(batch)
        logits = said.logits
        weights = self.weights.to(logits) if model.training and self.weights is not None else None
        smoothing = self.recipe.training.smoothing if model.training else 0.0
        if model.training and (price := self.recipe.training.agreement):
            again = model.judge(batch).logits
            total, _ = plainly_agreed(logits, again, batch.labels, smoothing, price, weights)
        else:
            gold = self._gold(batch, logits)
            total = F.cross_entropy(logits, gold, weights, reduction="sum", label_smoothing=smoothing)
        if model.training and (price := must(model.config.classifier).neighbours):
            guessed = model.neighbours(said.read.keys, model.readable(batch), batch.source.ids)
            total = total + price * batch.size * guessed
        return Loss(total, batch.size)

    def _gold(self, batch: LabelBatch, logits: Tensor) -> Tensor:
        """The labels; where there are teachers, probabilities: a part of them is theirs."""
        assert batch.labels is not None
        if batch.taught is None:
            return batch.labels
        own = F.one_hot(batch.labels, logits.shape[1]).to(logits)
        return own.lerp(batch.taught.to(logits), self.recipe.training.teaching)

    def validate(self, model: Classifier) -> Validation:
        """Loss per text, accuracy, both F1 and the chosen metric; samples."""
        from heedful.evaluation import evaluate

        p = probabilities(model, self.valid_ids, torch.get_num_threads())
        references = [plain_label(pair.target) for pair in self.valid]
        gold = torch.tensor([self.words.labels.number(name) for name in references])
        surprise = -p.gather(1, gold[:, None]).clamp_min(1e-30).log()
        outputs = [self.words.labels.names[best] for best in p.argmax(dim=1).tolist()]
        figures = {"loss": float(surprise.mean())}
        figures |= {name: evaluate([name], outputs, references)[0].value for name in self.figures}
        rows = zip(self.valid, references, outputs, strict=True)
        return Validation(
            figures, [Shown(pair.source, gold, said) for pair, gold, said in islice(rows, SHOWN)]
        )


def ending(words: Tokenizer, marks: Sequence[str]) -> list[int]:
    """The words that end a sentence: a mark, or a word with one at its end."""
    if not marks:
        return []
    found = [i for i in range(len(SPECIALS), len(words)) if words.shown(i).endswith(tuple(marks))]
    if not found:
        raise DataError(
            f"model.classifier.sentences: no word of the texts ends with {' or '.join(marks)}, so there are"
            " no sentences to read; give other marks, or none"
        )
    return found


def _lessons(teachers: Sequence[Labeller], train: Split, words: Answers, recipe: Recipe) -> Tensor:
    """What teachers say of every text of the corpus."""
    pairs, _ = within(train, words.source, words.labels, recipe.data)
    threads = recipe.training.threads or torch.get_num_threads()
    return lessons(teachers, [pair.source for pair in pairs], threads)


class ClassifyKind:
    """Texts to labels."""

    files = (TOKENIZER, LABELS)

    def load(self, folder: Path) -> Answers:
        return Answers.load(folder)

    def build(self, recipe: Recipe, words: Answers) -> Classifier:
        marks = ending(words.source, must(recipe.model.classifier).sentences)
        model = build_classifier(recipe.model, len(words.source), len(words.labels), marks)
        model.embedding.weight.requires_grad_(not recipe.training.hold_vectors)
        return model

    def start(self, recipe: Recipe, base: Path, words: Answers | None, ears: Ears) -> Started:
        splits = open_splits(recipe, base)
        new = words is None
        words = words or learn(splits["train"], recipe)
        valid, strange = known(splits["valid"], words.labels, recipe.data.broken == "skip")
        splits["valid"], left_out = within(valid, words.source, words.labels, recipe.data)
        task = ClassifyTask(recipe, splits, words)
        shares = ", ".join(
            f"{name} {count / sum(words.labels.counts):.0%}"
            for name, count in islice(zip(words.labels.names, words.labels.counts, strict=True), 6)
        )
        facts = (
            f"{len(task.corpus):,} texts",
            f"{len(words.labels):,} labels ({shares}{', ...' if len(words.labels) > 6 else ''})",
            f"{len(words.source):,} words",
        )
        notes = [str(task.corpus.tally), strange, f"to validate on: {left_out}" if str(left_out) else ""]
        started = Started(task, words, facts, [note for note in notes if note])
        if new:
            started = started._replace(prepare=beginning(recipe, base, words.source))
        if teachers := teachers_of(recipe, base, words.labels):  # what costs time comes last
            names = ", ".join(teacher.name for teacher in teachers)
            ears.say(f"asking {names} about {len(task.corpus):,} texts")
            task.taught = _lessons(teachers, splits["train"], words, recipe)
        return started

    def tested(self, recipe: Recipe, base: Path) -> bool:
        return recipe.data.world is not None or "test" in open_pairs(recipe.data, base)

    def evaluate(self, folders: Sequence[Path], asked: Question) -> Evaluated:
        from heedful.tasks.classify_evaluate import evaluated

        return evaluated(folders, asked)

    def trace(self, opened: Labeller, wanted: Wanted, how: DecodingConfig) -> Trace:
        from heedful.tasks.classify_trace import trace_text

        search_nothing(opened, how)
        return trace_text(opened, wanted)


KIND = ClassifyKind()
