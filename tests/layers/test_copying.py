"""The copy mechanism: its mixture by plain loops, its loss, and words that only copying can generate."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import small_models
from heedful.attention import Detail, Hooks
from heedful.config import DecodingOptions, load_recipe
from heedful.data.batch import EncodedPair, collate
from heedful.data.tokenizer import END
from heedful.decoding import search
from heedful.errors import ConfigError
from heedful.layers.copying import pointer_cross_entropy
from heedful.layers.state import PointerOutput
from heedful.models import build_seq2seq


def mixture_by_loops(logits: Tensor, weights: Tensor, gate: float, ids: Tensor) -> list[float]:
    """Return p of each word: generated with probability 1 - g, copied from a position that holds it with g."""
    g = 1 / (1 + math.exp(-gate))
    powers = [math.exp(float(logit)) for logit in logits]
    p = [(1 - g) * power / sum(powers) for power in powers]
    for weight, word in zip(weights.tolist(), ids.tolist(), strict=True):
        p[word] += g * weight
    return p


def make_pointer() -> tuple[Tensor, PointerOutput]:
    torch.manual_seed(3)
    logits = torch.randn(2, 3, small_models.VOCABULARY, dtype=torch.float64)
    weights = torch.rand(2, 3, 4, dtype=torch.float64).softmax(dim=-1)
    gate = torch.randn(2, 3, dtype=torch.float64)
    return logits, PointerOutput(weights, gate, torch.tensor([[4, 5, 4, 3], [6, 7, 8, 3]]))


def test_the_mixture_is_that_of_the_paper() -> None:
    logits, pointer = make_pointer()
    mixture = pointer.mix(logits)
    for row in range(2):
        for step in range(3):
            gate = float(pointer.gate[row, step])
            expected = mixture_by_loops(logits[row, step], pointer.weights[row, step], gate, pointer.ids[row])
            assert mixture[row, step].exp().tolist() == pytest.approx(expected, abs=1e-12)
            assert sum(expected) == pytest.approx(1)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_that_of_the_mixture(smoothing: float) -> None:
    logits, pointer = make_pointer()
    targets = torch.tensor([[4, 9, 3], [6, 5, 3]])
    ids = pointer.ids[:, None].expand_as(pointer.weights).flatten(0, 1)
    parts = (logits.flatten(0, 1), pointer.weights.flatten(0, 1), pointer.gate.flatten())
    total, nll = pointer_cross_entropy(*parts, ids, targets.flatten(), smoothing)
    logp = pointer.mix(logits).gather(-1, targets[..., None]).flatten()
    assert torch.allclose(nll, -logp)
    smooth = -logits.log_softmax(-1).mean(-1).sum()
    assert float(total) == pytest.approx(float(-(1 - smoothing) * logp.sum() + smoothing * smooth))


def test_gradients_reach_the_pointer_and_its_gate() -> None:
    model = small_models.build_model(small_models.small_preset("rnnsearch", copying=True)).train()
    batch = small_models.small_batch()
    assert batch.target is not None
    output = model(batch)
    targets = batch.target.ids[:, 1:]
    (-output.logits.log_softmax(-1).gather(-1, targets[..., None]).sum()).backward()  # type: ignore[no-untyped-call]
    assert model.copying is not None
    for name, weight in model.copying.named_parameters():
        assert weight.grad is not None, name
        assert float(weight.grad.abs().max()) > 0, name


def test_words_never_seen_as_targets_are_copied() -> None:
    """The test sources consist of words that training never saw: only a pointer can generate them."""
    torch.manual_seed(1)
    config = small_models.small_preset("bigru-gru", copying=True, embedding=24, encoder__hidden=16, decoder__hidden=32)
    model = build_seq2seq(config, 64, 64)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)

    def sentences(low: int, high: int, count: int) -> list[list[int]]:
        return torch.randint(low, high, (count, 4)).tolist()

    for _ in range(250):
        batch = collate([EncodedPair([*s, END], [*s, END]) for s in sentences(4, 54, 32)])
        assert batch.target is not None
        targets = batch.target.ids[:, 1:]
        loss = nn.functional.cross_entropy(model(batch).logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    unseen = sentences(54, 64, 20)
    batch = collate([EncodedPair([*s, END], [END]) for s in unseen])
    model.eval()
    for options in (DecodingOptions(max_length=8), DecodingOptions(method="beam", beam=3, max_length=8)):
        hypotheses = search(model, batch, options, Hooks(Detail.WEIGHTS)).hypotheses
        correct = sum(best[0].tokens[0] == s[0] for best, s in zip(hypotheses, unseen, strict=True))
        assert correct >= 15
        assert hypotheses[0][0].attentions["copy"].sum(-1) == pytest.approx(1, abs=1e-5)


def test_copying_needs_a_shared_vocabulary(tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text("[data.world]\n[model]\ncopying = true\n")
    with pytest.raises(ConfigError, match=r"copying = true: needs tokenizer.shared = true"):
        load_recipe(recipe)
