"""Generate text with one trained model or an ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from heedful.attention import NO_HOOKS, Detail, Hooks
from heedful.config import DataConfig, DecodingOptions
from heedful.data.batch import TextBatch, pad
from heedful.decoding import NEVER, Hypothesis, StopCondition, search_all
from heedful.errors import ModelError
from heedful.inference.batch_invariant import BatchInvariantModel, widen
from heedful.models import AutoregressiveModel
from heedful.parallel import OnProgress, available_cpus, no_progress
from heedful.tasks.generation import make_generator
from heedful.tasks.license_notice import show_license_once
from heedful.tasks.limits import inference_limits
from heedful.tasks.model_folder import check_task, load_model
from heedful.tasks.seq2seq.assets import LoadedSeq2Seq, Seq2SeqAssets
from heedful.tasks.seq2seq.outputs import (
    find_unlike,
    generate_records,
    generate_texts,
    hypothesis_text,
    line_as_read,
    make_records,
)

__all__ = [
    "Predictor",
    "generate_records",
    "generate_texts",
    "hypothesis_text",
    "line_as_read",
    "load_predictor",
    "make_predictor",
    "make_records",
    "search_lines",
]


class Predictor(NamedTuple):
    """One model or an ensemble, with the tokenizers and decoding options it was trained with."""

    name: str
    model: AutoregressiveModel
    assets: Seq2SeqAssets
    decoding: DecodingOptions
    task: str
    limits: DataConfig  # `max_source` and `max_target` at inference
    threads: int = 1  # batches decoded in parallel

    def search(
        self,
        lines: Sequence[str],
        options: DecodingOptions,
        hooks: Hooks = NO_HOOKS,
        on_progress: OnProgress = no_progress,
        stop: StopCondition = NEVER,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each line; a blank line has none."""
        filled = [i for i, line in enumerate(lines) if line.strip()]
        on_progress(len(lines) - len(filled))
        sources = [lines[i] for i in filled]
        hypotheses = search_lines(self.model, sources, self.assets, options, hooks, on_progress, self.threads, stop)
        by_line = dict(zip(filled, hypotheses, strict=True))
        return [by_line.get(i, []) for i in range(len(lines))]

    @property
    def alignment_site(self) -> str | None:
        return self.model.alignment_site

    def generate(
        self,
        lines: Sequence[str],
        options: DecodingOptions,
        with_weights: bool = False,
        on_progress: OnProgress = no_progress,
        stop: StopCondition = NEVER,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each line; `with_weights` records the alignment site."""
        site = self.alignment_site if with_weights else None
        hooks = Hooks(Detail.WEIGHTS, frozenset({site})) if site is not None else NO_HOOKS
        return self.search(lines, options, hooks, on_progress, stop)

    def find_unlike(self, lines: Sequence[str]) -> list[bool | None]:
        """Return for each line whether it is unlike the training text, None where that is not known."""
        return find_unlike(self, lines)


def load_predictor(folders: Sequence[Path], int8: bool = False, threads: int = 0) -> Predictor:
    """Load one model folder, or several with the same vocabularies as an ensemble, and show their licenses once.

    `int8` quantizes the large matrices. `threads` 0 uses all processors.
    """
    loaded = [load_model(folder) for folder in folders]
    for model in loaded:
        show_license_once(model)
    return make_predictor(loaded, int8, threads)


def make_predictor(loaded: Sequence[LoadedSeq2Seq], int8: bool = False, threads: int = 0) -> Predictor:
    """Return a predictor of loaded models; raise ModelError if they cannot form an ensemble."""
    first = loaded[0]
    for model in loaded:
        check_task(model.name, model.recipe.task.kind, "translate")
    for other in loaded[1:]:
        _check_ensemble(first, other)
    return Predictor(
        "+".join(model.name for model in loaded),
        make_generator([model.model for model in loaded], int8),
        first.assets,
        first.recipe.decoding,
        first.recipe.task.kind,
        inference_limits([model.recipe for model in loaded]),
        threads or available_cpus(),
    )


def _check_ensemble(first: LoadedSeq2Seq, other: LoadedSeq2Seq) -> None:
    """Raise ModelError if two models differ in task or vocabularies."""
    tasks = first.recipe.task.kind, other.recipe.task.kind
    if tasks[0] != tasks[1]:
        names = f"{first.name} and {other.name}"
        raise ModelError(f"{names} were trained for different tasks ({', '.join(tasks)}) and cannot form an ensemble")
    if not first.assets.equals(other.assets):
        raise ModelError(f"{first.name} and {other.name} have different vocabularies and cannot form an ensemble")


def search_lines(
    model: AutoregressiveModel,
    lines: Sequence[str],
    assets: Seq2SeqAssets,
    options: DecodingOptions,
    hooks: Hooks = NO_HOOKS,
    on_progress: OnProgress = no_progress,
    threads: int = 1,
    stop: StopCondition = NEVER,
) -> list[list[Hypothesis]]:
    """Return the hypotheses of each line, in order; lines of similar length share a batch."""
    if options.replace_unknown and hooks.detail is Detail.NONE and model.alignment_site is not None:
        hooks = Hooks(Detail.WEIGHTS, frozenset({model.alignment_site}))
    ids = assets.source.encode_all([line_as_read(line, options) for line in lines])

    def make_batch(rows: Sequence[int]) -> TextBatch:
        source = pad([ids[row] for row in rows])
        return TextBatch(widen(source) if isinstance(model, BatchInvariantModel) else source)

    return search_all(model, make_batch, [len(row) for row in ids], options, hooks, on_progress, threads, stop)
