"""Edits: counterfactual changes to a model's attention weights, its input, or the first output words.

The text of an edit is `OP[@SITE][:KEY=VALUE,...]`, for example `onehot:step=3,position=0`, `uniform`,
`set:step=2,position=5,value=0.8`, `mask-head@dec.2.cross:head=1`, `source:position=2,text=dog` or
`prefix:text=le chat`. `set` gives one position a weight and rescales the others; `zero` removes one position's weight
and rescales the others; `source` replaces a source word (without `text`: deletes it); `prefix` forces the first output
words. Positions and steps count from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.attention import AttentionOutput, Override
from heedful.attention import Edit as EditHook
from heedful.attention.hooks import ALLOWED
from heedful.errors import TraceError, nearest
from heedful.trace.schema import Edit, Gold, Trace

OPS = get_args(Edit.model_fields["op"].annotation)
REQUIRED_KEYS: Mapping[str, tuple[str, ...]] = {
    "set": ("position", "value"),
    "onehot": ("position",),
    "zero": ("position",),
    "mask-head": ("head",),
    "source": ("position",),
    "prefix": ("text",),
}
KEY_TYPES: Mapping[str, Callable[[str], Any]] = {
    "step": int,
    "head": int,
    "position": int,
    "value": float,
    "text": str,
}
NO_WEIGHTS = "this model has no attention over its input, so there are no weights to change"

Weights = Float[Tensor, "batch query head key"]


def parse_edit(text: str) -> Edit:
    """Parse the text of an edit.

    >>> parse_edit("onehot:step=3,position=0").model_dump(exclude_none=True)
    {'op': 'onehot', 'step': 3, 'position': 0}
    """
    head, _, rest = text.partition(":")
    op, _, site = head.partition("@")
    if op not in OPS:
        raise TraceError(f'"{text}": unknown edit "{op}"; {nearest(op, OPS)}')
    fields: dict[str, Any] = {"op": op, "site": site or None}
    for part in _split_keys(rest):
        key, equals, value = part.partition("=")
        if not equals:
            raise TraceError(f'"{text}": "{part}" is not KEY=VALUE; keys: {", ".join(KEY_TYPES)}')
        if key not in KEY_TYPES:
            raise TraceError(f'"{text}": edits have no key "{key}"; {nearest(key, KEY_TYPES)}')
        try:
            fields[key] = KEY_TYPES[key](value)
        except ValueError:
            raise TraceError(f'"{text}": {key} = "{value}" is not a number') from None
    missing = [key for key in REQUIRED_KEYS.get(op, ()) if key not in fields]
    if missing:
        raise TraceError(f'"{text}": {op} needs {" and ".join(missing)}')
    if op == "set" and not 0 <= fields["value"] <= 1:
        raise TraceError(f'"{text}": value must be between 0 and 1, got {fields["value"]:g}')
    return Edit(**fields)


def _split_keys(rest: str) -> list[str]:
    """Split `KEY=VALUE,...`; the value of `text` is the rest of the string, including commas."""
    before, has_text, text = rest.partition("text=")
    parts = [part.strip() for part in before.split(",") if part.strip()]
    return [*parts, f"text={text}"] if has_text else parts


def build_edit_hook(
    edits: Sequence[Edit], alignment: str | None, gold: Gold | None = None, seed: int = 1
) -> EditHook | None:
    """Return a hook that applies the edits that change weights, or None if there are none.

    Edits without a site apply to the site `alignment`; `gold` edits use the links (source token, step) in `gold`.
    """
    applicable = [edit for edit in edits if edit.changes_weights]
    if not applicable:
        return None
    if alignment is None and not all(edit.site for edit in applicable):
        raise TraceError(NO_WEIGHTS)

    def hook(site: str, output: AttentionOutput, positions: Tensor) -> Override | None:
        assert output.weights is not None
        weights = output.weights.clone()
        changed = False
        for edit in applicable:
            if site != (edit.site or alignment):
                continue
            rows = torch.ones_like(positions, dtype=torch.bool) if edit.step is None else positions == edit.step
            if bool(rows.any()):
                changed = True
                operation = _Operation(edit, positions, gold, seed)
                weights = _apply(operation, weights, output.extras.get(ALLOWED), rows)
        return Override(weights) if changed else None

    return hook


def validate_edits(trace: Trace) -> None:
    """Raise TraceError if an edit names a site or step that does not exist: it would have no effect."""
    n_queries = {record.site: trace.tensors[record.weights].shape[0] for record in trace.sites}
    for edit in trace.edits:
        if not edit.changes_weights:
            continue
        site = edit.site or str(trace.alignment_site)
        if not n_queries:
            raise TraceError(NO_WEIGHTS)
        if site not in n_queries:
            raise TraceError(f'"{edit.op}@{site}": there is no such site; {nearest(site, n_queries)}')
        if edit.step is not None and not 0 <= edit.step < n_queries[site]:
            raise TraceError(f"step {edit.step} is out of range; {site} has steps 0 to {n_queries[site] - 1}")


class _Operation(NamedTuple):
    """An edit with everything its operation may need."""

    edit: Edit
    positions: Int[Tensor, "batch query"]
    gold: Gold | None
    seed: int


def _apply(
    operation: _Operation,
    weights: Weights,
    allowed: Bool[Tensor, "batch query head key"] | None,
    rows: Bool[Tensor, "batch query"],
) -> Weights:
    """Return the weights with an edit applied to the chosen queries and heads."""
    edit, n_keys, n_heads = operation.edit, weights.shape[-1], weights.shape[2]
    if edit.position is not None and not 0 <= edit.position < n_keys:
        raise TraceError(f"position {edit.position} is out of range; the source has positions 0 to {n_keys - 1}")
    if edit.head is not None and not 0 <= edit.head < n_heads:
        raise TraceError(f"head {edit.head} is out of range; this site has heads 0 to {n_heads - 1}")
    heads = slice(None) if edit.head is None else slice(edit.head, edit.head + 1)
    edited = weights.clone()
    part = edited[:, :, heads]
    keep = (part > 0).any(dim=1, keepdim=True).any(dim=2, keepdim=True) if allowed is None else allowed
    part.copy_(_replace(operation, part.clone(), keep.expand_as(weights)[:, :, heads]))
    return torch.where(rows[..., None, None], edited, weights)


def _replace(operation: _Operation, weights: Weights, keep: Bool[Tensor, "batch query head key"]) -> Weights:
    """Return the weights after an operation; `keep` is True where a key is not masked."""
    edit = operation.edit
    if edit.op == "mask-head":
        return torch.zeros_like(weights)
    if edit.op == "uniform":
        return (keep / keep.sum(dim=-1, keepdim=True).clamp_min(1)).to(weights)
    if edit.op == "permute":
        return _permute(weights, keep, operation.seed)
    if edit.op == "gold":
        return _gold_weights(weights, operation.positions, operation.gold)
    assert edit.position is not None
    chosen = torch.arange(weights.shape[-1]) == edit.position
    rest = remove_weights(weights, chosen)
    if edit.op == "zero":
        return rest
    value = 1.0 if edit.op == "onehot" else edit.value
    assert value is not None
    return rest * ((1 - value) / rest.sum(dim=-1, keepdim=True).clamp_min(1e-12)) + chosen * value


def _permute(weights: Weights, keep: Bool[Tensor, "batch query head key"], seed: int) -> Weights:
    """Permute each row's weights among the keys that are not masked."""
    random = torch.rand(weights.shape, generator=torch.Generator().manual_seed(seed))
    masked = ~keep
    targets = torch.argsort(masked.byte(), dim=-1, stable=True)
    order = torch.argsort(random.masked_fill(masked, 2.0), dim=-1, stable=True)
    return torch.zeros_like(weights).scatter(-1, targets, weights.gather(-1, order))


def remove_weights(weights: Float[Tensor, "*row key"], removed: Bool[Tensor, "*#row key"]) -> Float[Tensor, "*row key"]:
    """Return the weights without those of some keys, rescaled to the same sum; zeros where nothing remains.

    >>> remove_weights(torch.tensor([0.5, 0.25, 0.25]), torch.tensor([True, False, False]))
    tensor([0.0000, 0.5000, 0.5000])
    """
    rest = weights.masked_fill(removed, 0.0)
    mass, remaining = (w.sum(dim=-1, keepdim=True) for w in (weights, rest))
    return rest * (mass / remaining.clamp_min(1e-12)).masked_fill(remaining < 1e-12, 0.0)


def _gold_weights(weights: Weights, positions: Int[Tensor, "batch query"], gold: Gold | None) -> Weights:
    """Return weights on the gold source tokens of each step; steps without a link keep their weights."""
    if gold is None:
        raise TraceError("gold: this sentence has no gold alignment; give one with --gold")
    edited = weights.clone()
    for row, steps in enumerate(positions.tolist()):
        for query, step in enumerate(steps):
            keys = [source for source, target in gold.sure if target == step]
            if keys:
                edited[row, query] = 0
                edited[row, query, :, keys] = 1 / len(keys)
    return edited
