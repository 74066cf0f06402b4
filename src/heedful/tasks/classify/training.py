"""Training of classifiers: batches of labeled texts, and validation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from random import Random

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from heedful.attention import NO_HOOKS, Detail, Hooks
from heedful.config import Recipe
from heedful.data.batch import BucketBatches
from heedful.data.bpe_dropout import SegmentationSampler
from heedful.data.corpus import Corpus, filter_by_length, open_corpus
from heedful.data.guides import ExampleWords, LinkRows
from heedful.data.labels import LabelBatch, Labels, collate_labels, normalize_label
from heedful.data.pairs import PairFiles, TextPair
from heedful.errors import DataError
from heedful.fused.cross_entropy import rdrop_loss
from heedful.metrics import evaluate
from heedful.models import Classifier
from heedful.optional import not_none
from heedful.tasks.classify.assets import ClassifierAssets, LoadedClassifier
from heedful.tasks.classify.distill import teacher_probs
from heedful.tasks.classify.score import label_probabilities
from heedful.tasks.generation import validation_metrics
from heedful.tasks.guided import GuideMaker, guided_loss, guided_sites
from heedful.tasks.splits import Split
from heedful.training import Loss, Sample, Validation

N_SAMPLES = 3  # shown after each validation
VALIDATION_METRICS = ("accuracy", "macro-f1", "weighted-f1")


def filter_known_labels(pairs: Split, labels: Labels, skip: bool) -> tuple[list[TextPair], str]:
    """Return the pairs whose labels are in the training data, and a note about the others.

    Without `skip`, an unknown label is an error.
    """
    known: list[TextPair] = []
    unknown: dict[str, int] = {}
    numbered = (row[:2] for row in pairs.numbered_pairs()) if isinstance(pairs, PairFiles) else enumerate(pairs, 1)
    where = str(pairs) if isinstance(pairs, PairFiles) else "the validation data"
    for line, pair in numbered:
        if pair.target in labels:
            known.append(pair)
            continue
        name = normalize_label(pair.target)
        unknown[name] = unknown.get(name, 0) + 1
        if not skip:
            raise DataError(
                f'{where}, line {line}: the label "{name}" is not in the training data;'
                f' {labels.suggest(name)} (fix the line, or set data.on_error = "skip" to leave out such lines)'
            )
    if not unknown:
        return known, ""
    if not known:
        raise DataError(f"{where}: none of its labels is in the training data ({', '.join(unknown)})")
    counts = ", ".join(f'"{name}" {count:,}' for name, count in unknown.items())
    return known, f"validation data: left out for labels that are not in the training data: {counts}"


class ClassificationTraining:
    """Batches of texts of similar length, and validation on held-out texts."""

    def __init__(self, recipe: Recipe, splits: Mapping[str, Split], assets: ClassifierAssets) -> None:
        self.recipe, self.assets = recipe, assets
        self.teacher_probs: Float[Tensor, "text label"] | None = None
        training = recipe.training
        self.metrics = validation_metrics(training.metric, VALIDATION_METRICS)
        self.corpus: Corpus = open_corpus(splits["train"], assets.source, assets.labels, recipe.data)
        self.buckets = BucketBatches(self.corpus, training.batch_tokens, training.seed)
        self.valid = list(islice(splits["valid"], training.validate_pairs or None))
        self.valid_ids = assets.source.encode_all([pair.source for pair in self.valid])
        self.class_weights = assets.labels.class_weights(training.class_weights)
        self.guides: GuideMaker | None = None
        if training.guided is not None:
            kept, _ = filter_by_length(splits["train"], assets.source, assets.labels, recipe.data)
            links = LinkRows(pair.links for pair in kept)
            self.guides = GuideMaker(training.guided, links, self.buckets, training)
        dropout = recipe.tokenizer.bpe_dropout
        self.bpe_dropout = SegmentationSampler(assets.source, dropout, training.seed) if dropout else None

    def batches(self, epoch: int, start: int = 0, rank: int = 0, world_size: int = 1) -> Iterator[LabelBatch]:
        """Yield the batches of an epoch that belong to one process."""
        plan = self.buckets.epoch_plan(epoch)
        for number in range(start + rank, len(plan), world_size):
            rows = plan.batch_rows(number)
            examples = [self.corpus[row] for row in rows]
            if self.bpe_dropout is not None:
                rng = Random(f"{self.recipe.training.seed} {epoch} {number}")
                examples = [e._replace(source=self.bpe_dropout.resample(e.source, rng)) for e in examples]
            batch = collate_labels(examples)
            if self.guides is not None:
                words = (ExampleWords(self.assets.source.word_ids(example.source), [0]) for example in examples)
                batch = batch._replace(guide=self.guides.make(rows, words, epoch, number))
            yield batch if self.teacher_probs is None else batch._replace(teacher_probs=self.teacher_probs[list(rows)])

    def steps_per_epoch(self, world_size: int = 1) -> int:
        """Return the number of batches per epoch, of the process that gets the most."""
        return -(-len(self.buckets.epoch_plan(1)) // world_size)

    def split_batch(self, batch: LabelBatch, n_parts: int) -> list[LabelBatch]:
        """Split by rows; dropout is the only randomness."""
        return [batch] if batch.size < 2 * n_parts else [batch.rows(start, n_parts) for start in range(n_parts)]

    def loss(self, model: Classifier, batch: LabelBatch) -> Loss:
        """Return the summed cross-entropy of the labels.

        In training, class weights, label smoothing, R-Drop, teachers, guided attention and the auxiliary language model
        apply.
        """
        assert batch.labels is not None
        training, guide = self.recipe.training, batch.guide if model.training else None
        sites = frozenset[str]() if guide is None else guided_sites(model, not_none(training.guided), "pool")
        hooks = Hooks(Detail.WEIGHTS, sites) if sites else NO_HOOKS
        output = model(batch, hooks)
        logits, attentions = output.logits, [output.attentions]
        weights = self.class_weights.to(logits) if model.training and self.class_weights is not None else None
        smoothing = training.label_smoothing if model.training else 0.0
        if model.training and training.rdrop:
            second = model(batch, hooks)
            attentions.append(second.attentions)
            total, _ = rdrop_loss(logits, second.logits, batch.labels, smoothing, training.rdrop, weights)
        else:
            targets = self._targets(batch, logits)
            total = F.cross_entropy(logits, targets, weights, reduction="sum", label_smoothing=smoothing)
        if guide is not None:
            guided = not_none(training.guided)
            total = total + torch.stack([guided_loss(each, sites, guide, guided) for each in attentions]).mean()
        auxiliary = not_none(model.config.classifier).lm_auxiliary
        if model.training and auxiliary:
            lm_loss = model.lm_auxiliary(output.encoder_output.keys, model.source_keep(batch), batch.source.ids)
            total = total + auxiliary * batch.size * lm_loss
        return Loss(total, batch.size)

    def _targets(self, batch: LabelBatch, logits: Tensor) -> Tensor:
        """Return the labels, or with teachers the mixture of labels and their probabilities (Hinton 2015)."""
        assert batch.labels is not None
        if batch.teacher_probs is None:
            return batch.labels
        one_hot = F.one_hot(batch.labels, logits.shape[1]).to(logits)
        return one_hot.lerp(batch.teacher_probs.to(logits), self.recipe.training.distill_weight)

    def validate(self, model: Classifier) -> Validation:
        """Return the loss per text, accuracy, F1 and the chosen metric, and samples."""
        probabilities = label_probabilities(model, self.valid_ids, torch.get_num_threads())
        labels = self.assets.labels
        references = [normalize_label(pair.target) for pair in self.valid]
        gold = torch.tensor([labels.index(name) for name in references])
        surprisal = -probabilities.gather(1, gold[:, None]).clamp_min(1e-30).log()
        outputs = [labels.names[best] for best in probabilities.argmax(dim=1).tolist()]
        metrics = {"loss": float(surprisal.mean())}
        metrics |= {name: evaluate([name], outputs, references)[0].value for name in self.metrics}
        rows = islice(zip(self.valid, references, outputs, strict=True), N_SAMPLES)
        return Validation(metrics, [Sample(pair.source, reference, output) for pair, reference, output in rows])


def corpus_teacher_probs(
    teachers: Sequence[LoadedClassifier], train: Split, assets: ClassifierAssets, recipe: Recipe
) -> Tensor:
    """Return the teachers' probabilities for every text of the training corpus."""
    pairs, _ = filter_by_length(train, assets.source, assets.labels, recipe.data)
    threads = recipe.training.threads or torch.get_num_threads()
    return teacher_probs(teachers, [pair.source for pair in pairs], threads)
