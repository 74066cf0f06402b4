"""Recommenders against plain loops, and their fast paths against single entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from heedful import kernels
from heedful.attention import Detail, Hooks
from heedful.config import ModelConfig
from heedful.config.presets import RECOMMENDERS
from heedful.data.histories import HistoryBatch, collate_histories
from heedful.models import Popularity, Recommender, build_recommender
from models import history_loops as loops

ITEMS = 23
KINDS = ["nais-prod", "nais-concat", "fism", "self-attention", "dot", "scaled-dot", "additive"]
WEIGHTS = Hooks(Detail.WEIGHTS)


def build_model(preset: str, width: int = 5, hidden: int = 7, **attention: object) -> Recommender:
    """Build a preset at small sizes, with weights large enough to matter."""
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


def make_batch() -> HistoryBatch:
    """Return histories of many lengths, with targets inside and outside; one history holds only its target."""
    rng = np.random.default_rng(5)
    histories = [rng.permutation(ITEMS)[:size] for size in (3, 17, 1, 0, 20, 16)]
    targets = [np.concatenate([history[:2], rng.integers(ITEMS, size=4)]) for history in histories]
    labels = (rng.random(sum(map(len, targets))) < 0.3).astype(np.float32)
    return collate_histories(histories, targets, labels)


def score_by_entry(model: Recommender, batch: HistoryBatch) -> Tensor:
    return torch.cat([model.score_items(*batch.entry(e)).scores for e in range(batch.entries)])


@pytest.mark.parametrize("preset", ["nais-prod", "nais-concat"])
@pytest.mark.parametrize("beta", [0.5, 0.8, 1.0])
def test_nais_follows_its_equations(preset: str, beta: float) -> None:
    model = build_model(preset, beta=beta).double()
    assert model.attention is not None
    score: Any = model.attention.score
    projection = score.both if preset == "nais-concat" else score.product
    p, q, bias = (t.tolist() for t in (model.target_embedding.weight, model.history_embedding.weight, model.bias))
    W, b, h = (t.tolist() for t in (projection.weight, projection.bias, score.h))
    batch = make_batch()
    for e in range(batch.entries):
        history, targets = batch.entry(e)
        if len(history) == 0:
            continue
        output = model.score_items(history, targets, WEIGHTS)
        weights_of_history = output.attentions["history"].weights
        assert weights_of_history is not None
        for row, item in enumerate(targets.tolist()):
            if history.tolist() == [item]:  # there is no other item to attend to
                assert output.scores.tolist()[row] == pytest.approx(bias[item], abs=1e-12)
                continue
            expected, weights = loops.nais(p, q, bias, W, b, h, beta, preset == "nais-concat", history.tolist(), item)
            assert output.scores.tolist()[row] == pytest.approx(expected, abs=1e-6)
            assert weights_of_history[0, row, 0].tolist() == pytest.approx(weights, abs=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_fism_follows_its_equation(alpha: float) -> None:
    model = build_model("fism").double()
    model.alpha = alpha
    p, q, bias = (t.tolist() for t in (model.target_embedding.weight, model.history_embedding.weight, model.bias))
    batch = make_batch()
    logits = model.logits(batch).tolist()
    scores = score_by_entry(model, batch).tolist()
    expected = [
        loops.fism(p, q, bias, alpha, history.tolist(), item)
        for history, targets in map(batch.entry, range(batch.entries))
        for item in targets.tolist()
    ]
    assert logits == pytest.approx(expected, abs=1e-6)
    assert scores == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("preset", KINDS)
@pytest.mark.parametrize("in_c", [True, False], ids=["kernels", "torch"])
def test_logits_of_a_batch_equal_scores_entry_by_entry(
    preset: str, in_c: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, batch = build_model(preset), make_batch()
    if not in_c:
        monkeypatch.setattr(kernels, "supports", lambda *_: False)
        monkeypatch.setattr("heedful.models.recommender.MAX_PAIRS", 30)  # several chunks per entry
    with torch.no_grad():
        torch.testing.assert_close(model.logits(batch), score_by_entry(model, batch), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("preset", KINDS)
@pytest.mark.parametrize("in_c", [True, False], ids=["kernels", "torch"])
def test_loss_and_gradients_equal_those_of_autograd(preset: str, in_c: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model, reference, batch = build_model(preset), build_model(preset).double(), make_batch()
    if not in_c:
        monkeypatch.setattr(kernels, "supports", lambda *_: False)
    assert batch.labels is not None
    expected = binary_cross_entropy_with_logits(
        score_by_entry(reference, batch), batch.labels.double(), reduction="sum"
    )
    expected.backward()  # type: ignore[no-untyped-call]
    loss = model.loss(batch)
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    for (name, parameter), reference_parameter in zip(model.named_parameters(), reference.parameters(), strict=True):
        assert parameter.grad is not None, name
        assert reference_parameter.grad is not None, name
        scale = max(float(reference_parameter.grad.abs().max()), 0.1)  # some gradients are 0 by softmax
        torch.testing.assert_close(parameter.grad.double() / scale, reference_parameter.grad / scale, rtol=0, atol=2e-5)


def test_the_loss_is_the_binary_cross_entropy() -> None:
    model, batch = build_model("nais-prod"), make_batch()
    assert batch.labels is not None
    scores = score_by_entry(model.double(), batch).tolist()
    expected = sum(map(loops.log_loss, scores, batch.labels.tolist()))
    assert model.float().loss(batch).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("preset", ["nais-prod", "nais-concat", "fism"])
def test_no_item_attends_to_itself(preset: str) -> None:
    model, history = build_model(preset), np.arange(9)
    batch = collate_histories([history], [history[:1]])
    before = model.logits(batch).detach(), model.score_items(*batch.entry(0)).scores.detach()
    with torch.no_grad():
        model.history_embedding.weight[0] += 10.0
        after = model.logits(batch), model.score_items(*batch.entry(0)).scores
    for old, new in zip(before, after, strict=True):
        torch.testing.assert_close(old, new, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("preset", ["nais-prod", "fism", "self-attention"])
def test_a_history_has_no_order(preset: str) -> None:
    model = build_model(preset).double()
    history, targets = torch.arange(9), torch.tensor([12, 20])
    one, other = (model.score_items(order, targets).scores for order in (history, history.flip(0)))
    torch.testing.assert_close(one, other)


def test_self_attention_is_recorded_at_its_own_site() -> None:
    model = build_model("self-attention")
    output = model.score_items(torch.arange(4), torch.tensor([9, 11]), WEIGHTS)
    shapes = {
        site: attention.weights.shape for site, attention in output.attentions.items() if attention.weights is not None
    }
    assert shapes == {"enc.0.self": (1, 4, 1, 4), "history": (1, 2, 1, 4)}
    assert [site.id for site in model.sites] == ["enc.0.self", "history"]


@pytest.mark.parametrize("name", ["target_embedding.weight", "attention.score.product.weight", "attention.score.h"])
def test_nan_weights_give_nan(name: str) -> None:
    model, batch = build_model("nais-prod"), make_batch()
    with torch.no_grad():
        model.get_parameter(name).fill_(float("nan"))
        assert bool(model.logits(batch).isnan().any())
    assert bool(model.loss(batch).isnan())


def test_popularity_is_the_number_of_interactions() -> None:
    model = Popularity(torch.tensor([5.0, 0.0, 2.0]))
    batch = collate_histories([np.array([0])], [np.array([2, 0])])
    assert model.logits(batch).tolist() == [2.0, 5.0]
    assert list(model.parameters()) == []
