"""The C kernels, in every build, against the same thing said in torch."""

from __future__ import annotations

import ctypes

import pytest
import torch
from torch import Tensor

from heedful import native
from heedful.layers.entropy import linear_entropy
from heedful.layers.gru_packed import run
from heedful.layers.readout import Output, TwoStepOutput
from heedful.native import kernels, loader

LEVELS = [level for level in (0, 3, 4) if (loader.HERE / f"kernels-{level}.so").is_file()]


def able(level: int) -> bool:
    return level <= int(ctypes.CDLL(str(loader.HERE / "kernels-0.so")).heed_level())


@pytest.fixture(params=LEVELS, autouse=True)
def build(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each build of the kernels that this processor can run."""
    assert native.library() is not None
    if not able(request.param):
        pytest.skip("this processor cannot run it")
    found = ctypes.CDLL(str(loader.HERE / f"kernels-{request.param}.so"))
    for name, types in loader.SIGNATURES.items():
        getattr(found, name).argtypes = types
    monkeypatch.setattr(kernels, "library", lambda: found)
    torch.manual_seed(0)


def in_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "library", lambda: None)


def close(found: Tensor, wanted: Tensor, atol: float = 3e-6) -> None:
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=atol)


def test_the_kernels_are_built_where_there_is_a_compiler() -> None:
    assert 0 in LEVELS


@pytest.mark.parametrize("size", [(1, 1), (3, 17), (40, 1003), (2, 8000)])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_entropy(size: tuple[int, int], smoothing: float, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = 5 * torch.randn(size)
    gold = torch.randint(size[1], (size[0],))
    mine, theirs = scores.clone(), scores.clone()
    found = kernels.entropy(mine, gold, smoothing)
    in_torch(monkeypatch)
    wanted = kernels.entropy(theirs, gold, smoothing)
    close(found[0], wanted[0], 1e-5)
    close(found[1], wanted[1], 1e-5)
    close(mine, theirs)
    scores.requires_grad_()
    loss = torch.nn.functional.cross_entropy(scores, gold, label_smoothing=smoothing, reduction="sum")
    loss.backward()  # type: ignore[no-untyped-call]
    close(found[0].sum(), loss.detach(), 1e-4)
    assert scores.grad is not None
    close(mine, scores.grad)


@pytest.mark.parametrize("size", [(1, 1), (3, 17), (40, 1003), (2, 8000)])
@pytest.mark.parametrize(("smoothing", "price"), [(0.0, 1.0), (0.1, 5.0)])
def test_two_readings(
    size: tuple[int, int], smoothing: float, price: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = 3 * torch.randn(2, *size)
    gold = torch.randint(size[1], (size[0],))
    mine, theirs = scores.clone(), scores.clone()
    found = kernels.agreed(mine[0], mine[1], gold, smoothing, price)
    in_torch(monkeypatch)
    wanted = kernels.agreed(theirs[0], theirs[1], gold, smoothing, price)
    close(found[0], wanted[0], 1e-4)
    close(found[1], wanted[1], 1e-5)
    close(mine, theirs, 5e-5)  # of numbers up to 5


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_two_readings_do_not_hide_what_is_not_finite(value: float) -> None:
    scores = torch.randn(2, 3, 50)
    scores[1, 1, 20] = value
    loss, _ = kernels.agreed(scores[0], scores[1], torch.tensor([1, 2, 3]), 0.1, 5.0)
    assert loss.isnan().tolist() == [False, True, False]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_entropy_does_not_hide_what_is_not_finite(value: float) -> None:
    scores = torch.randn(3, 50)
    scores[1, 20] = value
    loss, _ = kernels.entropy(scores, torch.tensor([1, 2, 3]), 0.1)
    assert loss.isnan().tolist() == [False, True, False]


def test_words_that_cannot_be_said_are_no_trouble() -> None:
    scores = torch.randn(2, 50)
    scores[:, :10] = float("-inf")
    _, plain = kernels.entropy(scores.clone(), torch.tensor([20, 30]), 0.0)
    close(plain, torch.nn.functional.cross_entropy(scores, torch.tensor([20, 30]), reduction="none"))


@pytest.mark.parametrize("count", [1, 15, 4099, 70_001])
def test_dropout_keeps_the_same_as_in_torch(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(count)
    chance = kernels.Chance(0.3, 4_000_000_123)
    found = chance.apply(x)
    in_torch(monkeypatch)
    close(found, chance.apply(x))


def test_dropout_keeps_the_right_share_and_seeds_differ() -> None:
    x = torch.ones(200_000)
    for p in (0.1, 0.5, 0.9):
        one, other = (kernels.Chance(p, seed).apply(x) for seed in (1, 2))
        assert abs(float((one != 0).float().mean()) - (1 - p)) < 0.005
        assert abs(float(one.mean()) - 1) < 0.02
        both = float(((one != 0) & (other != 0)).float().mean())
        assert abs(both - (1 - p) ** 2) < 0.006, "independent"
        neighbours = float(((one[1:] != 0) & (one[:-1] != 0)).float().mean())
        assert abs(neighbours - (1 - p) ** 2) < 0.006, "independent"


def test_dropout_leads_gradients_back_where_it_let_numbers_through() -> None:
    x = torch.randn(50, 40, requires_grad=True)
    y = native.dropout(x, 0.4, training=True)
    y.backward(torch.full_like(y, 3.0))  # type: ignore[no-untyped-call]
    assert x.grad is not None
    close(x.grad, torch.where(y != 0, 3.0 / 0.6, 0.0))
    assert native.dropout(x, 0.4, training=False) is x


@pytest.mark.parametrize("size", [(1, 1), (7, 13), (100, 512)])
def test_lstm_forth_and_back(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    rows, hidden = size
    given = 3 * torch.randn(rows, 4 * hidden)
    c, dh, dc = torch.randn(3, rows, hidden)

    def run() -> list[Tensor]:
        gates, after = given.clone(), dc.clone()
        out, cell, shown = torch.empty(3, rows, hidden)
        kernels.lstm(gates, c, out, cell, shown)
        kernels.lstm_back(gates, c, shown, dh, after)
        return [out, cell, shown, gates, after]

    found = run()
    in_torch(monkeypatch)
    for mine, theirs in zip(found, run(), strict=True):
        close(mine, theirs, 1e-5)
    x, old = given.clone().requires_grad_(), c.clone().requires_grad_()
    i, f, g, o = x.chunk(4, dim=-1)
    cell = f.sigmoid() * old + i.sigmoid() * g.tanh()
    out = o.sigmoid() * cell.tanh()
    (out * dh + cell * dc).sum().backward()
    for mine, theirs in zip(found, (out, cell, cell.tanh(), x.grad, old.grad), strict=True):
        assert theirs is not None
        close(mine, theirs.detach(), 1e-5)


@pytest.mark.parametrize("size", [(1, 1), (7, 13), (100, 512)])
def test_gru_forth_and_back(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    rows, hidden = size
    gi, gh = 3 * torch.randn(2, rows, 3 * hidden)
    h, g = torch.randn(2, rows, hidden)

    def run() -> list[Tensor]:
        out, dh = torch.empty(2, rows, hidden)
        kept, dgi, dgh = torch.empty(3, rows, 3 * hidden)
        kernels.gru(gi, gh, h, out, kept)
        kernels.gru_back(kept, gh[:, 2 * hidden :], h, g, dgi, dgh, dh)
        return [out, kept, dgi, dgh, dh]

    found = run()
    in_torch(monkeypatch)
    for mine, theirs in zip(found, run(), strict=True):
        close(mine, theirs)
    leaves = [t.clone().requires_grad_() for t in (gi, gh, h)]
    (ir, iz, ic), (hr, hz, hc) = (t.chunk(3, dim=-1) for t in leaves[:2])
    r, z = torch.sigmoid(ir + hr), torch.sigmoid(iz + hz)
    out = (1 - z) * torch.tanh(ic + r * hc) + z * leaves[2]
    slopes = torch.autograd.grad(out, leaves, g)
    close(found[0], out)
    for mine, slope in zip(found[2:], slopes, strict=True):
        close(mine, slope)


@pytest.mark.parametrize(("batch", "beam", "count"), [(1, 1, 1), (3, 1, 7), (4, 5, 9)])
def test_additive_forth(batch: int, beam: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    query, keys = torch.randn(batch * beam, 33), 3 * torch.randn(batch, count, 33)
    values, v = torch.randn(batch, count, 21), torch.randn(33)
    keep = torch.arange(count) < torch.randint(1, count + 1, (batch, 1))
    keep[0] = count == 1  # one sentence of which nothing may be read

    def run() -> list[Tensor]:
        weights, context = torch.empty(len(query), count), torch.empty(len(query), 21)
        kernels.additive(query, keys, v, keep, values, weights, context)
        return [weights, context]

    found = run()
    in_torch(monkeypatch)
    for mine, theirs in zip(found, run(), strict=True):
        close(mine, theirs)


@pytest.mark.parametrize("watched", [False, True])
def test_additive_back(watched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    batch, count, hidden, width = 4, 6, 19, 11
    query, keys = torch.randn(batch, hidden), torch.randn(batch, count, hidden)
    values, v, g = torch.randn(batch, count, width), torch.randn(hidden), torch.randn(batch, width)
    keep = torch.arange(count) < torch.tensor([[6], [1], [3], [0]])
    weights, context = torch.empty(batch, count), torch.empty(batch, width)
    kernels.additive(query, keys, v, keep, values, weights, context)
    into_w = torch.randn(batch, count) if watched else None

    def run() -> list[Tensor]:
        into = tuple(torch.ones_like(t) for t in (query, keys, values))
        into_v = torch.ones(batch, hidden)
        kernels.additive_back(
            query, keys, v, keep, values, weights, g, into[0], into[1], into[2], into_v, into_w
        )
        return [*into, into_v]

    found = run()
    in_torch(monkeypatch)
    for mine, theirs in zip(found, run(), strict=True):
        close(mine, theirs)
    leaves = [t.clone().requires_grad_() for t in (query, keys, values, v)]
    scores = torch.tanh(leaves[0][:, None] + leaves[1]) @ leaves[3]
    soft = scores.masked_fill(~keep, -1e9).softmax(-1) * keep
    out = torch.einsum("bk,bkd->bd", soft, leaves[2])
    other = (soft * into_w).sum() if into_w is not None else out.new_zeros(())
    slopes = torch.autograd.grad((out * g).sum() + other, leaves)
    close(found[0], slopes[0])
    close(found[1] - 1, slopes[1])
    close(found[2] - 1, slopes[2])
    close((found[3] - 1).sum(dim=0), slopes[3], 1e-5)


@pytest.mark.parametrize("size", [(1, 1, 1), (1, 16, 4), (5, 70, 33), (13, 129, 512)])
def test_int8_products(size: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    rows, n, k = size
    weight, bias, x = torch.randn(n, k), torch.randn(n), torch.randn(rows, k)
    x[0] = 0.0
    found = kernels.Int8(weight, bias)(x)
    in_torch(monkeypatch)
    close(found, kernels.Int8(weight, bias)(x), 1e-4)
    exact = x @ weight.T + bias
    close(found[0], exact[0])
    assert (found - exact).norm() <= 0.03 * exact.norm() + 0.1


@pytest.mark.parametrize(("vocabulary", "best"), [(1, 1), (5, 5), (64, 3), (8000, 1), (8001, 12)])
def test_the_likeliest_words(vocabulary: int, best: int) -> None:
    scores = 3 * torch.randn(9, vocabulary)
    scores[0] = 1.0  # all the same: the first come first
    logp, words = kernels.top(scores, best)
    wanted = scores.log_softmax(-1)
    assert words[0].tolist() == list(range(best))
    close(logp, wanted.gather(-1, words))
    close(logp, wanted.topk(best).values)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_output_and_its_entropy_are_what_torch_says(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heedful.layers.entropy.PIECE", 100)  # several pieces, the last not full
    output = Output(6, 23).to(dtype)
    said, gold = torch.randn(17, 6, dtype=dtype, requires_grad=True), torch.randint(23, (17,))
    leaves = [said, output.weight, output.bias]
    total, plain = linear_entropy(said, output, gold, 0.2)
    found = torch.autograd.grad(3 * total, leaves)
    logits = output(said)
    wanted = torch.nn.functional.cross_entropy(logits, gold, label_smoothing=0.2, reduction="sum")
    close(total, wanted, 1e-4)
    close(plain, torch.nn.functional.cross_entropy(logits, gold, reduction="none"), 1e-5)
    for mine, theirs in zip(found, torch.autograd.grad(3 * wanted, leaves), strict=True):
        close(mine, theirs, 1e-5)


@pytest.mark.parametrize("gold", [[0, 4, 5, 22, 9], [0, 1, 4, 2, 3], [5, 6, 7, 21, 22]])
def test_an_output_in_two_steps_is_one_distribution(gold: list[int]) -> None:
    output = TwoStepOutput(6, 23, common=5).double()
    with torch.no_grad():
        for parameter in output.parameters():
            parameter.normal_()
    said = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
    logp = output(said)
    close(logp.exp().sum(dim=-1), torch.ones(5, dtype=torch.float64), 1e-12)
    first = torch.cat(
        [said @ output.weight[:5].T + output.bias[:5], said @ output.rest.T + output.rest_bias], 1
    )
    close(logp[:, :5], first.log_softmax(-1)[:, :5], 1e-12)
    wanted = -logp.gather(-1, torch.tensor(gold)[:, None]).squeeze(-1)
    total, plain = linear_entropy(said, output, torch.tensor(gold))
    close(plain, wanted, 1e-12)
    leaves = [said, *output.parameters()]
    found = torch.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True)
    theirs = torch.autograd.grad(wanted.sum(), leaves, materialize_grads=True)
    for mine, its in zip(found, theirs, strict=True):
        close(mine, its, 1e-12)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("sizes", [[1], [1, 1, 1], [3, 3, 2, 1]])
def test_a_gru_reads_packed_sentences_as_one_call(sizes: list[int], reverse: bool) -> None:
    hidden = kernels.Int8(torch.randn(3 * 20, 20), torch.randn(60))
    gi = torch.randn(sum(sizes), 60)
    found = kernels.gru_read(gi, sizes, hidden, reverse)
    assert found is not None
    before, new = torch.empty(2, len(gi), 20)
    close(found, run(gi, sizes, hidden, reverse, before, new, torch.empty_like(gi)))


@pytest.mark.parametrize(("heads", "queries", "count"), [(1, 1, 1), (4, 3, 7), (2, 1, 9)])
def test_dots(heads: int, queries: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    query, keys = torch.randn(3, queries, heads, 16), torch.randn(3, count, heads, 16)
    values = torch.randn(3, count, heads, 11)
    allowed = torch.rand(3, queries, count) < 0.7
    allowed[0] = False  # nothing may be read
    context, weights = kernels.dots(query, keys, values, allowed, 0.3)
    in_torch(monkeypatch)
    wanted = kernels.dots(query, keys, values, allowed, 0.3)
    close(context, wanted[0])
    close(weights, wanted[1])
    assert not weights[0].any()
