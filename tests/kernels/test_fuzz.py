"""Every kernel on random shapes and numbers, in every C build, against torch.

Sizes are 0, 1, around the widths of vectors, and now and then large; numbers are ordinary, tiny, huge, infinite or NaN.
Where torch's result is finite, C's is close to it; where torch's is NaN, so is C's: no kernel hides a NaN.
`make sanitize` runs more cases, under the sanitizers (HEEDFUL_KERNEL_CASES, per kernel and build).
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from heedful import kernels
from heedful.fused.packed_gru import run_packed_gru
from heedful.kernels.alignment import ParallelIds, Prior, expected_links, likeliest_links, make_pair_table
from heedful.kernels.history_attention import (
    CONCAT,
    DOT,
    PROD,
    HistoryEntries,
    HistoryScore,
    history_logits,
    history_loss,
)
from history_reference import torch_logits

CASES = int(os.environ.get("HEEDFUL_KERNEL_CASES", "12"))
SIZES = (0, 1, 1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 64, 70)
NAN, INF = float("nan"), float("inf")


class Fuzz:
    """Random sizes and tensors of one case."""

    def __init__(self, name: str, case: int) -> None:
        self.random = random.Random(f"{name} {case}")
        torch.manual_seed(self.random.randrange(2**31))

    def size(self, least: int = 0) -> int:
        size = self.random.choice(SIZES)
        return max(least, size * 20 if self.random.random() < 0.03 else size)

    def floats(self, *shape: int, special: Sequence[float] = (NAN, INF, -INF, 1e30, 1e-42, 0.0)) -> Tensor:
        """Ordinary numbers; in a third of the tensors, some special ones among them."""
        x = torch.randn(shape)
        if x.numel() and special and self.random.random() < 0.33:
            chosen = torch.rand(shape) < self.random.choice([0.02, 0.2, 1.0])
            x[chosen] = self.random.choice(special)
        return x

    def mask(self, *shape: int) -> Tensor:
        keep = torch.rand(shape) < self.random.choice([0.0, 0.5, 0.9, 1.0])
        return keep.contiguous()


Run = Callable[[], Sequence[Tensor]]
"""Computes one case, with C or with torch; the results do not depend on what it has computed before."""


def additive_attention(fuzz: Fuzz) -> Run:
    batch, beam, count, hidden, width = fuzz.size(1), fuzz.size(1), fuzz.size(), fuzz.size(1), fuzz.size(1)
    batch, beam = min(batch, 20), min(beam, 5)
    query, keys, v = (
        fuzz.floats(batch * beam, hidden),
        fuzz.floats(batch, count, hidden),
        fuzz.floats(hidden, special=(NAN, INF)),
    )
    keep, values = fuzz.mask(batch, count), fuzz.floats(batch, count, width, special=(NAN, 1e30, 1e-42))

    def run() -> Sequence[Tensor]:
        weights, context = torch.empty(batch * beam, count), torch.empty(batch * beam, width)
        kernels.additive_attention(query, keys, v, keep, values, weights, context)
        hidden_values = (~keep[..., None] & values.isnan()).any(dim=1).repeat_interleave(beam, dim=0)
        return weights, context.masked_fill(
            hidden_values, 0.0
        )  # torch multiplies masked values with 0, which gives NaN

    return run


def additive_attention_backward(fuzz: Fuzz) -> Run:
    batch, count, hidden, width = min(fuzz.size(), 20), fuzz.size(), fuzz.size(1), fuzz.size(1)
    query, keys, v, values = (
        torch.randn(s) for s in ((batch, hidden), (batch, count, hidden), (hidden,), (batch, count, width))
    )
    keep = fuzz.mask(batch, count)
    weights = torch.randn(batch, count).softmax(dim=1) * keep
    dcontext = fuzz.floats(batch, width, special=(NAN,))
    dweights = torch.randn(batch, count) if fuzz.random.random() < 0.5 else None

    def run() -> Sequence[Tensor]:
        dquery, dkeys, dvalues, dv = map(torch.zeros_like, (query, keys, values, query))
        kernels.additive_attention_backward(
            query, keys, v, keep, values, weights, dcontext, dquery, dkeys, dvalues, dv, dweights
        )
        masked, nothing = ~keep[..., None], ~keep.any(dim=1, keepdim=True)  # 0 times NaN is NaN in torch, and 0 in C
        return (
            dquery.masked_fill(nothing, 0.0),
            dkeys.masked_fill(masked, 0.0),
            dvalues.masked_fill(masked, 0.0),
            dv.masked_fill(nothing, 0.0),
        )

    return run


def dot_attention(fuzz: Fuzz) -> Run:
    batch, queries, heads = min(fuzz.size(), 9), min(fuzz.size(), 9), fuzz.random.choice([1, 2, 4])
    count, inner, width = fuzz.size(), fuzz.size(1), fuzz.size(1)
    query, keys = fuzz.floats(batch, queries, heads, inner), fuzz.floats(batch, count, heads, inner)
    values, allowed = fuzz.floats(batch, count, heads, width, special=(1e-42,)), fuzz.mask(batch, queries, count)

    def run() -> Sequence[Tensor]:
        context, weights = kernels.dot_attention(query, keys, values, allowed, 0.5)
        return weights.transpose(1, 2), context

    return run


def gru_cell(fuzz: Fuzz) -> Run:
    rows, n, special = fuzz.size(), fuzz.size(), (NAN, 20.0, -20.0, 1e-42)
    gi, gh, h = (fuzz.floats(rows, width, special=special) for width in (3 * n, 3 * n, n))
    dout = fuzz.floats(rows, n, special=(NAN,))

    def run() -> Sequence[Tensor]:
        out, gates, dgi, dgh, dh = (torch.empty(rows, width) for width in (n, 3 * n, 3 * n, 3 * n, n))
        kernels.gru_cell(gi, gh, h, out, gates)
        kernels.gru_cell_backward(gates, gh[:, 2 * n :], h, dout, dgi, dgh, dh)
        return out, gates, dgi, dgh, dh

    return run


def lstm_cell(fuzz: Fuzz) -> Run:
    rows, n, special = fuzz.size(), fuzz.size(), (NAN, 20.0, -20.0, 1e-42)
    gates, c, dh, dc = (fuzz.floats(rows, width, special=special) for width in (4 * n, n, n, n))

    def run() -> Sequence[Tensor]:
        g, dcell = gates.clone(), dc.clone()
        out, cell, tanh_cell = torch.empty(3, rows, n)
        kernels.lstm_cell(g, c, out, cell, tanh_cell)
        activated = g.clone()
        kernels.lstm_cell_backward(g, c, tanh_cell, dh, dcell)
        return out, cell, activated, g, dcell

    return run


def cross_entropy(fuzz: Fuzz) -> Run:
    n, vocab = fuzz.size(), fuzz.size(1) * fuzz.random.choice([1, 1, 30])
    logits, targets = 3 * fuzz.floats(n, vocab, special=(NAN, INF, -INF, 100.0, -100.0)), torch.randint(vocab, (n,))
    smoothing = fuzz.random.choice([0.0, 0.1])

    def run() -> Sequence[Tensor]:
        gradient = logits.clone()
        loss, nll = kernels.cross_entropy(gradient, targets, smoothing)
        return loss, nll, gradient.masked_fill(loss.isfinite().logical_not()[:, None], 0.0)

    return run


def rdrop_cross_entropy(fuzz: Fuzz) -> Run:
    n, vocab = fuzz.size(), fuzz.size(1)
    first, second = (3 * fuzz.floats(n, vocab, special=(NAN, INF)) for _ in range(2))
    targets = torch.randint(vocab, (n,))

    def run() -> Sequence[Tensor]:
        x, y = first.clone(), second.clone()
        loss, nll = kernels.rdrop_cross_entropy(x, y, targets, 0.1, 2.0)
        wrong = loss.isfinite().logical_not()[:, None]
        return loss, nll, x.masked_fill(wrong, 0.0), y.masked_fill(wrong, 0.0)

    return run


def top_k(fuzz: Fuzz) -> Run:
    rows, vocab = fuzz.size(), fuzz.size(1) * fuzz.random.choice([1, 1, 100])
    logits, k = fuzz.floats(rows, vocab, special=(NAN, INF, -INF, 100.0)), fuzz.random.randint(1, min(vocab, 70))

    def run() -> Sequence[Tensor]:
        logp, words = kernels.top_k(logits, k)
        assert bool(((words >= 0) & (words < vocab)).all())
        assert all(len(set(row)) == k for row in words.tolist())
        return (logp,)

    return run


def dropout(fuzz: Fuzz) -> Run:
    x = fuzz.floats(fuzz.size(), fuzz.size() * 50, special=(1e30, 1e-30))
    mask = kernels.DropoutMask(fuzz.random.choice([0.01, 0.5, 0.99]), fuzz.random.randrange(2**32))
    return lambda: (mask.apply(x),)


def int8_product(fuzz: Fuzz) -> Run:
    rows, n, k = fuzz.size(), fuzz.size(1), fuzz.size(1)
    weight, bias = fuzz.floats(n, k, special=(NAN, INF, 1e-42, 0.0)), fuzz.floats(n)
    x = fuzz.floats(rows, k)
    return lambda: (kernels.Int8Product(weight, bias)(x),)


def int8_gru_sequence(fuzz: Fuzz) -> Run:
    sizes, n = sorted((min(fuzz.size(1), 70) for _ in range(min(fuzz.size(), 70))), reverse=True), fuzz.size(1)
    weight, bias = fuzz.floats(3 * n, n, special=(NAN,)) * 0.5 / n**0.5, fuzz.floats(3 * n, special=())
    gi, reverse = fuzz.floats(sum(sizes), 3 * n, special=(NAN, 50.0)), fuzz.random.random() < 0.5

    def run() -> Sequence[Tensor]:
        hidden = kernels.Int8Product(weight, bias)
        states = kernels.int8_gru_sequence(gi, sizes, hidden, reverse)
        if states is None:
            before, new = torch.empty(2, len(gi), n)
            states = run_packed_gru(gi, sizes, hidden, reverse, before, new, torch.empty_like(gi))
        return (states,)

    return run


ROUNDS_TO_BYTES = {int8_product, int8_gru_sequence}  # a sum that rounds to another byte changes a result by more


class Tolerance(NamedTuple):
    relative: float
    absolute: float


def assert_agree(actual: Tensor, expected: Tensor, tolerance: Tolerance) -> None:
    """Fail unless C's result is close where torch's is finite, and not finite where torch's is not."""
    assert actual.shape == expected.shape
    assert not (expected.isnan() & ~actual.isnan()).any(), "a NaN was hidden"
    assert not (expected.isinf() & actual.isfinite() & (actual.abs() < 1e37)).any(), "an infinity was hidden"
    actual, expected = actual[expected.isfinite()], expected[expected.isfinite()]
    scale = max(1.0, float(expected.abs().max())) if expected.numel() else 1.0
    torch.testing.assert_close(actual, expected, rtol=tolerance.relative, atol=scale * tolerance.absolute)


def word_alignment(fuzz: Fuzz) -> Run:
    sentences, n_sources, n_targets = fuzz.size(), fuzz.size(2), fuzz.size(1)
    lengths = torch.randint(fuzz.size(1) + 1, (2, sentences))
    offsets = torch.cat([torch.zeros(2, 1, dtype=torch.long), lengths.cumsum(dim=1)], dim=1)
    source = torch.randint(1, n_sources, (int(offsets[0, -1]),))
    target = torch.randint(n_targets, (int(offsets[1, -1]),))
    ids = ParallelIds(source, offsets[0].contiguous(), target, offsets[1].contiguous())
    prior, numbers = Prior(0.08, fuzz.random.choice([0.0, 4.0, 14.0])), torch.rand(n_sources * n_targets)

    def run() -> Sequence[Tensor]:
        table = make_pair_table(ids, n_sources, n_targets)
        result = expected_links(table, numbers[: len(table.sources)].clone(), prior)
        assert len(likeliest_links(table, numbers[: len(table.sources)].clone(), prior)) == len(target)
        return table.sources.float(), table.offsets.float(), result.counts.float(), torch.tensor(result[1:])

    return run


KERNELS = [
    word_alignment,
    additive_attention,
    additive_attention_backward,
    dot_attention,
    gru_cell,
    lstm_cell,
    cross_entropy,
    rdrop_cross_entropy,
    top_k,
    dropout,
    int8_product,
    int8_gru_sequence,
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
@pytest.mark.usefixtures("c_build")
def test_c_agrees_with_torch(kernel: Callable[[Fuzz], Run], use_torch: Callable[[], None]) -> None:
    runs = [kernel(Fuzz(kernel.__name__, case)) for case in range(CASES)]
    results = [run() for run in runs]
    use_torch()
    tolerance = Tolerance(1e-3, 0.05) if kernel in ROUNDS_TO_BYTES else Tolerance(1e-4, 3e-5)
    for case, (run, actual) in enumerate(zip(runs, results, strict=True)):
        for part, (from_c, from_torch) in enumerate(zip(actual, run(), strict=True)):
            try:
                assert_agree(from_c, from_torch, tolerance)
            except AssertionError as error:
                raise AssertionError(f"case {case}, result {part}: {error}") from error


def random_entries(fuzz: Fuzz) -> HistoryEntries:
    entries = min(fuzz.size(), 8)
    histories = [torch.randint(60, (fuzz.size(),)) for _ in range(entries)]
    targets = [torch.randint(60, (min(fuzz.size(), 5),)) for _ in range(entries)]
    empty = torch.empty(0, dtype=torch.long)
    offsets = [torch.tensor([0, *map(len, parts)]).cumsum(0) for parts in (histories, targets)]
    return HistoryEntries(torch.cat([empty, *histories]), offsets[0], torch.cat([empty, *targets]), offsets[1])


@pytest.mark.parametrize("kind", [PROD, CONCAT, DOT], ids=["prod", "concat", "dot"])
@pytest.mark.usefixtures("c_build")
def test_attention_over_histories_agrees_with_torch(kind: int) -> None:
    for case in range(CASES):
        fuzz = Fuzz("history", case)
        entries, width = random_entries(fuzz), fuzz.size(1)
        hidden = 0 if kind == DOT else fuzz.size(1)
        columns = 2 * width if kind == CONCAT else width
        nan = (NAN,)
        keys, queries = (fuzz.floats(len(rows), width, special=nan) for rows in (entries.items, entries.targets))
        bias, labels = fuzz.floats(len(entries.targets), special=()), torch.rand(len(entries.targets)).round()
        w, b, h = fuzz.floats(hidden, columns, special=nan), fuzz.floats(hidden), fuzz.floats(hidden, special=nan)
        score = HistoryScore(
            kind, 0.3 * w, b.nan_to_num(0, 0, 0).clamp(-2, 2), 0.3 * h, fuzz.random.choice([0.5, 1.0]), 0.2
        )
        logits = history_logits(entries, score, keys, queries, bias)
        leaves = [tensor.requires_grad_() for tensor in (keys, queries, bias)]
        loss = history_loss(entries, score, keys, queries, bias, labels)
        gradients = torch.autograd.grad(loss, leaves)
        if not len(entries.targets):
            assert not logits.numel()
            continue
        with torch.no_grad():
            expected = torch_logits(entries, score, keys, queries, bias)
        assert not (expected.isnan() & ~logits.isnan()).any(), f"case {case}: a NaN was hidden"
        if all(tensor.isfinite().all() for tensor in (keys, queries, w, h)):
            scale = max(1.0, float(expected.abs().max()))
            torch.testing.assert_close(logits, expected, rtol=1e-3, atol=1e-4 * scale, msg=f"case {case}")
            assert all(gradient.isfinite().all() for gradient in gradients), f"case {case}"


@pytest.mark.usefixtures("c_build")
def test_huge_inputs(use_torch: Callable[[], None]) -> None:
    logits, targets = torch.randn(1, 1_000_000), torch.tensor([999_999])
    hidden = kernels.Int8Product(torch.randn(3, 1), torch.randn(3))
    gi = torch.randn(100_000, 3)

    def run() -> list[Tensor]:
        words = torch.randn(2, 3_000_000, generator=torch.Generator().manual_seed(1))
        return [*kernels.cross_entropy(logits.clone(), targets, 0.1), kernels.top_k(words, 3)[0]]

    from_c = run()
    states = kernels.int8_gru_sequence(gi, [1] * len(gi), hidden, False)
    assert states is not None
    assert states.isfinite().all()
    use_torch()
    for actual, expected in zip(from_c, run(), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-3)
