"""Recommenders against plain loops, fast ways against the plain one, and what no item may know."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from heedful import native
from heedful.attention import Detail, Watch
from heedful.config import ModelConfig
from heedful.config.presets import RECOMMENDERS
from heedful.data.histories import HistoryBatch, batch_of
from heedful.models import Popularity, Recommender, build_recommender
from models import history_loops as loops

ITEMS = 23
KINDS = ["nais-prod", "nais-concat", "fism", "self-attention", "dot", "scaled-dot", "additive"]
WEIGHTS = Watch(Detail.WEIGHTS)


def built(preset: str, width: int = 5, hidden: int = 7, **attention: object) -> Recommender:
    """A preset at small sizes with weights large enough to matter."""
    if preset not in RECOMMENDERS:  # another score
        preset, attention = "nais-prod", {"score": preset, **attention}
    tree: dict[str, Any] = {"preset": preset, **RECOMMENDERS[preset], "embedding": width, "dropout": 0.0}
    tree["attention"] = {**tree.get("attention", {}), "hidden": hidden, **attention}
    if tree["encoder"]["kind"] == "transformer":
        tree["encoder"] = {**tree["encoder"], "hidden": width, "heads": 1, "feedforward": 6}
    torch.manual_seed(3)
    model = build_recommender(ModelConfig.model_validate(tree), torch.ones(ITEMS))
    assert isinstance(model, Recommender)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.6)
    return model.eval()


def batch() -> HistoryBatch:
    """Histories of many lengths; targets of the history and from outside; one that only knows its target."""
    rng = np.random.default_rng(5)
    histories = [rng.permutation(ITEMS)[:size] for size in (3, 17, 1, 0, 20, 16)]
    targets = [np.concatenate([history[:2], rng.integers(ITEMS, size=4)]) for history in histories]
    labels = (rng.random(sum(map(len, targets))) < 0.3).astype(np.float32)
    return batch_of(histories, targets, labels)


def plainly(model: Recommender, given: HistoryBatch) -> Tensor:
    return torch.cat([model.judge(*given.entry(at)).scores for at in range(given.entries)])


@pytest.mark.parametrize("preset", ["nais-prod", "nais-concat"])
@pytest.mark.parametrize("beta", [0.5, 0.8, 1.0])
def test_nais_gives_what_the_equations_give(preset: str, beta: float) -> None:
    model = built(preset, beta=beta).double()
    assert model.attention is not None
    score: Any = model.attention.score
    inner = score.both if preset == "nais-concat" else score.product
    p, q, bias = (t.tolist() for t in (model.target.weight, model.taken.weight, model.bias))
    W, b, h = (t.tolist() for t in (inner.weight, inner.bias, score.h))
    given = batch()
    for at in range(given.entries):
        history, targets = given.entry(at)
        if len(history) == 0:
            continue
        judged = model.judge(history, targets, WEIGHTS)
        looked = judged.looks["history"].weights
        assert looked is not None
        for row, item in enumerate(targets.tolist()):
            if history.tolist() == [item]:  # nothing else is there to read
                assert judged.scores.tolist()[row] == pytest.approx(bias[item], abs=1e-12)
                continue
            wanted, weights = loops.nais(
                p, q, bias, W, b, h, beta, preset == "nais-concat", history.tolist(), item
            )
            assert judged.scores.tolist()[row] == pytest.approx(wanted, abs=1e-6)
            assert looked[0, row, 0].tolist() == pytest.approx(weights, abs=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_fism_gives_what_the_equation_gives(alpha: float) -> None:
    model = built("fism").double()
    model.alpha = alpha
    p, q, bias = (t.tolist() for t in (model.target.weight, model.taken.weight, model.bias))
    given = batch()
    fast = model.logits(given).tolist()
    slow = plainly(model, given).tolist()
    wanted = [
        loops.fism(p, q, bias, alpha, history.tolist(), item)
        for history, targets in map(given.entry, range(given.entries))
        for item in targets.tolist()
    ]
    assert fast == pytest.approx(wanted, abs=1e-6)
    assert slow == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("preset", KINDS)
@pytest.mark.parametrize("kernels", [True, False], ids=["kernels", "torch"])
def test_all_at_once_is_one_by_one(preset: str, kernels: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model, given = built(preset), batch()
    if not kernels:
        monkeypatch.setattr(native, "fits", lambda *_: False)
        monkeypatch.setattr("heedful.models.recommender.PAIRS", 30)  # several pieces an entry
    with torch.no_grad():
        torch.testing.assert_close(model.logits(given), plainly(model, given), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("preset", KINDS)
@pytest.mark.parametrize("kernels", [True, False], ids=["kernels", "torch"])
def test_the_loss_and_its_slopes_are_the_plain_ones(
    preset: str, kernels: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, exact, given = built(preset), built(preset).double(), batch()
    if not kernels:
        monkeypatch.setattr(native, "fits", lambda *_: False)
    assert given.labels is not None
    wanted = binary_cross_entropy_with_logits(plainly(exact, given), given.labels.double(), reduction="sum")
    wanted.backward()  # type: ignore[no-untyped-call]
    found = model.loss(given)
    found.backward()  # type: ignore[no-untyped-call]
    assert found.item() == pytest.approx(wanted.item(), rel=1e-5)
    for (name, mine), theirs in zip(model.named_parameters(), exact.parameters(), strict=True):
        assert mine.grad is not None, name
        assert theirs.grad is not None, name
        scale = max(float(theirs.grad.abs().max()), 0.1)  # softmax makes some of them 0
        torch.testing.assert_close(mine.grad.double() / scale, theirs.grad / scale, rtol=0, atol=2e-5)


def test_the_loss_is_the_log_loss() -> None:
    model, given = built("nais-prod"), batch()
    assert given.labels is not None
    scores = plainly(model.double(), given).tolist()
    wanted = sum(map(loops.log_loss, scores, given.labels.tolist()))
    assert model.float().loss(given).item() == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("preset", ["nais-prod", "nais-concat", "fism"])
def test_no_item_reads_itself(preset: str) -> None:
    model, history = built(preset), np.arange(9)
    given = batch_of([history], [history[:1]])
    before = model.logits(given).detach(), model.judge(*given.entry(0)).scores.detach()
    with torch.no_grad():
        model.taken.weight[0] += 10.0
        after = model.logits(given), model.judge(*given.entry(0)).scores
    for old, new in zip(before, after, strict=True):
        torch.testing.assert_close(old, new, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("preset", ["nais-prod", "fism", "self-attention"])
def test_a_history_has_no_order(preset: str) -> None:
    model = built(preset).double()
    history, targets = torch.arange(9), torch.tensor([12, 20])
    one, other = (model.judge(order, targets).scores for order in (history, history.flip(0)))
    torch.testing.assert_close(one, other)


def test_self_attention_is_seen_at_its_own_site() -> None:
    model = built("self-attention")
    judged = model.judge(torch.arange(4), torch.tensor([9, 11]), WEIGHTS)
    shapes = {site: look.weights.shape for site, look in judged.looks.items() if look.weights is not None}
    assert shapes == {"enc.0.self": (1, 4, 1, 4), "history": (1, 2, 1, 4)}
    assert [site.id for site in model.sites] == ["enc.0.self", "history"]


@pytest.mark.parametrize("what", ["target.weight", "attention.score.product.weight", "attention.score.h"])
def test_numbers_that_are_none_are_not_hidden(what: str) -> None:
    model, given = built("nais-prod"), batch()
    with torch.no_grad():
        model.get_parameter(what).fill_(float("nan"))
        assert bool(model.logits(given).isnan().any())
    assert bool(model.loss(given).isnan())


def test_popularity_counts() -> None:
    model = Popularity(torch.tensor([5.0, 0.0, 2.0]))
    given = batch_of([np.array([0])], [np.array([2, 0])])
    assert model.logits(given).tolist() == [2.0, 5.0]
    assert list(model.parameters()) == []
