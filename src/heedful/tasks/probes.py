"""Probes: decisions of a model whose attention weights can be replaced while everything before them stays fixed.

The faithfulness tests use a model only through these protocols. A task implements `MeasureAdapter` for
`heedful measure`. (These probes are not probing classifiers: nothing is trained.)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Generator, Tensor, nn

from heedful.attention import AttentionOutput, Detail, Hooks, Override
from heedful.trace.schema import Links

OUTPUT_EDITS = {"uniform": "uniform", "permuted": "permute"}  # keys of `output_metrics`, and the edits they apply
CHUNK_ROWS = 500  # replaced weights per batch; larger batches are not faster

Decision = tuple[int, int]  # the index of an item, and a step of its output


class Probe(Protocol):
    """Several decisions in one batch; rows are decisions."""

    @property
    def weights(self) -> Tensor: ...  # (row, head, key): as the model computed them
    @property
    def readable(self) -> Tensor: ...  # (row, key): not masked
    @property
    def valid(self) -> Tensor: ...  # (row, key): readable and no special token
    @property
    def probabilities(self) -> Tensor: ...  # (row, class): with the model's own weights

    def predict(self, weights: Tensor) -> Tensor:
        """Return the probabilities (row, k, class) under k other weights each (row, k, head, key), with gradients."""


class DecisionProbe(Probe, Protocol):
    """A probe with the items and the step of its decisions."""

    @property
    def token_weights(self) -> Tensor: ...  # (row, key): the total weight of each token
    @property
    def items(self) -> list[int]: ...
    @property
    def step(self) -> int: ...


class ProbeTarget(Protocol):
    """A model and its decisions about some items."""

    @property
    def decision_name(self) -> str: ...  # such as "next word"
    @property
    def metric_name(self) -> str: ...  # of `output_metrics`
    @property
    def position_name(self) -> str: ...  # of what is attended to, such as "source words"
    @property
    def has_decisions(self) -> bool: ...  # False: only `output_metrics` can be computed
    @property
    def sources(self) -> Sequence[Sequence[int]]: ...  # ids, the end token last

    def sample_steps(self, per_item: int, seed: int) -> list[set[int]]:
        """Return some random steps of each item's output."""

    def probes(self, steps: Sequence[set[int]]) -> Iterator[DecisionProbe]:
        """Yield probes of the given steps of each item."""

    def predict_from(self, decisions: Sequence[Decision], sources: Sequence[Sequence[int]]) -> Tensor:
        """Return the probabilities (row, class) of each decision with another source in place of its own."""

    def saliency(self, decisions: Sequence[Decision]) -> list[Tensor]:
        """Return gradient times input of every position for each decision, normalized to sum 1."""

    def output_metrics(self, seed: int) -> dict[str, float]:
        """Return the metric of complete outputs: "unchanged", and with the weights "uniform" and "permuted"."""


class MeasureAdapter(Protocol):
    """The part of a task that `heedful measure` uses."""

    unit: str  # plural noun for its items: "sentences"

    def load_items(self, loaded: Any, data: Sequence[str], split: str) -> list[Any]: ...
    def read_gold(self, path: Path, base: int) -> list[Links]: ...

    def describe_attention(self, loaded: Any, items: Sequence[Any], gold: Sequence[Links] | None) -> dict[str, Any]:
        """Return statistics of the weights, and their agreement with gold links where there are any."""

    def make_probe_target(self, loaded: Any, items: Sequence[Any]) -> ProbeTarget: ...


def in_chunks(weights: Tensor, predict: Callable[[Tensor], Tensor]) -> Tensor:
    """Apply `predict` to k weights per row (row, k, head, key), about `CHUNK_ROWS` at a time."""
    size = max(1, CHUNK_ROWS // len(weights))
    return torch.cat([predict(chunk) for chunk in torch.split(weights, size, dim=1)], dim=1)


def uniform_weights(weights: Tensor) -> Tensor:
    """Return equal weights at all positions with weight; the sum of each row stays the same."""
    positive = (weights > 0).to(weights)
    return positive * weights.sum(dim=-1, keepdim=True) / positive.sum(dim=-1, keepdim=True).clamp_min(1)


def permute_weights(weights: Tensor, rng: Generator) -> Tensor:
    """Return the positive weights of each row in random order; zeros stay where they are."""
    positive = weights > 0
    order = torch.rand(weights.shape, generator=rng).masked_fill(~positive, 2.0).argsort(dim=-1)
    rank = (positive.cumsum(dim=-1) - 1).clamp_min(0)
    return torch.where(positive, weights.gather(-1, order).gather(-1, rank), weights)


@contextmanager
def differentiable_output(module: nn.Module) -> Iterator[list[Tensor]]:
    """Make the first output of a module, such as an embedding, a leaf tensor with gradients.

    Yields a list that contains this tensor after the module was called.
    """
    leaves: list[Tensor] = []

    def detach(_: nn.Module, __: object, output: Tensor) -> Tensor:
        if leaves:
            return output
        leaves.append(output.detach().requires_grad_())
        return leaves[0]

    handle = module.register_forward_hook(detach)
    try:
        yield leaves
    finally:
        handle.remove()


def frozen_weights(sites: Collection[str]) -> Hooks:
    """Return hooks that stop gradients through the weights of these sites."""

    def edit(site: str, attention: AttentionOutput, _: Tensor) -> Override | None:
        assert attention.weights is not None
        return Override(attention.weights.detach()) if site in sites else None

    return Hooks(Detail.NONE, edit=edit)


def normalize_saliency(importance: Tensor) -> Tensor:
    """Return the importance of positions, normalized to sum 1."""
    return importance / importance.sum().clamp_min(1e-30)


def gradient_times_input(gradient: Tensor, inputs: Tensor) -> Tensor:
    """Return `|sum_d x_d g_d|` of every position."""
    return (gradient * inputs.detach()).sum(dim=-1).abs()
