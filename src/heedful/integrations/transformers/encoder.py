"""An encoder of transformers, with or without a head, in terms of traces and probes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from heedful.attention import NO_HOOKS, AttentionOutput, Hooks
from heedful.errors import ModelError
from heedful.integrations.transformers.adapted import AdaptedModel
from heedful.integrations.transformers.attention_function import ReadPositions
from heedful.integrations.transformers.family import Family
from heedful.integrations.transformers.folder_checks import library_errors
from heedful.trace.schema import Site

POOL = "pool"  # site: the queries of the last self-attention that the head reads, such as [CLS]


class EncoderResult(NamedTuple):
    """Logits (row, position, class) at the positions that the head reads, and the attention of every site."""

    logits: Tensor | None
    attentions: Mapping[str, AttentionOutput]


class EncoderAdapter(AdaptedModel):
    """An encoder. The row of [CLS] in its last self-attention is a site of its own, "pool", where the head reads it."""

    def __init__(self, inner: PreTrainedModel, family: Family, alignment_site: str | None = None) -> None:
        self.reads_position: int | None = 0
        super().__init__(inner, family, alignment_site)

    @property
    def sites(self) -> tuple[Site, ...]:
        own = super().sites
        return own if self.reads_position is None else (*own, Site(POOL, "pool", own[-1].heads, "one"))

    @property
    def default_site(self) -> str | None:
        return POOL if self.reads_position is not None else None

    @property
    def embedding(self) -> nn.Module:
        """The embedding of the source, which saliency differentiates."""
        module: nn.Module = self.inner.get_input_embeddings()
        return module

    def run(
        self, tensors: Mapping[str, Tensor], hooks: Hooks = NO_HOOKS, positions: Tensor | None = None
    ) -> EncoderResult:
        """Run the model; `positions` are the queries of "pool" (default: the position that the head reads)."""
        if positions is None and self.reads_position is not None:
            positions = torch.tensor([self.reads_position])
        read = None if positions is None else ReadPositions(POOL, positions)
        with self.record(hooks, read=read) as outputs:
            result: Any = self.inner(**tensors)
        logits = getattr(result, "logits", None)
        if logits is not None and logits.dim() == 2:
            logits = logits[:, None]
        elif logits is not None and positions is not None:
            logits = logits[:, positions]
        return EncoderResult(logits, {site: calls[0] for site, calls in outputs.items()})

    @torch.enable_grad()
    def find_read_position(self, tensors: Mapping[str, Tensor]) -> None:
        """Find out which position the classification head reads, by gradients; None if it reads several."""
        leaves: list[Tensor] = []

        module: Any = next(site.module for site in self.model_sites if site.id == self.last_site)

        def detach(_: nn.Module, __: Any, output: Any) -> Any:
            leaves.append(output[0].detach().requires_grad_())
            return (leaves[0], *output[1:])

        handle = module.register_forward_hook(detach)
        try:
            with library_errors(f"{type(self.inner).__name__}: it cannot be run"):
                logits = self.inner(**tensors).logits
        finally:
            handle.remove()
        (gradient,) = torch.autograd.grad(logits[0, 0], leaves[0])
        read = gradient[0].abs().sum(dim=-1).nonzero().flatten().tolist()
        if not read:
            raise ModelError(f"{type(self.inner).__name__}: its logits do not depend on its last attention")
        self.reads_position = read[0] if len(read) == 1 else None
