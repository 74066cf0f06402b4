"""Models of transformers as Python users see them: the same calls as our own models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from heedful.arguments import as_list, is_several, python_errors
from heedful.config import DecodingOptions, Recipe
from heedful.errors import ArgumentError, ModelError
from heedful.integrations.transformers.checks import describe_checks
from heedful.integrations.transformers.loaded import LoadedTransformers, wrap
from heedful.integrations.transformers.predict import answer
from heedful.integrations.transformers.task import TASK
from heedful.integrations.transformers.trace import trace_input
from heedful.tasks.api import Model, call_options
from heedful.tasks.base import TraceRequest
from heedful.tasks.data_files import evaluation_files
from heedful.tasks.results import Evaluation, Measurement
from heedful.trace.schema import Trace

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class TransformersModel(Model):
    """A model of transformers: call it, trace it, edit its attention, measure it.

    `sites` names every attention site. `model` is the model itself, which nothing here changes.
    """

    loaded: LoadedTransformers  # type: ignore[assignment]

    def __init__(self, loaded: LoadedTransformers) -> None:
        self.loaded = loaded

    @property
    def model(self) -> PreTrainedModel:
        """The model of transformers."""
        return self.loaded.model.inner

    @property
    def sites(self) -> list[str]:
        """The names of all attention sites."""
        return [site.id for site in self.loaded.model.sites]

    @property
    def alignment_site(self) -> str | None:
        """The site that traces show first; set it by `from_transformers(..., alignment_site=...)`."""
        return self.loaded.model.alignment_site

    @property
    def task(self) -> str:
        """What the model does, such as "translate"."""
        return self.loaded.task_name

    @property
    def recipe(self) -> Recipe:
        """Models of transformers were not trained with a recipe; `model.config` has their settings."""
        raise ModelError(f"{self.name} is a model of transformers and has no recipe; model.config has its settings")

    def __call__(self, inputs: Any, **options: Any) -> Any:
        """Return the output of an input or of each of several: generated text, or a label.

        Options of decoding (`beam`, `n_best`, `max_length`, ...) replace the model's own generation settings.
        """
        one = isinstance(inputs, np.ndarray | torch.Tensor)  # the samples of one sound, or one image
        several, items = (False, [inputs]) if one else (is_several(inputs), as_list(inputs))
        self._check_count(len(items))
        stop = self._stop_condition(options)
        decoding = self._decoding(options)
        with python_errors():
            outputs = [answer(self.loaded, item, decoding, stop) for item in items]
        answers = outputs if decoding.n_best > 1 else [best[0] for best in outputs]
        return answers if several else answers[0]

    def trace(self, inputs: Any = None, **options: Any) -> Any:
        """Record every step of the model on one input or on each of a list; see `heedful.Model.trace`.

        Inputs are texts, images (files, PIL images, arrays) or sounds (WAV files or samples, at 16 kHz).
        """
        if isinstance(inputs, np.ndarray | torch.Tensor):  # the samples of one sound, or one image
            return super().trace([inputs], **options)[0]
        return super().trace(inputs, **options)

    def check(self, item: Any) -> dict[str, float]:
        """Compare our attention with the model's own on an input: the largest difference of its logits, and others.

        The differences are those of the logits, of the sums of rows from 1, and of softmax and contexts that are
        recomputed from a full trace.
        """
        with python_errors():
            return describe_checks(self.loaded, item)

    def evaluate(self, data: Any = None, **options: Any) -> Evaluation:
        """Not available: `heedful.train` models only."""
        raise ModelError(f"{self.name} is a model of transformers: generate with it, and score the outputs")

    def measure(
        self,
        data: Any = None,
        *,
        split: str = "test",
        gold: str | Path | None = None,
        tests: str | Sequence[str] | None = None,
        limit: int = 500,
        steps: int = 4,
        seed: int = 1,
    ) -> Measurement:
        """Measure the attention of the model on data, as `heedful.Model.measure` does; `data` is needed.

        A decoder reads texts, an encoder-decoder pairs of source and target, a classifier texts with labels.
        """
        if data is None:
            raise ArgumentError("data: a model of transformers comes without data; pass pairs, a table or a file")
        task = self.loaded.task_name
        kind = task if task in ("classify", "read") else "translate"
        files = evaluation_files(data, kind, ())
        return self._measure(files, split, gold, tests, limit=limit, steps=steps, seed=seed)

    def save(self, folder: str | Path) -> None:
        """Write model and tokenizer to a folder, as `save_pretrained` does."""
        self.save_pretrained(folder)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write model and tokenizer to a folder of transformers."""
        self.model.save_pretrained(folder)
        for part in self._processors():
            part.save_pretrained(folder)

    def push_to_hub(self, name: str, *, private: bool = False, token: str | None = None) -> str:
        """Upload model and tokenizer to the hub, as `push_to_hub` of transformers does."""
        parts: list[Any] = [self.model, *self._processors()]
        uploaded = [part.push_to_hub(name, private=private, token=token) for part in parts]
        return str(uploaded[0])

    def _processors(self) -> list[Any]:
        """Return the tokenizer, image processor and feature extractor that there are."""
        loaded = self.loaded
        tokenizer = None if loaded.tokenizer is None else loaded.tokenizer.inner
        return [part for part in (tokenizer, loaded.images, loaded.sounds) if part is not None]

    def _trace_one(self, item: Any, request: TraceRequest, decoding: DecodingOptions) -> Trace:
        return trace_input(self.loaded, item, replace(request, input=item if isinstance(item, str) else ""), decoding)

    def _decoding(self, options: dict[str, Any]) -> DecodingOptions:
        return call_options(options)

    def __repr__(self) -> str:
        return f"<heedful model {self.name}: {type(self.model).__name__}, {len(self.sites)} attention sites>"


def from_transformers(
    model: PreTrainedModel, processor: Any = None, *, name: str | None = None, alignment_site: str | None = None
) -> TransformersModel:
    """Return a model of transformers as a model of ours, which records, edits and measures its attention.

    `processor` is the tokenizer, the image processor, or a processor of several parts. `alignment_site` is the site
    that is shown first: by default the penultimate layer's cross-attention, the row of [CLS] in the last layer, or the
    last layer's self-attention.

        model = AutoModelForSeq2SeqLM.from_pretrained(folder)
        mine = heedful.from_transformers(model, AutoTokenizer.from_pretrained(folder))
        mine.trace("The cat sleeps.", edits="onehot:step=1,position=0").show()
    """
    with python_errors():
        return TransformersModel(wrap(model, processor, TASK, name=name, alignment_site=alignment_site))
