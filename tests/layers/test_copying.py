"""Copying: the mixture by plain loops, its loss, and words that only copying can write."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import small
from heedful.attention import Detail, Watch
from heedful.config import load_recipe
from heedful.data.batch import Encoded, collate
from heedful.data.tokenizer import END
from heedful.decoding import Beam, Greedy, search
from heedful.errors import ConfigError
from heedful.layers.copying import copy_entropy
from heedful.layers.state import Copied
from heedful.models import build


def by_loops(scores: Tensor, weights: Tensor, gate: float, ids: Tensor) -> list[float]:
    """p of each word: made with 1 - g, or taken from a position that holds it."""
    g = 1 / (1 + math.exp(-gate))
    powers = [math.exp(float(score)) for score in scores]
    p = [(1 - g) * power / sum(powers) for power in powers]
    for weight, word in zip(weights.tolist(), ids.tolist(), strict=True):
        p[word] += g * weight
    return p


def some() -> tuple[Tensor, Copied]:
    torch.manual_seed(3)
    scores = torch.randn(2, 3, small.VOCABULARY, dtype=torch.float64)
    weights = torch.rand(2, 3, 4, dtype=torch.float64).softmax(dim=-1)
    gate = torch.randn(2, 3, dtype=torch.float64)
    return scores, Copied(weights, gate, torch.tensor([[4, 5, 4, 3], [6, 7, 8, 3]]))


def test_the_mixture_is_the_papers() -> None:
    scores, copied = some()
    mixed = copied.mixed(scores)
    for row in range(2):
        for step in range(3):
            gate = float(copied.gate[row, step])
            wanted = by_loops(scores[row, step], copied.weights[row, step], gate, copied.ids[row])
            assert mixed[row, step].exp().tolist() == pytest.approx(wanted, abs=1e-12)
            assert sum(wanted) == pytest.approx(1)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_that_of_the_mixture(smoothing: float) -> None:
    scores, copied = some()
    gold = torch.tensor([[4, 9, 3], [6, 5, 3]])
    ids = copied.ids[:, None].expand_as(copied.weights).flatten(0, 1)
    parts = (scores.flatten(0, 1), copied.weights.flatten(0, 1), copied.gate.flatten())
    total, plain = copy_entropy(*parts, ids, gold.flatten(), smoothing)
    logp = copied.mixed(scores).gather(-1, gold[..., None]).flatten()
    assert torch.allclose(plain, -logp)
    smooth = -scores.log_softmax(-1).mean(-1).sum()
    assert float(total) == pytest.approx(float(-(1 - smoothing) * logp.sum() + smoothing * smooth))


def test_gradients_reach_the_pointer_and_its_gate() -> None:
    model = small.built(small.preset("rnnsearch", copying=True)).train()
    batch = small.batch()
    assert batch.target is not None
    stepped = model.score(batch)
    gold = batch.target.ids[:, 1:]
    (-stepped.logits.log_softmax(-1).gather(-1, gold[..., None]).sum()).backward()  # type: ignore[no-untyped-call]
    assert model.copying is not None
    for name, weight in model.copying.named_parameters():
        assert weight.grad is not None, name
        assert float(weight.grad.abs().max()) > 0, name


def test_an_unknown_spelling_is_copied() -> None:
    """Sources of words that training never saw as targets: only a pointer can write them."""
    torch.manual_seed(1)
    config = small.preset("bigru-gru", copying=True, embedding=24, encoder__hidden=16, decoder__hidden=32)
    model = build(config, 64, 64)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)

    def sentences(low: int, high: int, count: int) -> list[list[int]]:
        return torch.randint(low, high, (count, 4)).tolist()

    for _ in range(250):
        batch = collate([Encoded([*s, END], [*s, END]) for s in sentences(4, 54, 32)])
        assert batch.target is not None
        gold = batch.target.ids[:, 1:]
        loss = nn.functional.cross_entropy(model.score(batch).logits.flatten(0, 1), gold.flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    unseen = sentences(54, 64, 20)
    batch = collate([Encoded([*s, END], [END]) for s in unseen])
    model.eval()
    for how in (Greedy(8), Beam(3, max_length=8)):
        found = search(model, batch, how, Watch(Detail.WEIGHTS)).best
        right = sum(best[0].tokens[0] == s[0] for best, s in zip(found, unseen, strict=True))
        assert right >= 15
        assert found[0][0].looks["copy"].sum(-1) == pytest.approx(1, abs=1e-5)


def test_two_vocabularies_cannot_be_copied_between(tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text("[data.world]\n[model]\ncopying = true\n")
    with pytest.raises(ConfigError, match=r"copying = true: needs tokenizer.shared = true"):
        load_recipe(recipe)
