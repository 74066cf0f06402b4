"""The encoder-decoder: its fast path equals its steps, and no sentence disturbs another."""

from __future__ import annotations

from itertools import product

import pytest
import torch

import small
from heedful.attention import Detail, Watch
from heedful.config.schema import PlacementName, ScoreName
from heedful.data.batch import TextBatch, collate
from heedful.models import State

VARIANTS = [
    {"score": "additive"},
    {"score": "additive", "coverage": True},
    {"score": "general", "placement": "local-p"},
    {"score": "concat", "placement": "local-m", "read_end": False},
    {"score": "location", "normaliser": "sparsemax"},
    {"score": "scaled-dot", "heads": 3},
    {"score": "dot", "placement": "hard", "generate": "argmax"},
    {"score": "additive", "placement": "uniform"},
]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_all_steps_at_once_equal_one_step_after_another(variant: dict[str, object]) -> None:
    model, batch = small.model(**variant), small.batch()
    assert batch.target is not None
    at_once = model.score(batch, Watch(Detail.WEIGHTS))
    state = model.encode(batch)
    for t in range(batch.target.ids.shape[1] - 1):
        stepped = model.step(state, batch.target.ids[:, t], Watch(Detail.WEIGHTS))
        state = stepped.state
        torch.testing.assert_close(stepped.logits[:, 0], at_once.logits[:, t], rtol=0, atol=1e-10)
        weights, whole = stepped.looks["cross"].weights, at_once.looks["cross"].weights
        assert weights is not None
        assert whole is not None
        torch.testing.assert_close(weights[:, 0], whole[:, t], rtol=0, atol=1e-10)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_a_sentence_is_independent_of_its_neighbours_and_their_padding(variant: dict[str, object]) -> None:
    model = small.model(**variant)
    together = model.score(small.batch()).logits
    for row, example in enumerate(small.examples()):
        alone = model.score(collate([example])).logits[0]
        torch.testing.assert_close(together[row, : len(alone)], alone, rtol=0, atol=1e-10)


def test_the_word_before_reaches_the_read_out() -> None:
    model, batch = small.model(), small.batch()
    assert batch.target is not None
    changed = batch.target.ids.clone()
    changed[0, 1] = 10
    before = model.score(batch).logits[0]
    after = model.score(TextBatch(batch.source, type(batch.target)(changed, batch.target.keep))).logits[0]
    assert torch.equal(before[0], after[0])
    assert not torch.allclose(before[1], after[1])


def test_every_weight_learns() -> None:
    model = small.model().train()
    loss = model.score(small.batch()).logits.square().sum()
    loss.backward()  # type: ignore[no-untyped-call]
    still = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert still == []


def test_selected_rows_go_on_as_they_would_have() -> None:
    model, batch = small.model(coverage=True), small.batch()
    rows = torch.tensor([2, 0])
    state: State = model.step(model.encode(batch), torch.tensor([4, 5, 6])).state
    whole = model.step(state, torch.tensor([7, 8, 9])).logits[rows]
    torch.testing.assert_close(model.step(state.select(rows), torch.tensor([9, 7])).logits, whole)


NAMES = list(product(ScoreName.__args__, PlacementName.__args__))  # type: ignore[attr-defined]


@pytest.mark.parametrize(("score", "placement"), NAMES)
def test_every_score_with_every_placement_makes_a_model(score: str, placement: str) -> None:
    logits = small.model(score=score, placement=placement).score(small.batch()).logits
    assert torch.isfinite(logits).all()
