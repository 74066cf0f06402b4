"""A drop-in replacement of `torch.nn.MultiheadAttention` whose weights can be recorded and edited."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.attention.hooks import ALLOWED, Detail, apply_edit
from heedful.attention.masks import causal
from heedful.attention.normalizers.softmax import masked_softmax
from heedful.attention.recording import Recording, current_recording
from heedful.attention.types import AttentionOutput
from heedful.errors import ShapeError


class HeadInputs(NamedTuple):
    """Projected queries, keys and values, (batch, head, position, width), and the masks."""

    query: Tensor
    key: Tensor
    value: Tensor
    allowed: Tensor  # (batch, head or 1, query, key)
    bias: Tensor | None  # float masks, added to the scores


class MultiHeadAttention(nn.MultiheadAttention):
    """`torch.nn.MultiheadAttention`: same arguments, parameters and results, and weights that can be recorded.

    Its state dict is torch's, so weights can be loaded in both directions. It differs in one case: a query that may
    attend to no key gets zeros, where torch returns NaN. `heedful.attention.record` records and edits its weights,
    also inside a model; `from_torch` converts a module.

    >>> attention = MultiHeadAttention(embed_dim=8, num_heads=2, batch_first=True)
    >>> inputs = torch.randn(1, 3, 8)
    >>> output, weights = attention(inputs, inputs, inputs)
    >>> output.shape, weights.shape
    (torch.Size([1, 3, 8]), torch.Size([1, 3, 3]))
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.same_size = self._qkv_same_embed_dim
        # torch's Transformer layers skip this module in evaluation where they read True, and nothing could be recorded
        self._qkv_same_embed_dim = False

    @classmethod
    def from_torch(cls, module: nn.MultiheadAttention) -> MultiHeadAttention:
        """Return a module with the settings and parameters of torch's; the parameters are shared, not copied."""
        converted = cls(
            module.embed_dim, module.num_heads, module.dropout, module.in_proj_bias is not None,
            module.bias_k is not None, module.add_zero_attn, module.kdim, module.vdim, module.batch_first,
        )  # fmt: skip
        for name, parameter in module.named_parameters():
            owner = converted.out_proj if name.startswith("out_proj.") else converted
            setattr(owner, name.removeprefix("out_proj."), parameter)
        return converted.train(module.training)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the outputs and, with `need_weights`, the weights: the mean over heads, or (batch, head, query, key).

        As in torch, True in a Boolean mask means that a key must not be attended to, and a float mask is added to the
        scores. `is_causal` without `attn_mask` makes a causal mask.
        """
        batched = query.dim() == 3
        if not batched:
            query, key, value = (tensor.unsqueeze(0) for tensor in (query, key, value))
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            query, key, value = (tensor.transpose(0, 1) for tensor in (query, key, value))
        self._check_shapes(query, key, value)
        if is_causal and attn_mask is None:
            attn_mask = ~causal(max(query.shape[1], key.shape[1]), query.device)[0, : query.shape[1], : key.shape[1]]
        inputs = self._project(query, key, value, key_padding_mask, attn_mask)
        recording = current_recording(self)
        if recording is None and not need_weights:
            head_contexts, weights = self._fused(inputs), None
        else:
            head_contexts, weights = self._attend(inputs, query, recording)
        context = self._join(head_contexts, inputs.allowed)
        if recording is not None:
            self._add_context(recording, context)
        if not need_weights:
            weights = None
        elif weights is not None and average_attn_weights:
            weights = weights.mean(dim=1)
        if not batched:
            return context.squeeze(0), None if weights is None else weights.squeeze(0)
        return context if self.batch_first else context.transpose(0, 1), weights

    def _check_shapes(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        for name, tensor, width in (
            ("query", query, self.embed_dim),
            ("key", key, self.kdim),
            ("value", value, self.vdim),
        ):
            if tensor.dim() != 3 or tensor.shape[-1] != width:
                raise ShapeError(
                    f"{name} has shape {tuple(tensor.shape)}, but this attention needs (batch, position, {width})"
                )
        if key.shape[:2] != value.shape[:2] or len(query) != len(key):
            shapes = f"{tuple(query.shape)}, {tuple(key.shape)}, {tuple(value.shape)}"
            raise ShapeError(
                f"query, key, value have shapes {shapes}: they need one batch size, key and value one length"
            )

    def _project(
        self, query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, attn_mask: Tensor | None
    ) -> HeadInputs:
        """Project the inputs, append the learned and the zero key where there are any, and combine the masks."""
        if self.same_size:
            matrices = self.in_proj_weight.chunk(3)
        else:
            matrices = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        stacked: Tensor | None = getattr(self, "in_proj_bias", None)
        biases = (None,) * 3 if stacked is None else stacked.chunk(3)
        projected = [F.linear(x, w, b) for x, w, b in zip((query, key, value), matrices, biases, strict=True)]
        batch, length = key.shape[:2]
        if self.bias_k is not None and self.bias_v is not None:
            projected[1] = torch.cat([projected[1], self.bias_k.expand(batch, 1, -1)], dim=1)
            projected[2] = torch.cat([projected[2], self.bias_v.expand(batch, 1, -1)], dim=1)
        if self.add_zero_attn:
            projected[1:] = [torch.cat([x, x.new_zeros(batch, 1, x.shape[2])], dim=1) for x in projected[1:]]
        q, k, v = (x.view(*x.shape[:2], self.num_heads, self.head_dim).transpose(1, 2) for x in projected)
        allowed, bias = self._combine_masks(padding, attn_mask, (batch, q.shape[2], length), q)
        extra = k.shape[2] - length
        if extra:  # appended keys may always be attended to
            allowed = F.pad(allowed, (0, extra), value=True)
            bias = None if bias is None else F.pad(bias, (0, extra))
        return HeadInputs(q, k, v, allowed, bias)

    def _combine_masks(
        self, padding: Tensor | None, attn_mask: Tensor | None, sizes: tuple[int, int, int], like: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """Return which keys may be attended to, and the sum of float masks, as (batch, head, query, key)."""
        batch, queries, length = sizes
        allowed = torch.ones(batch, 1, queries, length, dtype=torch.bool, device=like.device)
        bias: Tensor | None = None
        for name, mask, shape in (
            ("key_padding_mask", padding, (batch, 1, 1, length)),
            ("attn_mask", attn_mask, self._mask_shape(attn_mask, batch, queries, length)),
        ):
            if mask is None:
                continue
            if mask.numel() != torch.Size(shape).numel():
                raise ShapeError(f"{name} has shape {tuple(mask.shape)}, but these inputs need {_squeezed(shape)}")
            if mask.dtype == torch.bool:
                allowed = allowed & ~mask.reshape(shape)
                continue
            allowed = allowed & (mask.reshape(shape) != -torch.inf)
            added = mask.reshape(shape).masked_fill(mask.reshape(shape) == -torch.inf, 0.0).to(like.dtype)
            bias = added if bias is None else bias + added
        return allowed, bias

    def _mask_shape(self, mask: Tensor | None, batch: int, queries: int, length: int) -> tuple[int, ...]:
        """Return the shape of `attn_mask` as (batch, head, query, key): one for all, or one per sentence and head."""
        if mask is not None and mask.dim() == 3:
            return (batch, self.num_heads, queries, length)
        return (1, 1, queries, length)

    def _fused(self, inputs: HeadInputs) -> Tensor:
        """Return the contexts of the heads by torch's kernel, which does not return weights."""
        mask = inputs.allowed | ~inputs.allowed.any(dim=-1, keepdim=True)  # rows without a key are set to 0 later
        if inputs.bias is not None:
            mask = torch.where(mask, inputs.bias, -torch.inf)
        dropout = self.dropout if self.training else 0.0
        return F.scaled_dot_product_attention(inputs.query, inputs.key, inputs.value, mask, dropout)

    def _attend(self, inputs: HeadInputs, query: Tensor, recording: Recording | None) -> tuple[Tensor, Tensor]:
        """Return the contexts of the heads and the weights, (batch, head, query, key), and record them."""
        scores = (inputs.query / self.head_dim**0.5) @ inputs.key.transpose(-2, -1)
        if inputs.bias is not None:
            scores = scores + inputs.bias
        allowed = inputs.allowed.expand_as(scores)
        weights = masked_softmax(scores, allowed)
        if recording is not None and recording.hooks.edit is not None:
            weights = self._edit(recording, weights, scores, allowed)
        dropped = F.dropout(weights, self.dropout, self.training)
        head_contexts = dropped @ inputs.value
        if recording is not None:
            site, full = recording.sites[id(self)], Detail.FULL
            detail = recording.hooks.detail_at(site)
            if detail is not Detail.NONE:
                by_query = [x.transpose(1, 2) for x in (weights, scores, head_contexts)]
                output = AttentionOutput(weights=by_query[0])
                if detail is full:
                    output = AttentionOutput(None, by_query[0], by_query[1], query=query, head_contexts=by_query[2])
                recording.outputs.setdefault(site, []).append(output)
        return head_contexts, dropped

    def _edit(self, recording: Recording, weights: Tensor, scores: Tensor, allowed: Tensor) -> Tensor:
        """Return the weights that the edit of the hooks gives, or the same."""
        assert recording.hooks.edit is not None
        by_query = [x.transpose(1, 2) for x in (weights, scores, allowed)]
        positions = torch.arange(weights.shape[2], device=weights.device).expand(len(weights), -1)
        unedited = AttentionOutput(weights=by_query[0], scores=by_query[1], extras={ALLOWED: by_query[2]})
        site = recording.sites[id(self)]
        return apply_edit(recording.hooks.edit, site, unedited, positions, by_query[2]).transpose(1, 2)

    def _join(self, head_contexts: Tensor, allowed: Tensor) -> Tensor:
        """Join the heads; a query that may attend to no key gets zeros."""
        context: Tensor = self.out_proj(head_contexts.transpose(1, 2).flatten(2))
        return context.masked_fill(~allowed.any(dim=-1).any(dim=1)[..., None], 0.0)

    def _add_context(self, recording: Recording, context: Tensor) -> None:
        outputs = recording.outputs.get(recording.sites[id(self)])
        if outputs:
            outputs[-1] = replace(outputs[-1], context=context)


def _squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)
