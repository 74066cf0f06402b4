"""The attention module: a score, a normalizer and a placement (which keys a query may attend to).

`prepare` turns encoder states into a `Memory` once; `forward` attends to it with any number of queries. The query axis
is target time in training and the beam in search; queries are independent of one another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor, nn

from heedful.attention.dispatch import AttentionCall, find_kernel
from heedful.attention.heads import Heads
from heedful.attention.hooks import ALLOWED, NO_HOOKS, Detail, Hooks, apply_edit
from heedful.attention.masks import allowed_keys, check_bool, extent, without_last
from heedful.attention.normalizers.base import Normalizer
from heedful.attention.normalizers.softmax import Softmax
from heedful.attention.placements.base import Placement, PlacementContext
from heedful.attention.placements.global_ import Global
from heedful.attention.scores.base import Score
from heedful.attention.types import EMPTY, AttentionOutput, Carry, Memory, check_shape
from heedful.errors import ShapeError
from heedful.kernels import dropout
from heedful.trace.schema import Site, SiteKind

OnTooLong = Literal["error", "ignore"]


class Attention(nn.Module):
    """Attention composed of its parts: `A(q, K, V) = sum_i p(a(k_i, q)) v_i` (Chaudhari 2021).

    The score is `a`, the normalizer and the placement are `p`. `site` is the name by which hooks and traces refer to
    this attention, `kind` says what it connects (cross-attention, self-attention, pooling, ...).

    >>> from heedful.attention import ScaledDot
    >>> attention = Attention(ScaledDot(query_size=4, key_size=4))
    >>> keys = torch.tensor([[[2.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]]])
    >>> attention(torch.tensor([[[1.0, 0.0, 0.0, 0.0]]]), keys).weights.round(decimals=2)
    tensor([[[[0.7300, 0.2700]]]])
    """

    def __init__(  # noqa: PLR0913 - one argument per independent choice
        self,
        score: Score,
        normalizer: Normalizer | None = None,
        placement: Placement | None = None,
        *,
        heads: Heads | None = None,
        on_too_long: OnTooLong = "error",  # for a source longer than `score.max_keys`
        read_end: bool = True,  # may the source's end token be attended to?
        dropout: float = 0.0,
        site: str = "cross",
        kind: SiteKind = "cross",
    ) -> None:
        super().__init__()
        self.score = score
        self.normalizer: Normalizer = Softmax() if normalizer is None else normalizer
        self.placement: Placement = Global() if placement is None else placement
        self.heads = heads
        self.on_too_long: OnTooLong = on_too_long
        self.read_end = read_end
        self.dropout = dropout
        self.site = Site(site, kind, heads.count if heads else 1, self.placement.mass(self.normalizer.mass))

    @property
    def sequential(self) -> bool:
        """Whether each step needs the carry of the step before, so that steps cannot run in parallel (coverage)."""
        return self.score.sequential

    def prepare(
        self,
        keys: Float[Tensor, "batch key key_size"],
        keep: Bool[Tensor, "batch key"] | None = None,
        values: Float[Tensor, "batch key value_size"] | None = None,
    ) -> Memory:
        """Project keys and values once per source. `values` default to the keys, `keep` to every key.

        The source must be complete: with `read_end=False` the last kept key is its end token.
        """
        values = keys if values is None else values
        if keep is None:
            keep = torch.ones(keys.shape[:2], dtype=torch.bool, device=keys.device)
        check_bool("keep", keep)
        check_shape("keep", keep.shape, f"a source with keys of shape {tuple(keys.shape)}", keys.shape[:2])
        check_shape("values", values.shape, f"a source with keys of shape {tuple(keys.shape)}", (*keys.shape[:2], -1))
        if not self.read_end:
            keep = without_last(keep)
        keep = self._mask_beyond_limit(keep)
        if self.heads is None:
            split_keys, split_values = keys[:, :, None], values[:, :, None]
        else:
            split_keys, split_values = self.heads.split_keys(keys), self.heads.split_values(values)
        expected = (*keys.shape[:2], -1, self.score.key_size)
        check_shape("a key", split_keys.shape, f"the {type(self.score).__name__} score", expected)
        return Memory(self.score.project_keys(split_keys), split_values, keep)

    def initial_carry(self, memory: Memory, queries: int = 1) -> Carry:
        """Return the carry of the first step, for `queries` queries per sentence; empty without coverage."""
        return self.score.initial_carry(memory, queries)

    if TYPE_CHECKING:

        @overload
        def __call__(
            self,
            query: Float[Tensor, "batch query query_size"],
            memory: Memory,
            *,
            positions: Int[Tensor, "batch query"] | None = None,
            carry: Carry = EMPTY,
            allowed: Bool[Tensor, "#batch #query key"] | None = None,
            hooks: Hooks | None = None,
            rng: Generator | None = None,
        ) -> tuple[AttentionOutput, Carry]: ...

        @overload
        def __call__(
            self,
            query: Float[Tensor, "batch query query_size"],
            memory: Float[Tensor, "batch key key_size"],
            keep: Bool[Tensor, "batch key"] | None = None,
            values: Float[Tensor, "batch key value_size"] | None = None,
            *,
            positions: Int[Tensor, "batch query"] | None = None,
            allowed: Bool[Tensor, "#batch #query key"] | None = None,
            hooks: Hooks | None = None,
            rng: Generator | None = None,
        ) -> AttentionOutput: ...

        def __call__(self, *args: Any, **options: Any) -> Any: ...

    def forward(  # noqa: PLR0913 - two ways to call it
        self,
        query: Float[Tensor, "batch query query_size"],
        memory: Memory | Float[Tensor, "batch key key_size"],
        keep: Bool[Tensor, "batch key"] | None = None,
        values: Float[Tensor, "batch key value_size"] | None = None,
        *,
        positions: Int[Tensor, "batch query"] | None = None,
        carry: Carry = EMPTY,
        allowed: Bool[Tensor, "#batch #query key"] | None = None,
        hooks: Hooks | None = None,
        rng: Generator | None = None,
    ) -> AttentionOutput | tuple[AttentionOutput, Carry]:
        """Attend to `memory` with each query.

        With a prepared `Memory` return the output and the carry of the next step. With plain keys (and `keep`,
        `values`) prepare them, record everything, and return only the output.

        `positions` are the target positions of the queries (default: 0, 1, 2, ...), `allowed` is a further mask
        such as a causal one, `carry` is what the previous step returned, `hooks` say what to record and override.
        """
        if not isinstance(memory, Memory):
            prepared = self.prepare(memory, keep, values)
            carry = self.initial_carry(prepared, query.shape[1])
            hooks = Hooks(Detail.FULL) if hooks is None else hooks
            return self(query, prepared, positions=positions, carry=carry, allowed=allowed, hooks=hooks, rng=rng)[0]
        if keep is not None or values is not None:
            raise ShapeError("keep and values belong to prepare(): a Memory already holds them")
        hooks = NO_HOOKS if hooks is None else hooks
        detail = hooks.detail_at(self.site.id)
        call = self._make_call(query, memory, allowed, hooks)
        positions = self._check_positions(query, positions)
        kernel = find_kernel(call)
        if kernel is not None:
            head_contexts, kernel_weights = kernel.run(call)
            context = self._join(head_contexts, call.allowed)
            return AttentionOutput(context, None if detail is Detail.NONE else kernel_weights), carry
        scores = self.score.score_step(call.query, memory.keys, carry)  # e_i = a(k_i, q)
        placement_context = PlacementContext(call.query, positions, extent(call.keep), rng)
        weights, extras = self.placement(scores, call.allowed, self.normalizer, placement_context)  # a = p(e)
        if hooks.edit is not None:
            mask = {ALLOWED: call.allowed.expand_as(weights)}
            unedited = AttentionOutput(weights=weights, scores=scores, extras={**extras, **mask})
            weights = apply_edit(hooks.edit, self.site.id, unedited, positions, call.allowed)
        carry, score_extras = self.score.update_carry(carry, weights)
        extras = {**extras, **score_extras}
        head_contexts = weighted_sum(dropout(weights, self.dropout, self.training), memory.values)  # c = sum_i a_i v_i
        context = self._join(head_contexts, weights)
        if detail is Detail.FULL:
            return AttentionOutput(context, weights, scores, extras, query, head_contexts), carry
        return AttentionOutput(context, None if detail is Detail.NONE else weights, extras=extras), carry

    def _make_call(self, query: Tensor, memory: Memory, allowed: Tensor | None, hooks: Hooks) -> AttentionCall:
        """Check the shapes, split the query into heads and combine the masks."""
        batch = memory.keep.shape[0]  # not len(), which is no symbol in an export
        check_shape("query", query.shape, f"a memory of {batch} sentences", (batch, -1, -1))
        split = query[:, :, None] if self.heads is None else self.heads.split_query(query)
        expected = (*query.shape[:2], -1, self.score.query_size)
        check_shape("a query", split.shape, f"the {type(self.score).__name__} score", expected)
        keep = self._mask_beyond_limit(memory.keep)  # a memory may have grown since it was prepared
        mask = allowed_keys(keep, query.shape[1], allowed)
        detail, has_edit = hooks.detail_at(self.site.id), hooks.edit is not None
        return AttentionCall(self, split, memory, keep, mask, allowed is not None, detail, has_edit)

    def _check_positions(self, query: Tensor, positions: Tensor | None) -> Tensor:
        """Return the target positions of the queries: the given ones, or 0, 1, 2, ..."""
        if positions is None:
            return torch.arange(query.shape[1], device=query.device).expand(query.shape[:2])
        check_shape("positions", positions.shape, f"a call with queries of shape {tuple(query.shape)}", query.shape[:2])
        return positions

    def _mask_beyond_limit(self, keep: Tensor) -> Tensor:
        """Return `keep` with False from position `score.max_keys` on; raise if `on_too_long` says so."""
        limit = self.score.max_keys
        if limit is None or keep.shape[1] <= limit:
            return keep
        longest = int(extent(keep).max()) if len(keep) else 0
        if longest > limit and self.on_too_long == "error":
            raise ShapeError(
                f"a source of {longest} positions is longer than the location score's table of {limit}; raise"
                ' max_source_positions, or set on_too_long = "ignore" to leave the tail unread'
            )
        return keep & (torch.arange(keep.shape[1], device=keep.device) < limit)

    def _join(self, head_contexts: Tensor, attended: Tensor) -> Tensor:
        """Join the contexts of the heads.

        A query that attends to no key gets zeros instead of the bias of the output projection. `attended` (batch,
        query, head, key) is nonzero where a key has weight or may have it.
        """
        if self.heads is None:
            return head_contexts.squeeze(2)
        return self.heads.join(head_contexts).masked_fill(~attended.any(dim=-1).any(dim=2)[..., None], 0.0)


def weighted_sum(
    weights: Float[Tensor, "batch query head key"], values: Float[Tensor, "batch key head width"]
) -> Float[Tensor, "batch query head width"]:
    """Return `c = sum_i a_i v_i`. Keys that are not allowed have weight 0, but their values must be finite."""
    return torch.einsum("bqhk,bkhd->bqhd", weights, values)
