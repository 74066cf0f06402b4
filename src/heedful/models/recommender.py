"""Recommending by what a user took: `y = b_i + p_i . sum_j a_ij q_j`, where no item reads itself.

With equal weights this is FISM (Kabbur 2013), with attention NAIS (He 2018, equations 5 to 8). The items of a
history may read one another first: self-attention, without positions, since histories carry no time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, embedding_bag
from torch.utils.checkpoint import checkpoint

from heedful import native
from heedful.attention import PLAIN, ConcatRelu, Dot, Global, Look, ProdRelu, Watch, build_attention
from heedful.config import ModelConfig
from heedful.data.histories import HistoryBatch
from heedful.layers.modules import Modules
from heedful.layers.transformer import Layer
from heedful.native.histories import (
    CONCAT,
    DOT,
    PROD,
    Ragged,
    Weighing,
    history_logits,
    history_loss,
)
from heedful.record import Site

HISTORY = "history"  # the site of the alignment
SMALL = 0.01  # deviation of the first vectors (He 2018's code)
PAIRS = 2**18  # target and key, at once where the kernels are not there: memory stays small


class Judged(NamedTuple):
    """What a history says of some items: scores, looks, and what the looks were made from."""

    scores: Float[Tensor, "target"]
    looks: Mapping[str, Look]
    query: Float[Tensor, "target width"]
    values: Float[Tensor, "key width"]
    context: Float[Tensor, "target width"]


class Judge(Protocol):
    """A model that scores items for histories."""

    @property
    def sites(self) -> tuple[Site, ...]: ...
    @property
    def alignment(self) -> str | None: ...
    def logits(self, batch: HistoryBatch) -> Float[Tensor, "row"]: ...
    def judge(self, history: Int[Tensor, "key"], targets: Int[Tensor, "target"], watch: Watch) -> Judged: ...


class Recommender(nn.Module):
    """Item vectors `target` (p) and `taken` (q), a bias for each item, and what weighs a history."""

    def __init__(self, config: ModelConfig, items: int) -> None:
        super().__init__()
        assert config.recommender is not None
        width = config.embedding
        self.config = config
        self.target, self.taken = nn.Embedding(items, width), nn.Embedding(items, width)
        for vectors in (self.target, self.taken):
            nn.init.normal_(vectors.weight, std=SMALL)
        self.bias = nn.Parameter(torch.zeros(items))
        self.alpha = config.recommender.alpha
        depth = config.encoder.layers if config.encoder.kind == "transformer" else 0
        self.layers = Modules(Layer(config.encoder, config.dropout, f"enc.{at}") for at in range(depth))
        self.attention = None
        if config.recommender.kind == "attention":
            settings = config.attention
            self.attention = build_attention(settings, query=width, key=width, site=HISTORY, kind="history")

    @property
    def sites(self) -> tuple[Site, ...]:
        own = Site(HISTORY, "history", 1, "free") if self.attention is None else self.attention.site
        return (*(layer.self_attention.site for layer in self.layers), own)

    @property
    def alignment(self) -> str:
        return HISTORY

    def judge(
        self, history: Int[Tensor, "key"], targets: Int[Tensor, "target"], watch: Watch = PLAIN
    ) -> Judged:
        """One history and all that can be seen of it; the plain way, which fast ones are held equal to."""
        keys, looks = self._read(history, watch)
        query = self.target(targets)
        allow = history != targets[:, None]
        if self.attention is None:
            look, context = self._equal(allow, query, keys)
        else:
            memory = self.attention.prepare(keys[None], torch.ones_like(history, dtype=torch.bool)[None])
            found, look, _ = self.attention.look(query[None], memory, allow=allow[None], watch=watch)
            context = found[0]
        scores = self.bias[targets] + (query * context).sum(dim=-1)
        return Judged(scores, {**looks, HISTORY: look}, query, keys, context)

    def _read(self, history: Tensor, watch: Watch) -> tuple[Tensor, dict[str, Look]]:
        """What a history's items are to whoever looks; with layers they have read one another."""
        x = self.taken(history)[None]
        keep = torch.ones_like(history, dtype=torch.bool)[None]
        looks: dict[str, Look] = {}
        for layer in self.layers:
            x, looks[layer.self_site] = layer.read(x, keep, watch)
        return x[0], looks

    def _equal(self, allow: Tensor, query: Tensor, keys: Tensor) -> tuple[Look, Tensor]:
        """All that may be read has the weight n^-alpha; and what is read."""
        count = allow.sum(dim=-1, keepdim=True).clamp_min(1).to(keys.dtype)
        weights = allow * count**-self.alpha
        context = weights @ keys
        return Look(weights[None, :, None], query=query[None], context=context[None, :, None]), context

    def logits(self, batch: HistoryBatch) -> Float[Tensor, "row"]:
        """Scores of every target, as fast as can be."""
        if self.attention is None:
            return self._summed(batch)
        weighing = self._weighing()
        if weighing is None or torch.is_grad_enabled():
            return self._plain(batch)
        queries, bias = self.target(batch.targets), self.bias[batch.targets]
        return history_logits(_ragged(batch), weighing, self._keys(batch), queries, bias)

    def loss(self, batch: HistoryBatch) -> Float[Tensor, ""]:
        """Log loss, summed over the targets."""
        assert batch.labels is not None
        weighing = self._weighing()
        if weighing is None:
            return binary_cross_entropy_with_logits(self.logits(batch), batch.labels, reduction="sum")
        queries, bias = self.target(batch.targets), self.bias[batch.targets]
        return history_loss(_ragged(batch), weighing, self._keys(batch), queries, bias, batch.labels)

    def _keys(self, batch: HistoryBatch) -> Tensor:
        if not self.layers:
            found: Tensor = self.taken(batch.items)
            return found
        return torch.cat([self._read(batch.entry(at)[0], PLAIN)[0] for at in range(batch.entries)])

    def _weighing(self) -> Weighing | None:
        """What the kernel is told, where it can stand in: NAIS's scores or dot products, without heads."""
        look = self.attention
        if look is None or look.heads is not None or not isinstance(look.placement, Global):
            return None
        dropping = self.training and look.dropout > 0
        smooth = look.normaliser in ("softmax", "smoothed-softmax")
        if dropping or not smooth or not native.fits(self.bias) or torch.is_autocast_enabled("cpu"):
            return None
        beta = self.config.attention.beta if look.normaliser == "smoothed-softmax" else 1.0
        score = look.score
        if isinstance(score, ProdRelu):
            return Weighing(PROD, score.product.weight, score.product.bias, score.h, beta)
        if isinstance(score, ConcatRelu):
            return Weighing(CONCAT, score.both.weight, score.both.bias, score.h, beta)
        if isinstance(score, Dot):
            none = self.bias.new_empty(0)
            return Weighing(DOT, none[None], none, none, beta, score.scale)
        return None

    def _plain(self, batch: HistoryBatch) -> Tensor:
        """Entry by entry, in pieces that are computed once more on the way back."""
        found = []
        for at in range(batch.entries):
            history, targets = batch.entry(at)
            for piece in torch.split(targets, max(1, PAIRS // max(1, len(history)))):
                found.append(checkpoint(self._scores, history, piece, use_reentrant=False))
        return torch.cat(found)

    def _scores(self, history: Tensor, targets: Tensor) -> Tensor:
        return self.judge(history, targets).scores

    def _summed(self, batch: HistoryBatch) -> Tensor:
        """Equal weights: one sum a history, from which a target that is in it is taken again."""
        count = len(self.bias)
        entries = torch.arange(batch.entries, device=batch.items.device)
        sizes = batch.bounds.diff()
        of_key, of_row = entries.repeat_interleave(sizes), entries.repeat_interleave(batch.cuts.diff())
        known, wanted = (of_key * count + batch.items).sort().values, of_row * count + batch.targets
        at = torch.searchsorted(known, wanted).clamp_max(max(0, len(known) - 1))
        own = known[at] == wanted if len(known) else torch.zeros_like(wanted, dtype=torch.bool)
        sums = embedding_bag(batch.items, self.taken.weight, batch.bounds[:-1], mode="sum")
        context = sums[of_row] - own[:, None] * self.taken(batch.targets)
        share = (sizes[of_row] - own.long()).clamp_min(1).to(context.dtype) ** -self.alpha
        scores: Tensor = self.bias[batch.targets] + share * (self.target(batch.targets) * context).sum(dim=-1)
        return scores


class Popularity(nn.Module):
    """Scores an item by how often it was taken, whoever asks. There is nothing to learn."""

    counts: Tensor
    sites: tuple[Site, ...] = ()
    alignment = None

    def __init__(self, counts: Float[Tensor, "item"]) -> None:
        super().__init__()
        self.register_buffer("counts", counts)

    def logits(self, batch: HistoryBatch) -> Float[Tensor, "row"]:
        return self.counts[batch.targets]

    def judge(
        self, history: Int[Tensor, "key"], targets: Int[Tensor, "target"], watch: Watch = PLAIN
    ) -> Judged:
        nothing = self.counts.new_zeros
        none = nothing(len(targets), 0)
        return Judged(self.counts[targets], {}, none, nothing(len(history), 0), none)


def _ragged(batch: HistoryBatch) -> Ragged:
    return Ragged(batch.items, batch.bounds, batch.targets, batch.cuts)
