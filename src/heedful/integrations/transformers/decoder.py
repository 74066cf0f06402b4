"""A decoder of transformers (GPT-2, Llama, Qwen, ...) in terms of traces: a text is read token by token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from jaxtyping import Int
from torch import Tensor

from heedful.attention import NO_HOOKS, AttentionOutput, Hooks
from heedful.integrations.transformers.adapted import AdaptedModel


class DecoderResult(NamedTuple):
    """Logits (row, query, token) of every next token, and the attention of every site."""

    logits: Tensor
    attentions: Mapping[str, AttentionOutput]


class DecoderAdapter(AdaptedModel):
    """A decoder-only model. Its alignment site is the last self-attention."""

    def run(self, ids: Int[Tensor, "row query"], hooks: Hooks = NO_HOOKS) -> DecoderResult:
        """Run the model on the model's own ids, without a cache."""
        with self.record(hooks) as outputs:
            logits = self.inner(input_ids=ids, use_cache=False).logits
        return DecoderResult(logits, {site: calls[0] for site, calls in outputs.items()})
