"""From recorded attention to the parts of a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from heedful.attention import AttentionOutput
from heedful.attention.hooks import ALLOWED
from heedful.integrations.transformers.attention_function import VALUES
from heedful.trace.capture import SiteKeys, pack_site
from heedful.trace.schema import PackedTensor, SideName, Site, SiteRecord, TraceDetail

HIDDEN_SCORE = -1e4  # of keys outside a sliding window: no trace describes windows, and exp(-1e4) is 0


class SiteLayout(NamedTuple):
    """Where the queries and keys of a site are: on which sides, and which of the encoder's positions a trace shows.

    `shown` is None for all; of an image, the patches without [CLS]; of sound, the frames before its end.
    """

    site: Site
    sides: tuple[SideName, SideName]
    causal: bool = False
    shown: slice | None = None


def pack_sites(
    layouts: Sequence[SiteLayout],
    attentions: Mapping[str, AttentionOutput],
    detail: TraceDetail,
    alignment_site: str | None,
    tensors: dict[str, PackedTensor],
) -> list[SiteRecord]:
    """Return the records of the sites that were called, and add their arrays to `tensors`."""
    records = []
    for layout in layouts:
        if layout.site.id not in attentions:
            continue
        wanted = detail == "full" or (detail == "steps" and layout.site.id == alignment_site)
        records.append(_pack(layout, attentions[layout.site.id], wanted, tensors))
    return records


def _pack(layout: SiteLayout, output: AttentionOutput, wanted: bool, tensors: dict[str, PackedTensor]) -> SiteRecord:
    output = _to_float(output)
    assert output.weights is not None
    site = layout.site._replace(heads=output.weights.shape[2])
    if layout.shown is not None:  # contexts contain what is not shown, so they cannot be recomputed
        weights = output.weights
        weights = weights[:, layout.shown] if layout.sides[0] == "source" else weights
        weights = weights[..., layout.shown] if layout.sides[1] == "source" else weights
        site = site._replace(mass="at_most_one")
        return pack_site(site, AttentionOutput(weights=weights), layout.sides, tensors, None)
    keys = None
    if wanted and output.scores is not None:
        values = output.extras[VALUES]
        output = replace(output, scores=_hide_scores(output, layout.causal), extras={})
        keys = SiteKeys(values, torch.ones(values.shape[1], dtype=torch.bool))
    return pack_site(site, output, layout.sides, tensors, keys)


def _hide_scores(output: AttentionOutput, causal: bool) -> Tensor:
    """Return the scores; those of keys that may not be attended to, though no rule of traces says so, are very low."""
    assert output.scores is not None
    allowed = output.extras.get(ALLOWED)
    if allowed is None:
        return output.scores
    queries, keys = output.scores.shape[1], output.scores.shape[3]
    expected = torch.ones(queries, keys, dtype=torch.bool)
    expected = expected.tril(keys - queries) if causal else expected
    return output.scores.masked_fill(~allowed & expected[None, :, None], HIDDEN_SCORE)


def _to_float(output: AttentionOutput) -> AttentionOutput:
    """Return an output as 32-bit floats on the CPU."""

    def convert(tensor: Tensor | None) -> Tensor | None:
        return None if tensor is None else tensor.detach().cpu().float()

    extras = {name: x.detach().cpu() for name, x in output.extras.items()}
    extras = {name: x if x.dtype == torch.bool else x.float() for name, x in extras.items()}
    return AttentionOutput(
        None,
        convert(output.weights),
        convert(output.scores),
        extras,
        convert(output.query),
        convert(output.head_contexts),
    )
