"""Recommenders that score an item against the items of a user's history: `y_ui = b_i + p_i . sum_j a_ij q_j`.

With equal weights this is FISM (Kabbur 2013), with attention NAIS (He 2018, eq. 5-8); an item never attends to itself.
Optional self-attention layers encode the items of a history first, without positions, since histories have no order.
An entry of a batch is one history and the targets to score for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, embedding_bag
from torch.utils.checkpoint import checkpoint

from heedful import kernels
from heedful.attention import (
    NO_HOOKS,
    AttentionOutput,
    ConcatRelu,
    Dot,
    Global,
    Hooks,
    ProdRelu,
    SmoothedSoftmax,
    Softmax,
    build_attention,
)
from heedful.config import ModelConfig
from heedful.data.histories import HistoryBatch
from heedful.kernels.history_attention import (
    CONCAT,
    DOT,
    PROD,
    HistoryEntries,
    HistoryScore,
    history_logits,
    history_loss,
)
from heedful.layers.modules import TypedModuleList
from heedful.layers.transformer import EncoderLayer
from heedful.optional import not_none
from heedful.trace.schema import Site

HISTORY = "history"  # site of the attention over a history
INIT_STD = 0.01  # standard deviation of the initial embeddings (the code of He 2018)
MAX_PAIRS = 2**18  # target-item pairs per chunk without the C kernel, to bound memory


class RecommenderOutput(NamedTuple):
    """The scores of some targets for one history, the attentions by site, and the vectors behind the scores."""

    scores: Float[Tensor, "target"]
    attentions: Mapping[str, AttentionOutput]
    query: Float[Tensor, "target width"]
    values: Float[Tensor, "key width"]
    context: Float[Tensor, "target width"]


class ScoringModel(Protocol):
    """A model that scores items for histories."""

    @property
    def sites(self) -> tuple[Site, ...]: ...
    @property
    def alignment_site(self) -> str | None: ...
    def logits(self, batch: HistoryBatch) -> Float[Tensor, "row"]: ...
    def score_items(
        self, history: Int[Tensor, "key"], targets: Int[Tensor, "target"], hooks: Hooks
    ) -> RecommenderOutput: ...


class Recommender(nn.Module):
    """FISM or NAIS: two embeddings per item, as a target (p) and in a history (q), and a bias per item."""

    def __init__(self, config: ModelConfig, n_items: int) -> None:
        super().__init__()
        settings, width = not_none(config.recommender), config.embedding
        self.config = config
        self.target_embedding, self.history_embedding = nn.Embedding(n_items, width), nn.Embedding(n_items, width)
        for embedding in (self.target_embedding, self.history_embedding):
            nn.init.normal_(embedding.weight, std=INIT_STD)
        self.bias = nn.Parameter(torch.zeros(n_items))
        self.alpha = settings.alpha
        layers = config.encoder.layers if config.encoder.kind == "transformer" else 0
        self.layers = TypedModuleList(
            EncoderLayer(config.encoder, config.dropout, f"enc.{depth}") for depth in range(layers)
        )
        self.attention = None
        if settings.kind == "attention":
            self.attention = build_attention(
                config.attention, query_size=width, key_size=width, site=HISTORY, kind="history"
            )

    @property
    def sites(self) -> tuple[Site, ...]:
        history = Site(HISTORY, "history", 1, "free") if self.attention is None else self.attention.site
        return (*(layer.self_attention.site for layer in self.layers), history)

    @property
    def alignment_site(self) -> str:
        return HISTORY

    def score_items(
        self, history: Int[Tensor, "key"], targets: Int[Tensor, "target"], hooks: Hooks = NO_HOOKS
    ) -> RecommenderOutput:
        """Score targets for one history with the attention module; the tests compare the fast paths with this one."""
        keys, attentions = self._encode(history, hooks)
        query = self.target_embedding(targets)
        allowed = history != targets[:, None]
        if self.attention is None:
            attention = self._equal_weights(allowed, query, keys)
        else:
            memory = self.attention.prepare(keys[None], torch.ones_like(history, dtype=torch.bool)[None])
            attention, _ = self.attention(query[None], memory, allowed=allowed[None], hooks=hooks)
        context = not_none(attention.context)[0]
        scores = self.bias[targets] + (query * context).sum(dim=-1)
        return RecommenderOutput(scores, {**attentions, HISTORY: attention}, query, keys, context)

    def _encode(self, history: Tensor, hooks: Hooks) -> tuple[Tensor, dict[str, AttentionOutput]]:
        """Return the vectors of a history's items, after self-attention if there are layers."""
        x = self.history_embedding(history)[None]
        keep = torch.ones_like(history, dtype=torch.bool)[None]
        attentions: dict[str, AttentionOutput] = {}
        for layer in self.layers:
            x, attentions[layer.self_site] = layer(x, keep, hooks)
        return x[0], attentions

    def _equal_weights(self, allowed: Tensor, query: Tensor, keys: Tensor) -> AttentionOutput:
        """Return attention with the weight `n^-alpha` on each of the n allowed items (FISM)."""
        count = allowed.sum(dim=-1, keepdim=True).clamp_min(1).to(keys.dtype)
        weights = allowed * count**-self.alpha
        context = weights @ keys
        return AttentionOutput(
            context[None], weights[None, :, None], query=query[None], head_contexts=context[None, :, None]
        )

    def logits(self, batch: HistoryBatch) -> Float[Tensor, "row"]:
        """Return the score of every target, computed by the fastest implementation."""
        if self.attention is None:
            return self._fism_logits(batch)
        score = self._kernel_score()
        if score is None or torch.is_grad_enabled():
            return self._checkpointed_logits(batch)
        queries, bias = self.target_embedding(batch.targets), self.bias[batch.targets]
        return history_logits(_kernel_entries(batch), score, self._keys(batch), queries, bias)

    def loss(self, batch: HistoryBatch) -> Float[Tensor, ""]:
        """Return the binary cross-entropy, summed over the targets."""
        labels, score = not_none(batch.labels), self._kernel_score()
        if score is None:
            return binary_cross_entropy_with_logits(self.logits(batch), labels, reduction="sum")
        queries, bias = self.target_embedding(batch.targets), self.bias[batch.targets]
        return history_loss(_kernel_entries(batch), score, self._keys(batch), queries, bias, labels)

    def _keys(self, batch: HistoryBatch) -> Tensor:
        """Return the vectors of the items of all histories."""
        if not self.layers:
            keys: Tensor = self.history_embedding(batch.items)
            return keys
        return torch.cat([self._encode(batch.entry(e)[0], NO_HOOKS)[0] for e in range(batch.entries)])

    def _kernel_score(self) -> HistoryScore | None:
        """Return the score for the C kernel; None if it does not support this attention."""
        attention = self.attention
        if attention is None or attention.heads is not None or not isinstance(attention.placement, Global):
            return None
        if not isinstance(attention.normalizer, Softmax | SmoothedSoftmax):
            return None
        if kernels.is_dropout_active(attention.dropout, self.training) or not kernels.supports(self.bias):
            return None
        beta = attention.normalizer.beta if isinstance(attention.normalizer, SmoothedSoftmax) else 1.0
        score = attention.score
        if isinstance(score, ProdRelu):
            return HistoryScore(PROD, score.product.weight, score.product.bias, score.h, beta)
        if isinstance(score, ConcatRelu):
            return HistoryScore(CONCAT, score.both.weight, score.both.bias, score.h, beta)
        if isinstance(score, Dot):
            empty = self.bias.new_empty(0)
            return HistoryScore(DOT, empty[None], empty, empty, beta, score.scale)
        return None

    def _checkpointed_logits(self, batch: HistoryBatch) -> Tensor:
        """Score entry by entry, in chunks that the backward pass recomputes (gradient checkpointing)."""

        def scores(history: Tensor, targets: Tensor) -> Tensor:
            return self.score_items(history, targets).scores

        logits = []
        for e in range(batch.entries):
            history, targets = batch.entry(e)
            for chunk in torch.split(targets, max(1, MAX_PAIRS // max(1, len(history)))):
                logits.append(checkpoint(scores, history, chunk, use_reentrant=False))
        return torch.cat(logits)

    def _fism_logits(self, batch: HistoryBatch) -> Tensor:
        """Score with equal weights: the sum of each history, minus the target's own vector if it is in the history."""
        n_items = len(self.bias)
        entries = torch.arange(batch.entries, device=batch.items.device)
        sizes = batch.item_bounds.diff()
        entry_of_item = entries.repeat_interleave(sizes)
        entry_of_row = entries.repeat_interleave(batch.target_bounds.diff())
        # One number per entry and item, sorted, so that a binary search finds whether a target is in its history.
        history_pairs = (entry_of_item * n_items + batch.items).sort().values
        target_pairs = entry_of_row * n_items + batch.targets
        indices = torch.searchsorted(history_pairs, target_pairs).clamp_max(max(0, len(history_pairs) - 1))
        in_history = torch.zeros_like(target_pairs, dtype=torch.bool)
        if len(history_pairs):
            in_history = history_pairs[indices] == target_pairs
        sums = embedding_bag(batch.items, self.history_embedding.weight, batch.item_bounds[:-1], mode="sum")
        context = sums[entry_of_row] - in_history[:, None] * self.history_embedding(batch.targets)
        weight = (sizes[entry_of_row] - in_history.long()).clamp_min(1).to(context.dtype) ** -self.alpha
        products = (self.target_embedding(batch.targets) * context).sum(dim=-1)
        logits: Tensor = self.bias[batch.targets] + weight * products
        return logits


class Popularity(nn.Module):
    """Score an item by its number of interactions, for every user: a baseline without parameters."""

    counts: Tensor
    sites: tuple[Site, ...] = ()
    alignment_site = None

    def __init__(self, counts: Float[Tensor, "item"]) -> None:
        super().__init__()
        self.register_buffer("counts", counts)

    def logits(self, batch: HistoryBatch) -> Float[Tensor, "row"]:
        return self.counts[batch.targets]

    def score_items(
        self, history: Int[Tensor, "key"], targets: Int[Tensor, "target"], hooks: Hooks = NO_HOOKS
    ) -> RecommenderOutput:
        empty = self.counts.new_zeros(len(targets), 0)
        return RecommenderOutput(self.counts[targets], {}, empty, self.counts.new_zeros(len(history), 0), empty)


def _kernel_entries(batch: HistoryBatch) -> HistoryEntries:
    return HistoryEntries(batch.items, batch.item_bounds, batch.targets, batch.target_bounds)
