"""The attention function that transformers calls while a model is recorded or edited."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from heedful.attention import AttentionOutput, Detail
from heedful.attention.hooks import ALLOWED, Edit, apply_edit
from heedful.attention.recording import Recording, current_recording
from heedful.errors import ModelError

VALUES, KEYS = (
    "values",
    "keys",
)  # keys of `extras` at Detail.FULL: (batch, key, head, width), repeated for grouped heads
OFFSET = "offset"  # key of `ModelRecording.progress`: the position of the first query of the decoder's current call
UNSUPPORTED = ("s_aux", "sinks")  # arguments that change the softmax in a way that no trace describes


class ReadPositions(NamedTuple):
    """Queries of a site that are a site of their own: what a classification head reads, such as the row of [CLS]."""

    name: str
    positions: Tensor


@dataclass(frozen=True, slots=True)
class ModelRecording(Recording):
    """A recording of a transformers model.

    `causal` are the decoder's self-attention sites, `decoder` all of its sites. `rows` is the number of hypotheses per
    sentence, which edits see on the query axis. `read` names queries that are a site of their own.
    """

    causal: frozenset[str] = frozenset()
    decoder: frozenset[str] = frozenset()
    rows: int = 1
    read: Mapping[str, ReadPositions] = field(default_factory=dict)
    progress: dict[str, int] = field(default_factory=dict)


def recorded_attention(  # noqa: PLR0913 - the arguments are those of transformers
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    position_bias: Tensor | None = None,
    softcap: float | None = None,
    **options: Any,
) -> tuple[Tensor, Tensor]:
    """Return contexts (batch, query, head, width) and weights (batch, head, query, key), as transformers wants them.

    The same computation as its eager attention, with one difference: a query that may attend to no key gets zeros.
    """
    unknown = [name for name in UNSUPPORTED if options.get(name) is not None]
    if unknown:
        raise ModelError(f"{type(module).__name__}: attention with {unknown[0]} cannot be recorded")
    groups = query.shape[1] // key.shape[1]
    if groups > 1:  # grouped-query attention: several heads of queries share one of keys
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
    scores = query @ key.transpose(2, 3) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if position_bias is not None:
        scores = scores + position_bias
    allowed, masked = _apply_mask(scores, attention_mask)
    weights = masked.softmax(dim=-1, dtype=torch.float32).to(query.dtype)
    if allowed is not None:
        weights = weights.masked_fill(~allowed.any(dim=-1, keepdim=True), 0.0)
    recording = current_recording(module)
    if recording is not None:
        assert isinstance(recording, ModelRecording)
        weights = edit_weights(recording, module, weights, scores, allowed)
    dropped = nn.functional.dropout(weights, dropout, module.training)
    contexts = (dropped @ value).transpose(1, 2)
    if recording is not None:
        record_output(recording, module, (query, key, value), (scores, weights, allowed), contexts)
    return contexts.contiguous(), weights


def _apply_mask(scores: Tensor, mask: Tensor | None) -> tuple[Tensor | None, Tensor]:
    """Return which keys may be attended to, (batch, 1, query, key) or None for all, and the masked scores."""
    if mask is None:
        return None, scores
    if mask.dtype == torch.bool:
        return mask, scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    mask = mask[..., : scores.shape[-1]]
    return mask > torch.finfo(mask.dtype).min / 2, scores + mask


def edit_weights(
    recording: ModelRecording, module: nn.Module, weights: Tensor, scores: Tensor, allowed: Tensor | None
) -> Tensor:
    """Return the weights after the edits of the recording."""
    site = recording.sites[id(module)]
    if site in recording.causal:
        recording.progress[OFFSET] = weights.shape[-1] - weights.shape[-2]
    edit = recording.hooks.edit
    if edit is None:
        return weights
    readable = (
        torch.ones_like(weights[:, :1], dtype=torch.bool) if allowed is None else allowed.expand_as(weights[:, :1])
    )
    by_query = [x.transpose(1, 2) for x in (weights, scores, readable)]
    offset = recording.progress.get(OFFSET, 0) if site in recording.decoder else 0
    rows = recording.rows if site in recording.decoder else 1
    edited = _apply(edit, site, by_query, offset, rows)
    read = recording.read.get(site)
    if read is not None:
        part = _apply(edit, read.name, [edited[:, read.positions], *(x[:, read.positions] for x in by_query[1:])], 0, 1)
        edited = edited.index_copy(1, read.positions, part)
    return edited.transpose(1, 2)


def _apply(edit: Edit, site: str, tensors: list[Tensor], offset: int, rows: int) -> Tensor:
    """Apply an edit to weights (row, query, head, key); the rows of a sentence are folded into the query axis."""
    shape = tensors[0].shape
    weights, scores, allowed = (x.reshape(-1, rows * x.shape[1], *x.shape[2:]) for x in tensors)
    steps = (offset + torch.arange(shape[1], device=weights.device)).repeat(rows).expand(len(weights), -1)
    unedited = AttentionOutput(weights=weights, scores=scores, extras={ALLOWED: allowed})
    return apply_edit(edit, site, unedited, steps, allowed).reshape(shape)


def record_output(
    recording: ModelRecording,
    module: nn.Module,
    projected: tuple[Tensor, Tensor, Tensor],
    computed: tuple[Tensor, Tensor, Tensor | None],
    contexts: Tensor,
) -> None:
    """Add an output to the recording, and that of the queries which are a site of their own.

    `projected` are queries, keys and values, `computed` scores, weights and which keys may be attended to.
    """
    (query, key, value), (scores, weights, allowed) = projected, computed
    site = recording.sites[id(module)]
    read = recording.read.get(site)
    for name in (site, read.name) if read is not None else (site,):
        detail = recording.hooks.detail_at(name)
        if detail is Detail.NONE:
            continue
        output = AttentionOutput(weights=weights.transpose(1, 2))
        if detail is Detail.FULL:
            extras = {VALUES: value.transpose(1, 2), KEYS: key.transpose(1, 2)}
            if allowed is not None:
                extras[ALLOWED] = allowed.transpose(1, 2)
            queries = query.transpose(1, 2).flatten(2)
            output = AttentionOutput(None, output.weights, scores.transpose(1, 2), extras, queries, contexts)
        if read is not None and name == read.name:
            output = _select_queries(output, read.positions)
        recording.outputs.setdefault(name, []).append(output)


def _select_queries(output: AttentionOutput, positions: Tensor) -> AttentionOutput:
    """Return the output at some of its queries."""

    def select(tensor: Tensor | None) -> Tensor | None:
        return None if tensor is None else tensor[:, positions]

    extras = {name: x if name in (KEYS, VALUES) else x[:, positions] for name, x in output.extras.items()}
    return AttentionOutput(
        None, select(output.weights), select(output.scores), extras, select(output.query), select(output.head_contexts)
    )
