"""Attention: a score, a normaliser and a placement joined behind one interface.

`prepare` turns encoder states into a `Memory` once; `look` reads it for any number of queries. The query
axis is target time in training and the beam in search: queries never see one another.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor, nn

from heedful import native
from heedful.attention.heads import Heads
from heedful.attention.normalise import NORMALISERS, Normalise
from heedful.attention.placements import Global, Place, Placement
from heedful.attention.scores import Additive, CoverageAdditive, Dot, General, Score
from heedful.attention.types import (
    EMPTY,
    OPEN,
    PLAIN,
    Carry,
    Detail,
    Look,
    Memory,
    Watch,
    extent,
    fits,
    without_last,
)
from heedful.errors import ShapeError, nearest
from heedful.native import dropout
from heedful.record import Kind, Site

Longer = Literal["error", "ignore"]


class Attention(nn.Module):
    """Every mechanism of the family, by its parts (Chaudhari 2021: `A(q, K, V) = sum_i p(a(k_i, q)) v_i`)."""

    def __init__(  # noqa: PLR0913 - one argument per independent choice
        self,
        score: Score,
        normaliser: str = "softmax",
        placement: Placement | None = None,
        *,
        heads: Heads | None = None,
        beta: float = 0.5,  # of the smoothed softmax
        longer: Longer = "error",  # a source longer than a location score's table
        read_end: bool = True,  # may the source's end token be read?
        dropout: float = 0.0,
        site: str = "cross",
        kind: Kind = "cross",
    ) -> None:
        super().__init__()
        if normaliser not in NORMALISERS:
            raise ShapeError(f'no normaliser "{normaliser}"; {nearest(normaliser, NORMALISERS)}')
        entry = NORMALISERS[normaliser]
        self.score = score
        self.placement = placement if placement is not None else Global()
        self.heads = heads
        self.normaliser = normaliser
        self.normalise: Normalise = (
            partial(entry.apply, beta=beta) if normaliser == "smoothed-softmax" else entry.apply
        )
        self.longer: Longer = longer
        self.read_end = read_end
        self.dropout = dropout
        self.site = Site(site, kind, heads.count if heads else 1, self.placement.mass(entry.mass))
        # With coverage a look depends on the looks before it, so steps cannot be computed at once.
        self.sequential = isinstance(score, CoverageAdditive)

    def prepare(
        self,
        keys: Float[Tensor, "batch key size"],
        keep: Bool[Tensor, "batch key"],
        values: Float[Tensor, "batch key width"] | None = None,
    ) -> Memory:
        """Do once what depends on the source alone. `values` default to the keys.

        A source is prepared whole: where its end token may not be read, it is the last of these.
        """
        values = keys if values is None else values
        _boolean("keep", keep)
        fits("keep", keep.shape, f"keys of shape {tuple(keys.shape)}", keys.shape[:2])
        fits("values", values.shape, f"keys of shape {tuple(keys.shape)}", (*keys.shape[:2], -1))
        if not self.read_end:
            keep = without_last(keep)
        keep = self._within_table(keep)
        if self.heads is None:
            split_keys, split_values = keys[:, :, None], values[:, :, None]
        else:
            split_keys, split_values = self.heads.keys(keys), self.heads.values(values)
        wanted = (*keys.shape[:2], -1, self.score.key_size)
        fits("a key", split_keys.shape, f"the {type(self.score).__name__} score", wanted)
        return Memory(self.score.keys(split_keys), split_values, keep)

    def _within_table(self, keep: Tensor) -> Tensor:
        limit = self.score.limit
        if limit is None or keep.shape[1] <= limit:
            return keep
        longest = int(extent(keep).max()) if len(keep) else 0
        if longest > limit and self.longer == "error":
            raise ShapeError(
                f"a source of {longest} positions is longer than the location score's table of {limit}; raise"
                ' the table\'s length, or let longer = "ignore" leave the tail unread'
            )
        return keep & (torch.arange(keep.shape[1], device=keep.device) < limit)

    def start(self, memory: Memory, rows: int = 1) -> Carry:
        """What `look` carries from step to step, before the first; `rows` queries per sentence."""
        if not self.sequential:
            return EMPTY
        batch, count, heads, _ = memory.keys.shape
        return {"coverage": memory.values.new_zeros(batch, rows, heads, count)}

    def look(
        self,
        query: Float[Tensor, "batch query width"],
        memory: Memory,
        *,
        at: Int[Tensor, "batch query"] | None = None,
        carry: Carry = EMPTY,
        allow: Bool[Tensor, "#batch #query key"] | None = None,
        watch: Watch = PLAIN,
        rng: Generator | None = None,
    ) -> tuple[Float[Tensor, "batch query out"], Look, Carry]:
        """Read `memory` with each query.

        `at` is each query's target position (default: 0, 1, 2, ...), `allow` a further mask such as a causal
        one, `carry` what the previous look returned. Gives the context, the record, and the next carry.
        """
        fits("query", query.shape, f"a memory of {len(memory.keep)} sentences", (len(memory.keep), -1, -1))
        split = query[:, :, None] if self.heads is None else self.heads.query(query)
        wanted = (*query.shape[:2], -1, self.score.query_size)
        fits("a query", split.shape, f"the {type(self.score).__name__} score", wanted)
        keep = self._within_table(memory.keep)  # a memory may have grown since it was prepared
        allowed = self._allowed(query, keep, allow)
        if at is None:
            at = torch.arange(query.shape[1], device=query.device).expand(query.shape[:2])
        fits("at", at.shape, f"queries of shape {tuple(query.shape)}", query.shape[:2])
        detail = watch.detail_at(self.site.id)
        if detail is Detail.NONE and watch.edit is None and self._fusable(split):
            context = self._fused(split, memory, allowed)
            return self._joined(context, allowed.any(dim=-1)), Look(None), carry
        quick = self._unwatched(split, memory, detail, watch)
        if quick and allow is None and self.plain_additive:
            context, weights = self._additive(split, memory, keep)
            return context, Look(None if detail is Detail.NONE else weights), carry
        if quick and self._soft_dots:
            assert isinstance(self.score, Dot | General)
            scale = self.score.scale
            context, weights = native.dots(split, memory.keys, memory.values, allowed[:, :, 0], scale)
            shown = Look(None if detail is Detail.NONE else weights)
            return self._joined(context, allowed.any(dim=-1)), shown, carry
        scores = self._scores(split, memory, carry)
        place = Place(split, at, extent(keep), rng)
        weights, extra = self.placement(scores, allowed, self.normalise, place)
        if watch.edit is not None:
            weights = self._edited(weights, scores, extra, at, allowed, watch)
        if self.sequential:
            extra = {**extra, "coverage_loss": coverage_loss(weights, carry["coverage"])}
            carry = {"coverage": carry["coverage"] + weights}
        context = mix(dropout(weights, self.dropout, self.training), memory.values)
        look = Look(weights if detail >= Detail.WEIGHTS else None, extra=extra)  # training needs extras
        if detail >= Detail.FULL:
            look = Look(weights, scores, extra, query, context)
        return self._joined(context, weights.any(dim=-1)), look, carry

    def _allowed(self, query: Tensor, keep: Tensor, allow: Tensor | None) -> Tensor:
        """Which keys each query may read: (batch, query, 1, key)."""
        if allow is None:
            return keep[:, None, None, :].expand(-1, query.shape[1], -1, -1)
        _boolean("allow", allow)
        batch, queries, count = len(query), query.shape[1], keep.shape[1]
        good = allow.ndim == 3 and allow.shape[0] in (1, batch) and allow.shape[1] in (1, queries)
        if not good or allow.shape[2] != count:
            raise ShapeError(
                f"allow has shape {tuple(allow.shape)}, but {batch} sentences with {queries} queries and"
                f" {count} keys ask for ({batch} or 1, {queries} or 1, {count})"
            )
        return (keep[:, None, None, :] & allow[:, :, None, :]).expand(batch, queries, 1, count)

    @property
    def plain_additive(self) -> bool:
        """Bahdanau's own: additive scores, softmax over the whole source, one head, no dropout just now."""
        return type(self.score) is Additive and self.plain

    @property
    def plain(self) -> bool:
        """Additive scores or dot products, softmax over the whole source, one head, no dropout just now."""
        return self.heads is None and (self._soft_dots or (type(self.score) is Additive and self._soft))

    @property
    def _soft(self) -> bool:
        """Softmax over the whole source, no dropout just now."""
        dropping = self.training and self.dropout > 0
        return self.normaliser == "softmax" and isinstance(self.placement, Global) and not dropping

    @property
    def _soft_dots(self) -> bool:
        return isinstance(self.score, Dot | General) and self._soft

    def _fusable(self, query: Tensor) -> bool:
        """May torch's fused kernel stand in? It knows dot products under softmax over the whole source.

        Half precision on the CPU stays on the explicit path: there the kernel uses instructions that some
        virtual machines announce but do not have, which kills the process. And there the kernel drops weights
        out more slowly than we do.
        """
        wide = query.dtype in (torch.float32, torch.float64) and not torch.is_autocast_enabled("cpu")
        dropping = self.training and self.dropout > 0 and native.fits(query)
        sound = query.device.type != "cpu" or (wide and not dropping)
        return (
            sound
            and isinstance(self.score, Dot)
            and self.normaliser == "softmax"
            and isinstance(self.placement, Global)
        )

    def _unwatched(self, query: Tensor, memory: Memory, detail: Detail, watch: Watch) -> bool:
        """May our kernels stand in? They lead no gradients back, and show weights, but no scores."""
        return (
            not torch.is_grad_enabled()
            and detail is not Detail.FULL
            and watch.edit is None
            and native.fits(query, memory.keys)
            and not torch.is_autocast_enabled("cpu")
        )

    def _additive(self, query: Tensor, memory: Memory, keep: Tensor) -> tuple[Tensor, Tensor]:
        assert isinstance(self.score, Additive)
        batch, queries = query.shape[:2]
        keys, values = memory.keys[:, :, 0].contiguous(), memory.values[:, :, 0].contiguous()
        weights = query.new_empty(batch * queries, keys.shape[1])
        context = query.new_empty(batch * queries, values.shape[2])
        asked = self.score.query(query.flatten(end_dim=2))
        native.additive(asked, keys, self.score.v, keep.contiguous(), values, weights, context)
        return context.view(batch, queries, -1), weights.view(batch, queries, 1, -1)

    def _fused(self, query: Tensor, memory: Memory, allowed: Tensor) -> Tensor:
        assert isinstance(self.score, Dot)
        context = F.scaled_dot_product_attention(
            query.transpose(1, 2),
            memory.keys.transpose(1, 2),
            memory.values.transpose(1, 2),
            attn_mask=allowed.transpose(1, 2),
            dropout_p=self.dropout if self.training else 0.0,
            scale=self.score.scale,
        )
        return context.transpose(1, 2)

    def _scores(self, query: Tensor, memory: Memory, carry: Carry) -> Tensor:
        if isinstance(self.score, CoverageAdditive):
            if "coverage" not in carry:
                raise ShapeError("attention with coverage carries it from look to look: begin with start()")
            coverage = carry["coverage"]
            fits("coverage", coverage.shape, "this look", (*query.shape[:3], memory.keys.shape[1]))
            return self.score.covered(query, memory.keys, coverage)
        scores: Tensor = self.score(query, memory.keys)
        return scores

    def _edited(
        self,
        weights: Tensor,
        scores: Tensor,
        extra: Mapping[str, Tensor],
        at: Tensor,
        allowed: Tensor,
        watch: Watch,
    ) -> Tensor:
        assert watch.edit is not None
        given = {**extra, OPEN: allowed.expand_as(weights)}
        override = watch.edit(self.site.id, Look(weights, scores, given), at)
        if override is None:
            return weights
        fits(f"the edit at {self.site.id}", override.weights.shape, "this look", weights.shape)
        if not bool(torch.isfinite(override.weights).all()):
            raise ShapeError(f"the edit at {self.site.id} holds weights that are not finite")
        if bool(override.weights.masked_fill(allowed, 0.0).any()):
            wrong = (override.weights != 0) & ~allowed
            readable = allowed.expand_as(weights)[tuple(wrong.nonzero()[0][:-1])].nonzero().flatten().tolist()
            listed = ", ".join(map(str, readable[:12])) + (" ..." if len(readable) > 12 else "") or "none"
            raise ShapeError(
                f"the edit at {self.site.id} puts weight on positions that may not be read; open: {listed}"
            )
        return override.weights.to(weights.dtype)

    def _joined(self, context: Tensor, read: Tensor) -> Tensor:
        """The heads' contexts as one; a query of which no head read anything gets zeros, not a bias."""
        if self.heads is None:
            return context.squeeze(2)
        return self.heads.join(context).masked_fill(~read.any(dim=2)[..., None], 0.0)


def _boolean(name: str, mask: Tensor) -> None:
    if mask.dtype != torch.bool:
        raise ShapeError(f"{name} is a mask of {mask.dtype}, but must be of torch.bool: True means readable")


def mix(
    weights: Float[Tensor, "batch query head key"], values: Float[Tensor, "batch key head width"]
) -> Float[Tensor, "batch query head width"]:
    """`c = sum_i a_i v_i`. Values of forbidden keys have weight 0 and must be finite."""
    return torch.einsum("bqhk,bkhd->bqhd", weights, values)


def coverage_loss(
    weights: Float[Tensor, "batch query head key"], coverage: Float[Tensor, "batch query head key"]
) -> Float[Tensor, "batch query head"]:
    """`sum_i min(a_i, C_i)` (See 2017, eq. 12): the price of reading again what was read."""
    return torch.minimum(weights, coverage).sum(dim=-1)


def causal(count: int, device: torch.device | None = None) -> Bool[Tensor, "1 query key"]:
    """Each position may read itself and what came before.

    >>> causal(3)[0].int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    return torch.ones(1, count, count, dtype=torch.bool, device=device).tril()
