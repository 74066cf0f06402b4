"""What if: the edits of a trace as a change to a model's weights.

The text of an edit is `OP[@SITE][:KEY=VALUE,...]`, as in `onehot:step=3,position=0`, `uniform`,
`set:step=2,position=5,value=0.8`, `mask-head@dec.2.cross:head=1`, `source:position=2,text=dog` or
`prefix:text=le chat`. `set` gives one position a weight and scales the others, `zero` takes one away and does
so too; `source` replaces a source word (or erases it, without a text); `prefix` forces the first words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import torch
from torch import Tensor

from heedful.attention import Edit as Change
from heedful.attention import Look, Override
from heedful.attention.types import OPEN
from heedful.errors import TraceError, nearest
from heedful.record import Edit, Gold, Trace

OPS = get_args(Edit.model_fields["op"].annotation)
NEEDS: Mapping[str, tuple[str, ...]] = {
    "set": ("position", "value"),
    "onehot": ("position",),
    "zero": ("position",),
    "mask-head": ("head",),
    "source": ("position",),
    "prefix": ("text",),
}
NOTHING = "this model never looks back: it has no weights to change"
NUMBERS = {"step": int, "head": int, "position": int, "value": float, "text": str}


def edit_of(text: str) -> Edit:
    """
    >>> edit_of("onehot:step=3,position=0").model_dump(exclude_none=True)
    {'op': 'onehot', 'step': 3, 'position': 0}
    """
    head, _, rest = text.partition(":")
    op, _, site = head.partition("@")
    if op not in OPS:
        raise TraceError(f'"{text}": no edit is called "{op}"; {nearest(op, OPS)}')
    found: dict[str, Any] = {"op": op, "site": site or None}
    for part in _parts(rest):
        key, equals, value = part.partition("=")
        if not equals:
            raise TraceError(f'"{text}": "{part}" is not KEY=VALUE; keys: {", ".join(NUMBERS)}')
        if key not in NUMBERS:
            raise TraceError(f'"{text}": edits have no "{key}"; {nearest(key, NUMBERS)}')
        try:
            found[key] = NUMBERS[key](value)
        except ValueError:
            raise TraceError(f'"{text}": {key} = "{value}" is not a number') from None
    missing = [key for key in NEEDS.get(op, ()) if key not in found]
    if missing:
        raise TraceError(f'"{text}": {op} needs {" and ".join(missing)}')
    if op == "set" and not 0 <= found["value"] <= 1:
        raise TraceError(f'"{text}": a weight is between 0 and 1')
    return Edit(**found)


def _parts(rest: str) -> list[str]:
    """`text=` takes everything behind it, commas included."""
    before, has_text, text = rest.partition("text=")
    parts = [part.strip() for part in before.split(",") if part.strip()]
    return [*parts, f"text={text}"] if has_text else parts


def change_of(
    edits: Sequence[Edit], alignment: str | None, gold: Gold | None = None, seed: int = 1
) -> Change | None:
    """The edits of weights as the function that a `Watch` carries; None where there are none."""
    mine = _of_weights(edits)
    if not mine:
        return None
    if alignment is None and not all(edit.site for edit in mine):
        raise TraceError(NOTHING)

    def change(site: str, look: Look, at: Tensor) -> Override | None:
        assert look.weights is not None
        weights = look.weights.clone()
        touched = False
        for edit in mine:
            if site != (edit.site or alignment):
                continue
            rows = torch.ones_like(at, dtype=torch.bool) if edit.step is None else at == edit.step
            if bool(rows.any()):
                touched = True
                weights = _edited(weights, look.extra.get(OPEN), rows, at, edit, gold, seed)
        return Override(weights) if touched else None

    return change


def _of_weights(edits: Sequence[Edit]) -> list[Edit]:
    return [edit for edit in edits if edit.op not in ("source", "prefix")]


def refuse_idle(trace: Trace) -> None:
    """Refuse edits of what is not there: they change nothing, and it would look as if nothing mattered."""
    known = {looks.site: trace.tensors[looks.weight].shape[0] for looks in trace.sites}
    for edit in _of_weights(trace.edits):
        site = edit.site or str(trace.alignment)
        if not known:
            raise TraceError(NOTHING)
        if site not in known:
            raise TraceError(f'"{edit.op}@{site}": there is no such site; {nearest(site, known)}')
        if edit.step is not None and not 0 <= edit.step < known[site]:
            raise TraceError(f"step {edit.step}: at {site} there are 0 to {known[site] - 1}")


def _edited(
    weights: Tensor,
    open_: Tensor | None,
    rows: Tensor,
    at: Tensor,
    edit: Edit,
    gold: Gold | None,
    seed: int,
) -> Tensor:
    """The weights (batch, query, head, key) with an edit applied to these queries."""
    count = weights.shape[-1]
    if edit.position is not None and not 0 <= edit.position < count:
        raise TraceError(f"position {edit.position}: the source has 0 to {count - 1}")
    if edit.head is not None and not 0 <= edit.head < weights.shape[2]:
        raise TraceError(f"head {edit.head}: this site has 0 to {weights.shape[2] - 1}")
    heads = slice(None) if edit.head is None else slice(edit.head, edit.head + 1)
    new = weights.clone()
    part = new[:, :, heads]
    readable = (part > 0).any(dim=1, keepdim=True).any(dim=2, keepdim=True) if open_ is None else open_
    part.copy_(_replaced(part.clone(), readable.expand_as(weights)[:, :, heads], at, edit, gold, seed))
    return torch.where(rows[..., None, None], new, weights)


def _replaced(
    weights: Tensor, readable: Tensor, at: Tensor, edit: Edit, gold: Gold | None, seed: int
) -> Tensor:
    if edit.op == "mask-head":
        return torch.zeros_like(weights)
    if edit.op == "uniform":
        return (readable / readable.sum(dim=-1, keepdim=True).clamp_min(1)).to(weights)
    if edit.op == "permute":
        generator = torch.Generator().manual_seed(seed)
        chance = torch.rand(weights.shape, generator=generator)
        closed = ~readable  # stays where it is
        places = torch.argsort(closed.byte(), dim=-1, stable=True)
        order = torch.argsort(chance.masked_fill(closed, 2.0), dim=-1, stable=True)
        return torch.zeros_like(weights).scatter(-1, places, weights.gather(-1, order))
    if edit.op == "gold":
        return _golden(weights, at, gold)
    assert edit.position is not None
    here = torch.arange(weights.shape[-1]) == edit.position
    rest = without(weights, here)
    if edit.op == "zero":
        return rest
    value = 1.0 if edit.op == "onehot" else edit.value
    assert value is not None
    return rest * ((1 - value) / rest.sum(dim=-1, keepdim=True).clamp_min(1e-12)) + here * value


def without(weights: Tensor, gone: Tensor) -> Tensor:
    """The weights without those of some keys (a mask that fits them), what is left scaled to their mass."""
    left = weights.masked_fill(gone, 0.0)
    mass, total = (w.sum(dim=-1, keepdim=True) for w in (weights, left))
    return left * (mass / total.clamp_min(1e-12)).masked_fill(total < 1e-12, 0.0)


def _golden(weights: Tensor, at: Tensor, gold: Gold | None) -> Tensor:
    """All weight on the tokens of the gold source words; steps without a link keep their own."""
    if gold is None:
        raise TraceError("gold: this sentence has no gold alignment")
    new = weights.clone()
    for row, steps in enumerate(at.tolist()):
        for query, step in enumerate(steps):
            places = [s for s, t in gold.sure if t == step]
            if places:
                new[row, query] = 0
                new[row, query, :, places] = 1 / len(places)
    return new
