"""Compare an exported folder with the model: outputs, every weight, and speed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from heedful.attention import AttentionOutput, Detail, Hooks
from heedful.config import DecodingOptions
from heedful.data.batch import Padded, TextBatch, pad
from heedful.data.labels import LabelBatch
from heedful.data.tokenizer import END, PAD, SPECIALS
from heedful.decoding import search
from heedful.integrations.onnx.graphs import make_batch
from heedful.integrations.onnx.greedy import OnnxModel
from heedful.models import Classifier
from heedful.tasks.base import LoadedModel

ROWS, LENGTH, MAX_LENGTH = 20, 12, 40  # random inputs that are compared without `lines`
RECORD = Hooks(Detail.WEIGHTS)
Weights = Mapping[str, Sequence[np.ndarray]]  # by site: (head, key) per step or position


class OnnxReport(NamedTuple):
    """Size, agreement and speed of an exported model."""

    megabytes: float
    same: int  # of the compared inputs, how many have the same greedy output or label
    compared: int
    sites: int
    weights: float  # largest difference of a weight, over all sites of the inputs with the same output
    probabilities: float  # the same of log-probabilities, or of a classifier's probabilities
    seconds: float  # of the exported model, one thread
    own_seconds: float

    def __str__(self) -> str:
        return (
            f"{self.megabytes:.1f} MB; {self.same} of {self.compared} outputs are the same, weights at"
            f" {self.sites} sites within {self.weights:.1g}, log-probabilities within {self.probabilities:.1g};"
            f" {self.seconds:.2f} s for them, heedful {self.own_seconds:.2f} s (one thread, one at a time)"
        )


class Answer(NamedTuple):
    """One model's output for an input."""

    output: list[int]  # tokens without the end token, or a label
    probabilities: np.ndarray
    weights: Weights
    seconds: float


def compare(loaded: LoadedModel[Any, Any], folder: Path, lines: Sequence[str] = ()) -> OnnxReport:
    """Compute outputs and weights with both models, one input at a time."""
    exported = OnnxModel(folder)
    same, weights, probabilities, seconds, own_seconds = 0, 0.0, 0.0, 0.0, 0.0
    sources = _sources(loaded, lines)
    for source in sources:
        own = _classify(loaded, source) if isinstance(loaded.model, Classifier) else _generate(loaded, source)
        theirs = _run_exported(exported, source.numpy())
        seconds, own_seconds = seconds + theirs.seconds, own_seconds + own.seconds
        if own.output == theirs.output:
            same += 1
            weights = max(weights, _difference(own.weights, theirs.weights))
            probabilities = max(probabilities, float(np.abs(own.probabilities - theirs.probabilities).max(initial=0)))
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    n_sites = len(loaded.model.sites)
    return OnnxReport(size, same, len(sources), n_sites, weights, probabilities, seconds, own_seconds)


def _sources(loaded: LoadedModel[Any, Any], lines: Sequence[str]) -> list[Tensor]:
    """Return inputs (1, source), or (1, region, width)."""
    rng = torch.Generator().manual_seed(1)
    if loaded.model.config.encoder.kind == "regions":
        vectors = loaded.assets.random_source(ROWS, LENGTH, rng).vectors
        return list(vectors[:, None])
    if lines:
        return [pad([ids]).ids for ids in loaded.assets.source.encode_all(lines)]
    size = max(len(SPECIALS) + 1, len(loaded.assets.source))
    ids = torch.randint(len(SPECIALS), size, (ROWS, LENGTH), generator=rng).tolist()
    return [pad([[*row[: 1 + i % LENGTH], END]]).ids for i, row in enumerate(ids)]


@torch.no_grad()
def _classify(loaded: LoadedModel[Any, Any], source: Tensor) -> Answer:
    start = time.perf_counter()
    output = loaded.model(LabelBatch(Padded(source, source != PAD)), RECORD)
    seconds = time.perf_counter() - start
    logp = output.logits[0].log_softmax(-1).numpy()
    return Answer([int(output.logits.argmax())], logp, _by_step(output.attentions), seconds)


@torch.no_grad()
def _generate(loaded: LoadedModel[Any, Any], source: Tensor) -> Answer:
    batch, start = make_batch(source), time.perf_counter()
    hypothesis = search(loaded.model, batch, DecodingOptions(max_length=MAX_LENGTH)).hypotheses[0][0]
    seconds = time.perf_counter() - start
    target = pad([[loaded.model.start_token, *hypothesis.tokens]])
    output = loaded.model(TextBatch(batch.source, target), RECORD)
    tokens = [token for token in hypothesis.tokens if token != END]
    return Answer(tokens, np.array(hypothesis.token_logp), _by_step(output.attentions), seconds)


def _by_step(attentions: Mapping[str, AttentionOutput]) -> Weights:
    return {site: list(a.weights[0].numpy()) for site, a in attentions.items() if a.weights is not None}


def _run_exported(exported: OnnxModel, source: np.ndarray) -> Answer:
    start = time.perf_counter()
    if "model" in exported.sessions:
        logits, weights = exported.classify(source)
        seconds = time.perf_counter() - start
        logp = logits[0] - np.logaddexp.reduce(logits[0])
        return Answer([int(logits.argmax())], logp, {site: list(x[0]) for site, x in weights.items()}, seconds)
    (row,) = exported.generate(source, MAX_LENGTH)
    seconds = time.perf_counter() - start
    return Answer(row.tokens, np.array(row.log_probabilities), row.weights, seconds)


def _difference(ours: Weights, theirs: Weights) -> float:
    """Return the largest difference of a weight; keys that a step does not have yet weigh 0."""
    assert ours.keys() == theirs.keys()
    largest = 0.0
    for site, rows in ours.items():
        for own, other in zip(rows, theirs[site], strict=True):
            padded = np.pad(other, ((0, 0), (0, own.shape[-1] - other.shape[-1])))
            largest = max(largest, float(np.abs(own - padded).max(initial=0)))
    return largest
