"""What stands between matrix products, each as one call: in C where it was built, else the same in torch.

Every function works on float32 tensors of the CPU and says in its docstring what torch would write; `fits`
tells whether a tensor is such a one. The tests hold the two equal.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.native.loader import Matrix, library


def fits(*tensors: Tensor) -> bool:
    """Are the kernels there, and made for these?"""
    return library() is not None and all(t.dtype == torch.float32 and t.device.type == "cpu" for t in tensors)


def entropy(
    scores: Float[Tensor, "n vocab"], gold: Int[Tensor, "n"], smoothing: float
) -> tuple[Float[Tensor, "n"], Float[Tensor, "n"]]:
    """`cross_entropy(scores, gold, label_smoothing=smoothing)` of each row, and the same without smoothing.

    In place, `scores` becomes the gradient of the (smoothed) losses' sum.
    """
    found = library()
    if found is not None and fits(scores):
        loss, plain = scores.new_empty(2, len(scores))
        found.heed_entropy(
            scores.data_ptr(), gold.data_ptr(), *scores.shape, smoothing, loss.data_ptr(), plain.data_ptr()
        )
        return loss, plain
    logp = scores.log_softmax(dim=-1)
    plain = -logp.gather(-1, gold[:, None]).squeeze(-1)
    loss = (1.0 - smoothing) * plain - smoothing * logp.mean(dim=-1)
    torch.exp(logp, out=scores).sub_(smoothing / scores.shape[-1])
    scores[torch.arange(len(gold)), gold] -= 1.0 - smoothing
    return loss, plain


def agreed(
    one: Float[Tensor, "n vocab"],
    two: Float[Tensor, "n vocab"],
    gold: Int[Tensor, "n"],
    smoothing: float,
    price: float,
) -> tuple[Float[Tensor, "n"], Float[Tensor, "n"]]:
    """Two readings of each row: the mean of their `entropy`, and `price / 4` of both divergences; see R-Drop.

    Also the mean -log p of the gold words. In place, both scores become the gradients of the losses' sum.
    """
    found = library()
    if found is not None and fits(one, two):
        loss, plain = one.new_empty(2, len(one))
        found.heed_agreed(
            *(x.data_ptr() for x in (one, two, gold)),
            *one.shape,
            smoothing,
            price,
            loss.data_ptr(),
            plain.data_ptr(),
        )
        return loss, plain
    p, q = one.log_softmax(dim=-1), two.log_softmax(dim=-1)
    apart = p - q
    p.exp_()
    q.exp_()
    losses, plains = zip(*(entropy(scores, gold, smoothing) for scores in (one, two)), strict=True)
    gone, back = ((x * apart).sum(dim=-1, keepdim=True) for x in (p, q))
    one.mul_(0.5).add_(p * (apart - gone) + p - q, alpha=price / 4)
    two.mul_(0.5).add_(q * (back - apart) + q - p, alpha=price / 4)
    loss = (losses[0] + losses[1]) / 2 + price / 4 * (gone - back).squeeze(-1)
    return loss, (plains[0] + plains[1]) / 2


WORD = 2**32


class Chance(NamedTuple):
    """Which elements dropout keeps: those whose number, hashed with the seed, falls below a limit."""

    p: float
    seed: int

    @property
    def limit(self) -> int:
        return min(WORD - 1, round((1.0 - self.p) * WORD))

    def apply(self, x: Tensor) -> Tensor:
        """`x * mask / (1 - p)`; the same call leads gradients back."""
        found = library()
        x = x.contiguous()
        scale = 1.0 / (1.0 - self.p)
        if found is not None and fits(x):
            y = torch.empty_like(x)
            found.heed_dropout(x.data_ptr(), y.data_ptr(), x.numel(), self.limit, scale, self.seed)
            return y
        return x * (self.mask(x.numel()).view(x.shape).to(x.device) * scale).to(x.dtype)

    def mask(self, count: int) -> Bool[Tensor, "count"]:
        """The hash in torch's arithmetic: 64 bits wide, cut to 32 after each product."""
        h = (torch.arange(count) * 0x9E3779B9 + self.seed) & (WORD - 1)
        h = h ^ (h >> 16)
        h = (h * 0x7FEB352D) & (WORD - 1)
        h = h ^ (h >> 15)
        h = (h * 0x846CA68B) & (WORD - 1)
        h = h ^ (h >> 16)
        return h < self.limit


def gru(
    gi: Float[Tensor, "row gates"],
    gh: Float[Tensor, "row gates"],
    h: Float[Tensor, "row hidden"],
    out: Float[Tensor, "row hidden"],
    kept: Float[Tensor, "row gates"],
) -> None:
    """One GRU cell after its two products; `kept` are the gates r, z and the candidate, for the way back."""
    found = library()
    if found is not None and fits(gi, gh, h):
        found.heed_gru(gi.data_ptr(), gh.data_ptr(), h.data_ptr(), out.data_ptr(), kept.data_ptr(), *h.shape)
        return
    ir, iz, ic = gi.chunk(3, dim=-1)
    hr, hz, hc = gh.chunk(3, dim=-1)
    r, z = torch.sigmoid(ir + hr), torch.sigmoid(iz + hz)
    c = torch.tanh(ic + r * hc)
    torch.cat([r, z, c], dim=-1, out=kept)
    torch.lerp(c, h, z, out=out)


def gru_back(
    kept: Float[Tensor, "row gates"],
    hn: Float[Tensor, "row hidden"],
    h: Float[Tensor, "row hidden"],
    g: Float[Tensor, "row hidden"],
    dgi: Float[Tensor, "row gates"],
    dgh: Float[Tensor, "row gates"],
    dh: Float[Tensor, "row hidden"],
) -> None:
    """The way back through `gru`: `g` reaches its output; `hn` is the last third of its `gh`.

    `dgh` may take the place of `kept`.
    """
    found = library()
    if found is not None and fits(kept, h, g):
        found.heed_gru_back(
            kept.data_ptr(), hn.data_ptr(), hn.stride(0), h.data_ptr(), g.data_ptr(),
            dgi.data_ptr(), dgh.data_ptr(), dh.data_ptr(), *h.shape,
        )  # fmt: skip
        return
    r, z, c = kept.chunk(3, dim=-1)
    dc = g * (1 - z) * (1 - c * c)
    dz = g * (h - c) * z * (1 - z)
    dr = dc * hn * r * (1 - r)
    torch.mul(g, z, out=dh)
    torch.cat([dr, dz, dc], dim=-1, out=dgi)
    torch.cat([dr, dz, dc * r], dim=-1, out=dgh)


def lstm(
    gates: Float[Tensor, "row gates"],
    c: Float[Tensor, "row hidden"],
    out: Float[Tensor, "row hidden"],
    cell: Float[Tensor, "row hidden"],
    shown: Float[Tensor, "row hidden"],
) -> None:
    """One LSTM cell after its products, whose sum `gates` is; they are opened in place.

    `shown` is the tanh of the new `cell`, for the way back.
    """
    found = library()
    if found is not None and fits(gates, c):
        pointers = (t.data_ptr() for t in (gates, c, out, cell, shown))
        found.heed_lstm(*pointers, *c.shape)
        return
    i, f, g, o = gates.chunk(4, dim=-1)
    for gate in (i, f, o):
        gate.sigmoid_()
    g.tanh_()
    torch.add(f * c, i * g, out=cell)
    torch.tanh(cell, out=shown)
    torch.mul(o, shown, out=out)


def lstm_back(
    gates: Float[Tensor, "row gates"],
    c: Float[Tensor, "row hidden"],
    shown: Float[Tensor, "row hidden"],
    dh: Float[Tensor, "row hidden"],
    dc: Float[Tensor, "row hidden"],
) -> None:
    """The way back through `lstm`, in place: gates become their gradients, `dc` that of the old cell."""
    found = library()
    if found is not None and fits(gates, c, dh):
        pointers = (t.data_ptr() for t in (gates, c, shown, dh, dc))
        found.heed_lstm_back(*pointers, *c.shape)
        return
    i, f, g, o = (gate.clone() for gate in gates.chunk(4, dim=-1))
    d = dc + dh * o * (1 - shown * shown)
    parts = [d * g * i * (1 - i), d * c * f * (1 - f), d * i * (1 - g * g), dh * shown * o * (1 - o)]
    torch.cat(parts, dim=-1, out=gates)
    torch.mul(d, f, out=dc)


def additive(
    query: Float[Tensor, "row hidden"],
    keys: Float[Tensor, "batch key hidden"],
    v: Float[Tensor, "hidden"],
    keep: Bool[Tensor, "batch key"],
    values: Float[Tensor, "batch key width"],
    weights: Float[Tensor, "row key"],
    context: Float[Tensor, "row width"],
) -> None:
    """`softmax(v' tanh(q + k_i))` over what may be read, and what is read; a sentence's rows side by side."""
    found = library()
    beam = len(query) // len(keys) if len(keys) else 1
    if found is not None and fits(query, keys, values):
        sentence = torch.arange(len(keys)).repeat_interleave(beam) if beam > 1 else None
        found.heed_additive(
            query.data_ptr(), keys.data_ptr(), v.data_ptr(), keep.data_ptr(), values.data_ptr(),
            weights.data_ptr(), context.data_ptr(), len(query),
            None if sentence is None else sentence.data_ptr(), keys.shape[1], keys.shape[2], values.shape[2],
        )  # fmt: skip
        return
    asked = query.view(len(keys), beam, 1, -1)
    scores = (torch.tanh(asked + keys[:, None]) @ v).masked_fill(~keep[:, None], float("-inf"))
    soft = scores.softmax(dim=-1).nan_to_num(0.0)
    weights.copy_(soft.view(weights.shape))
    context.copy_((soft @ values).view(context.shape))


def dots(
    query: Float[Tensor, "batch query head inner"],
    keys: Float[Tensor, "batch key head inner"],
    values: Float[Tensor, "batch key head width"],
    allowed: Bool[Tensor, "batch query key"],
    scale: float,
) -> tuple[Float[Tensor, "batch query head width"], Float[Tensor, "batch query head key"]]:
    """`softmax(scale q . k_i)` over what may be read, and what is read: the context, and the weights."""
    found = library()
    batch, queries, heads, inner = query.shape
    count, width = keys.shape[1], values.shape[-1]
    if found is not None and fits(query, keys, values):
        query, keys, values, allowed = (t.contiguous() for t in (query, keys, values, allowed))
        weights = query.new_empty(batch, queries, heads, count)
        context = query.new_empty(batch, queries, heads, width)
        found.heed_dots(
            query.data_ptr(), keys.data_ptr(), values.data_ptr(), allowed.data_ptr(), scale,
            weights.data_ptr(), context.data_ptr(), batch, queries, heads, count, inner, width,
        )  # fmt: skip
        return context, weights
    scores = scale * torch.einsum("bqhd,bkhd->bqhk", query, keys)
    weights = scores.masked_fill(~allowed[:, :, None], float("-inf")).softmax(dim=-1).nan_to_num(0.0)
    return torch.einsum("bqhk,bkhd->bqhd", weights, values), weights


def additive_back(  # noqa: PLR0913  # what went in, what came out, and where gradients go
    query: Float[Tensor, "batch hidden"],
    keys: Float[Tensor, "batch key hidden"],
    v: Float[Tensor, "hidden"],
    keep: Bool[Tensor, "batch key"],
    values: Float[Tensor, "batch key width"],
    weights: Float[Tensor, "batch key"],
    dcontext: Float[Tensor, "batch width"],
    dquery: Float[Tensor, "batch hidden"],
    dkeys: Float[Tensor, "batch key hidden"],
    dvalues: Float[Tensor, "batch key width"],
    dv: Float[Tensor, "batch hidden"],
    dweights: Float[Tensor, "batch key"] | None = None,
) -> None:
    """The way back through `additive`, one row a sentence; `dkeys`, `dvalues` and `dv` are added to.

    `dweights`: what reaches the weights themselves.
    """
    found = library()
    if found is not None and fits(query, keys, values, dcontext):
        found.heed_additive_back(
            query.data_ptr(), keys.data_ptr(), v.data_ptr(), keep.data_ptr(), values.data_ptr(),
            weights.data_ptr(), dcontext.data_ptr(), None if dweights is None else dweights.data_ptr(),
            dquery.data_ptr(), dkeys.data_ptr(), dvalues.data_ptr(), dv.data_ptr(), *keys.shape,
            values.shape[2],
        )  # fmt: skip
        return
    slopes = torch.einsum("bd,bkd->bk", dcontext, values)
    slopes = slopes if dweights is None else slopes + dweights
    g = weights * (slopes - (weights * slopes).sum(dim=1, keepdim=True)) * keep
    dvalues += weights[..., None] * dcontext[:, None]
    t = torch.tanh(query[:, None] + keys)
    slope = g[..., None] * v * (1 - t * t)
    dquery.copy_(slope.sum(dim=1))
    dkeys += slope
    dv += (g[..., None] * t).sum(dim=1)


class Int8:
    """A matrix in bytes, a scale for each row: `x W' + b` with x quantised row by row as it comes.

    Symmetric: an entry is its row's largest magnitude over 127, times a whole number. Without the kernels
    the very same whole numbers are multiplied in float32.
    """

    def __init__(self, weight: Float[Tensor, "out in"], bias: Float[Tensor, "out"] | None = None) -> None:
        weight = weight.detach().float()
        self.shape = weight.shape
        self.bias = None if bias is None else bias.detach().float().contiguous()
        self.steps = (weight.abs().amax(dim=1) / 127.0).clamp_min(1e-12)
        whole = (weight / self.steps[:, None]).round().to(torch.int8).contiguous()
        self.sums = whole.to(torch.int32).sum(dim=1, dtype=torch.int32)
        found = library()
        self.matrix: Matrix | None = None
        self.whole: Tensor | None = None
        if found is None:
            self.whole = whole.float()
            return
        n, k = whole.shape
        self.packed = torch.empty(-(-n // 16) * -(-k // 4) * 64, dtype=torch.int8)
        found.heed_pack(whole.data_ptr(), n, k, self.packed.data_ptr())
        parts = (self.packed, self.sums, self.steps)
        bias_at = None if self.bias is None else self.bias.data_ptr()
        self.matrix = Matrix(*(t.data_ptr() for t in parts), bias_at, n, k)
        self.at = ctypes.addressof(self.matrix)

    def __call__(self, x: Float[Tensor, "row in"], out: Tensor | None = None) -> Float[Tensor, "row out"]:
        (n, k), rows = self.shape, len(x)
        y = x.new_empty(rows, n) if out is None else out
        found = library()
        if found is not None and self.matrix is not None:
            x = x.contiguous()
            room = torch.empty(rows * (k + 8), dtype=torch.uint8)
            found.heed_int8(self.at, x.data_ptr(), y.data_ptr(), room.data_ptr(), rows)
            return y
        assert self.whole is not None
        step = x.abs().amax(dim=1, keepdim=True) / 127.0
        step = torch.where(step > 0, step, 1.0)
        torch.mm((x * (1.0 / step)).round(), self.whole.T, out=y)
        y.mul_(step).mul_(self.steps)
        return y if self.bias is None else y.add_(self.bias)


def gru_read(
    gi: Float[Tensor, "word gates"], sizes: Sequence[int], hidden: Int8, reverse: bool
) -> Float[Tensor, "word hidden"] | None:
    """All states of a GRU over packed sentences (`gru_packed.py`) as one call; None without kernels."""
    found = library()
    if found is None or hidden.matrix is None or not fits(gi):
        return None
    gi, n = gi.contiguous(), hidden.shape[1]
    out = gi.new_empty(len(gi), n)
    counts = torch.tensor(sizes)
    room = gi.new_empty(sizes[0] * (7 * n + n // 4 + 4))
    found.heed_gru_read(
        hidden.at, gi.data_ptr(), counts.data_ptr(), len(sizes), int(reverse), out.data_ptr(),
        room.data_ptr(), sizes[0], n,
    )  # fmt: skip
    return out


def top(
    scores: Float[Tensor, "row vocab"], best: int
) -> tuple[Float[Tensor, "row best"], Int[Tensor, "row best"]]:
    """`scores.log_softmax(-1).topk(best)`: likeliest first, ties to the first word."""
    found = library()
    if found is not None and fits(scores):
        scores = scores.contiguous()
        words = torch.empty(len(scores), best, dtype=torch.long)
        logp = scores.new_empty(len(scores), best)
        found.heed_top(scores.data_ptr(), *scores.shape, best, words.data_ptr(), logp.data_ptr())
        return logp, words
    return scores.log_softmax(dim=-1).topk(best)
