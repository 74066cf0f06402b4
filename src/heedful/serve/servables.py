"""What a server does with a model of each task: check inputs and options before any work, then compute records.

The records are those that the command line prints with `--json`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import torch

from heedful.config import DecodingOptions
from heedful.data.batch import TextBatch, pad
from heedful.data.images.backbone import Backbone
from heedful.data.images.files import ImageBytes
from heedful.decoding import StopCondition, search
from heedful.errors import ArgumentError
from heedful.inference.batch_invariant import BatchInvariantModel, widen, widened
from heedful.parallel import limit_torch_threads
from heedful.serve.problems import too_large, wrong_request
from heedful.serve.settings import Limits
from heedful.tasks.api import Model, call_options
from heedful.tasks.caption.api import Captioner
from heedful.tasks.caption.predict import caption_records, load_backbone, open_pixels
from heedful.tasks.classify.api import Classifier
from heedful.tasks.classify.predict import classify_lines
from heedful.tasks.language_model.api import LanguageModel
from heedful.tasks.language_model.data import inference_max_tokens
from heedful.tasks.language_model.predict import read_lines
from heedful.tasks.limits import MIN_LIMIT, inference_limits
from heedful.tasks.recommend.api import Recommender
from heedful.tasks.recommend.predict import recommend
from heedful.tasks.seq2seq.api import TextGenerator
from heedful.tasks.seq2seq.predict import Predictor, line_as_read, make_predictor, make_records

DETAILS = ("tokens", "token_logp", "alignment")  # of an output, only with `alignments`
TRIED_LENGTHS = (3, 11, 7, 14, 5, 9)  # tokens, of one width
HIDDEN_OPTIONS = ("batch_size",)  # the server's own


class Item(NamedTuple):
    """An input that was checked, and its length, by which batches are made."""

    payload: Any
    length: int


class Servable(ABC):
    """A model in memory, with what a server needs to know of its task."""

    joins = False  # whether inputs of several requests are computed as one batch

    def __init__(self, name: str, model: Model) -> None:
        self.name, self.model = name, model

    @abstractmethod
    def prepare(self, inputs: Sequence[Any], limits: Limits) -> list[Item]:
        """Check inputs; raise a ProblemError for one that is too large or cannot be used."""

    @abstractmethod
    def run(
        self, payloads: Sequence[Any], options: Hashable, alignments: bool, stop: StopCondition
    ) -> list[dict[str, Any]]:
        """Return a record per input."""

    def parse_options(self, values: Mapping[str, Any], limits: Limits) -> Hashable:
        """Check the options of a request."""
        if values:
            raise wrong_request(
                f"options.{next(iter(values))}: there is no such option; {self.name} was trained to {self.model.task}"
                " and generates no text"
            )
        return None

    def may_join(self, options: Hashable) -> bool:
        """Return whether inputs with these options may share a batch."""
        return self.joins

    def bucket(self, length: int) -> int:
        """Return a number that inputs of one batch have in common."""
        return 0


class GeneratingServable(Servable):
    """A model that generates text, with the options of decoding."""

    def parse_options(self, values: Mapping[str, Any], limits: Limits) -> DecodingOptions:
        for name in HIDDEN_OPTIONS:
            if name in values:
                raise wrong_request(f"options.{name}: the server chooses its batches")
        try:
            given = call_options(dict(values))
        except ArgumentError as error:
            raise wrong_request("\n".join(f"options.{line}" for line in str(error).splitlines())) from None
        options = self.model.recipe.decoding.override(given)
        for name, most in (("beam", limits.beam), ("n_best", limits.beam), ("max_length", limits.output_tokens)):
            if name in given.model_fields_set and getattr(options, name) > most:
                raise too_large(f"options.{name}={getattr(options, name):,}: this server computes at most {most:,}")
        return options.model_copy(update={"max_length": min(options.max_length, limits.output_tokens)})

    def may_join(self, options: Hashable) -> bool:
        return self.joins and isinstance(options, DecodingOptions) and options.method != "sample"


class TextServable(GeneratingServable):
    """Lines to lines."""

    def __init__(self, name: str, model: TextGenerator, int8: bool) -> None:
        super().__init__(name, model)
        predictor = make_predictor([model.loaded], int8, threads=1)
        invariant = predictor._replace(model=BatchInvariantModel(predictor.model))
        with ThreadPoolExecutor(1, initializer=limit_torch_threads, initargs=(1,)) as pool:  # as in the batcher
            self.is_exact = not int8 and pool.submit(has_same_bits, invariant).result()
        self.predictor = invariant if self.is_exact else predictor
        self.joins = int8 or self.is_exact

    def bucket(self, length: int) -> int:
        return widened(length + 1) if self.is_exact else 0  # the end token is a position, too

    def prepare(self, inputs: Sequence[Any], limits: Limits) -> list[Item]:
        source, most = self.predictor.assets.source, min(self.predictor.limits.max_source, limits.tokens)
        decoding = self.predictor.decoding
        return check_lines(self.name, inputs, lambda line: len(source.encode(line_as_read(line, decoding))) - 1, most)

    def run(
        self, payloads: Sequence[Any], options: Hashable, alignments: bool, stop: StopCondition
    ) -> list[dict[str, Any]]:
        assert isinstance(options, DecodingOptions)
        if not self.may_join(options) and len(payloads) > 1:  # each input as if it were alone
            return [record for line in payloads for record in self.run([line], options, alignments, stop)]
        unlike = self.predictor.find_unlike(payloads)
        records = make_records(self.predictor, payloads, unlike, options, stop=stop, alignments=alignments)
        return [_generation_record(record, alignments) for record in records]


def has_same_bits(predictor: Predictor) -> bool:
    """Return whether outputs have the same bits alone and in a batch: tried on random sources.

    Not so are LSTMs, which oneDNN computes in blocks of rows, and very narrow layers.
    """
    assets, rng = predictor.assets, torch.Generator().manual_seed(1)
    sources = [assets.random_source(1, length, rng).ids[0].tolist() for length in TRIED_LENGTHS]
    for options in (DecodingOptions(max_length=4), DecodingOptions(method="beam", beam=3, max_length=4)):
        alone = [search(predictor.model, TextBatch(widen(pad([ids]))), options).hypotheses[0] for ids in sources]
        together = search(predictor.model, TextBatch(widen(pad(sources))), options).hypotheses
        if any(a[0].token_logp != b[0].token_logp for a, b in zip(alone, together, strict=True)):
            return False
    return True


class CaptionServable(GeneratingServable):
    """Images to captions; the payloads are pixels in the size of the backbone."""

    @cached_property
    def backbone(self) -> Backbone:
        return load_backbone(self.model.loaded)

    def prepare(self, inputs: Sequence[Any], limits: Limits) -> list[Item]:
        images = [ImageBytes(f"inputs[{i}]", data, limits.pixels) for i, data in enumerate(inputs)]
        return [Item(open_pixels(image, self.backbone), 1) for image in images]

    def run(
        self, payloads: Sequence[Any], options: Hashable, alignments: bool, stop: StopCondition
    ) -> list[dict[str, Any]]:
        assert isinstance(options, DecodingOptions)
        records = [
            record
            for pixels in payloads
            for record in caption_records(self.model.loaded, self.backbone, [""], [pixels], options, stop=stop)
        ]
        return [_generation_record(record, alignments) for record in records]


class ClassifierServable(Servable):
    """Texts to labels."""

    def prepare(self, inputs: Sequence[Any], limits: Limits) -> list[Item]:
        loaded = self.model.loaded
        most = min(inference_limits([loaded.recipe]).max_source, limits.tokens)
        return check_lines(self.name, inputs, lambda line: len(loaded.assets.source.encode(line)) - 1, most)

    def run(
        self, payloads: Sequence[Any], options: Hashable, alignments: bool, stop: StopCondition
    ) -> list[dict[str, Any]]:
        records = []
        for line in payloads:
            stop.check(0, 1)
            notes: list[str] = []
            (result,) = classify_lines(self.model.loaded, [line], weights=alignments, threads=1, log=notes.append)
            record: dict[str, Any] = {"text": line, "label": None} if result is None else result.to_dict()
            if not alignments:
                record.pop("words", None)
                record.pop("weights", None)
            records.append({**record, "notes": [note.partition("): ")[2] or note for note in notes]})
        return records


class LanguageModelServable(Servable):
    """Lines to the surprisal of their words."""

    def prepare(self, inputs: Sequence[Any], limits: Limits) -> list[Item]:
        loaded = self.model.loaded
        most = min(inference_max_tokens(loaded.recipe) or MIN_LIMIT, limits.tokens)
        return check_lines(self.name, inputs, lambda line: len(loaded.assets.text.encode(line)) - 1, most)

    def run(
        self, payloads: Sequence[Any], options: Hashable, alignments: bool, stop: StopCondition
    ) -> list[dict[str, Any]]:
        records = []
        for text in payloads:
            stop.check(0, 1)
            notes: list[str] = []
            (line,) = read_lines(self.model.loaded, [text], log=notes.append)
            record = line.to_dict()
            if not alignments:
                record["words"] = [{k: v for k, v in word.items() if k != "weights"} for word in record["words"]]
            records.append({**record, "notes": [note.partition(": ")[2] for note in notes]})
        return records


class RecommendOptions(NamedTuple):
    """How many items, and how many reasons of each."""

    top: int = 10
    reasons: int = 3


class RecommenderServable(Servable):
    """Users or histories to items; the payloads are item numbers."""

    MOST: ClassVar[Mapping[str, int]] = {"top": 1_000, "reasons": 100}

    def prepare(self, inputs: Sequence[Any], limits: Limits) -> list[Item]:
        assert isinstance(self.model, Recommender)
        return [Item(history, len(history)) for history in map(self.model.find_history, inputs)]

    def parse_options(self, values: Mapping[str, Any], limits: Limits) -> RecommendOptions:
        for name, value in values.items():
            if name not in self.MOST:
                raise wrong_request(f"options.{name}: there is no such option; known: {', '.join(self.MOST)}")
            least = 1 if name == "top" else 0
            if type(value) is not int or not least <= value <= self.MOST[name]:
                raise wrong_request(f"options.{name}: expected a whole number from {least} to {self.MOST[name]:,}")
        return RecommendOptions(**values)

    def run(
        self, payloads: Sequence[Any], options: Hashable, alignments: bool, stop: StopCondition
    ) -> list[dict[str, Any]]:
        assert isinstance(options, RecommendOptions)
        catalog, records = self.model.loaded.assets, []
        for history in payloads:
            stop.check(0, 1)
            best = recommend(self.model.loaded, history, options.top, options.reasons)
            items = [
                {
                    "id": item.id,
                    "title": item.title,
                    "score": item.score,
                    "reasons": [
                        {"id": r.id, "title": r.title, "weight": r.weight, "effect": r.effect} for r in item.reasons
                    ],
                }
                for item in best
            ]
            known = [{"id": catalog.items[i], "title": catalog.name(i)} for i in history.tolist()]
            records.append({"history": known, "items": items})
        return records


def make_servable(name: str, model: Model, int8: bool) -> Servable:
    """Return the servable of a loaded model."""
    if isinstance(model, TextGenerator):
        return TextServable(name, model, int8)
    kinds: Mapping[type[Model], type[Servable]] = {
        Captioner: CaptionServable,
        Classifier: ClassifierServable,
        LanguageModel: LanguageModelServable,
        Recommender: RecommenderServable,
    }
    for kind, servable in kinds.items():
        if isinstance(model, kind):
            return servable(name, model)
    raise wrong_request(f"{name}: models for {model.task} cannot be served")


def check_lines(model: str, lines: Sequence[Any], count: Any, most: int) -> list[Item]:
    """Return lines with their number of tokens; raise a ProblemError for one with more than the model reads."""
    items = []
    for index, line in enumerate(lines):
        if not isinstance(line, str):
            raise wrong_request(f"inputs[{index}]: expected text, got {type(line).__name__}")
        tokens = count(line)
        if tokens > most:
            raise too_large(f"inputs[{index}] has {tokens:,} tokens, but {model} reads at most {most:,}; split it")
        items.append(Item(line, tokens))
    return items


def _generation_record(record: Mapping[str, Any], alignments: bool) -> dict[str, Any]:
    outputs = [
        {key: value for key, value in output.items() if alignments or key not in DETAILS}
        for output in record["outputs"]
    ]
    shown = {"text": outputs[0]["text"] if outputs else "", "outputs": outputs}
    if alignments and "tokens" in record:
        shown["tokens"] = record["tokens"]
    confidence = record["confidence"]
    finite = confidence is not None and math.isfinite(confidence)
    return {**shown, "confidence": confidence if finite else None, "unlike_training": record["unlike_training"]}
