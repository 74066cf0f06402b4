"""The encoder-decoder: its fast path equals its steps, and no sentence disturbs another."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch

import small
from heedful.attention import Detail, Watch
from heedful.config import ModelConfig
from heedful.config.model import PlacementName, ScoreName
from heedful.config.presets import PRESETS
from heedful.data.batch import Padded, TextBatch, collate
from heedful.data.tokenizer import END
from small import MORE

FULL = Watch(Detail.WEIGHTS)
ALL = [*((name, {}) for name in PRESETS if name != "rnnsearch-paper"), *MORE]
every_model = pytest.mark.parametrize(("preset", "changes"), ALL, ids=lambda x: str(x))


@every_model
def test_all_steps_at_once_equal_one_step_after_another(preset: str, changes: dict[str, Any]) -> None:
    model, batch = small.built(small.preset(preset, **changes)), small.batch()
    assert batch.target is not None
    at_once = model.score(batch, FULL)
    state, _ = model.encode(batch)
    words = batch.target.ids.clone()
    words[:, 0] = model.first
    for t in range(words.shape[1] - 1):
        stepped = model.step(state, words[:, t], FULL)
        state = stepped.state
        assert state.at == t + 1
        torch.testing.assert_close(stepped.logits[:, 0], at_once.logits[:, t], rtol=0, atol=1e-10)
        for site, look in stepped.looks.items():
            whole = at_once.looks[site].weights
            assert look.weights is not None
            assert whole is not None
            seen = look.weights.shape[-1]
            torch.testing.assert_close(look.weights[:, 0], whole[:, t, :, :seen], rtol=0, atol=1e-10)
            assert not whole[:, t, :, seen:].any()


@every_model
def test_a_sentence_is_independent_of_its_neighbours_and_their_padding(
    preset: str, changes: dict[str, Any]
) -> None:
    model = small.built(small.preset(preset, **changes))
    together = model.score(small.batch()).logits
    for row, example in enumerate(small.examples()):
        alone = model.score(collate([example])).logits[0]
        torch.testing.assert_close(together[row, : len(alone)], alone, rtol=0, atol=1e-10)


@every_model
def test_the_words_before_reach_the_read_out_and_those_after_do_not(
    preset: str, changes: dict[str, Any]
) -> None:
    model, batch = small.built(small.preset(preset, **changes)), small.batch()
    assert batch.target is not None
    ids = batch.target.ids.clone()
    ids[1, 2] = 10
    before = model.score(batch).logits[1]
    after = model.score(TextBatch(batch.source, Padded(ids, batch.target.keep))).logits[1]
    torch.testing.assert_close(before[:2], after[:2], rtol=0, atol=1e-12)
    assert not torch.allclose(before[2], after[2])


@every_model
def test_rows_that_were_chosen_go_on_as_they_would_have(preset: str, changes: dict[str, Any]) -> None:
    """As beam search needs it: rows widened, reordered within their sentence, a sentence gone."""
    model, batch = small.built(small.preset(preset, **changes)), small.batch()
    state, _ = model.encode(batch)
    wide = model.step(state.widened(2), torch.tensor([4, 5, 6, 7, 8, 9])).state
    chosen = wide.select(torch.tensor([1, 1, 5, 4]), torch.tensor([0, 2]), beam=2)
    found = model.step(chosen, torch.tensor([10, 4, 5, 6]), FULL).logits[:, 0]
    for row, (sentence, words) in enumerate([(0, (5, 10)), (0, (5, 4)), (2, (9, 5)), (2, (8, 6))]):
        alone, _ = model.encode(collate([small.examples()[sentence]]))
        for word in words:
            stepped = model.step(alone, torch.tensor([word]))
            alone = stepped.state
        torch.testing.assert_close(found[row], stepped.logits[0, 0], rtol=0, atol=1e-10)


@every_model
def test_every_weight_learns(preset: str, changes: dict[str, Any]) -> None:
    config = small.preset(preset, **{**changes, "initialise": "torch"})
    model = small.built(config).train()
    stepped = model.score(small.batch(), FULL)
    extras = [extra for look in stepped.looks.values() for extra in look.extra.values() if extra.grad_fn]
    loss = stepped.logits.square().sum() + sum(extra.square().sum() for extra in extras)
    loss.backward()  # type: ignore[no-untyped-call]
    still = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert [name for name in still if not name.endswith("to_key.bias")] == []  # softmax ignores that one


def test_the_first_token_is_the_one_the_recipe_names() -> None:
    assert small.built(small.preset("five-steps")).first == END
    one, other = small.preset("bigru-gru"), small.preset("bigru-gru", decoder__first="</s>")
    assert not torch.allclose(
        small.built(one).score(small.batch()).logits, small.built(other).score(small.batch()).logits
    )


def test_scheduled_sampling_of_nothing_is_teacher_forcing_and_of_all_is_greedy() -> None:
    model, batch = small.wild(small.built(small.preset("rnnsearch"))), small.batch()
    forced = model.score(batch).logits
    torch.testing.assert_close(model.score(batch, sampling=1e-12).logits, forced, rtol=0, atol=1e-10)
    free = model.score(batch, sampling=1.0).logits
    own = free.argmax(dim=-1)
    ids = torch.cat([torch.full((3, 1), model.first), own], dim=1)
    again = model.score(TextBatch(batch.source, Padded(ids, torch.ones_like(ids, dtype=torch.bool)))).logits
    torch.testing.assert_close(free, again, rtol=0, atol=1e-10)


def test_the_papers_initialisation_is_as_printed() -> None:
    model = small.built(small.preset("rnnsearch-paper"))
    recurrent = model.get_parameter("decoder.stack.layers.0.weight_hh_l0")
    for gate in recurrent.chunk(3):
        torch.testing.assert_close(gate @ gate.T, torch.eye(6, dtype=torch.float64), rtol=0, atol=1e-6)
    assert not model.get_parameter("decoder.attention.score.v").any()
    assert model.embedding.weight.std() < 0.02


NAMES = list(product(ScoreName.__args__, PlacementName.__args__))  # type: ignore[attr-defined]


@pytest.mark.parametrize(("score", "placement"), NAMES)
def test_every_score_with_every_placement_makes_a_model(score: str, placement: str) -> None:
    logits = small.model(score=score, placement=placement).score(small.batch()).logits
    assert torch.isfinite(logits).all()


KINDS = list(
    product(
        ("rnn", "gru", "lstm", "conv", "transformer", "embedding"),
        ("rnn", "gru", "lstm", "conv", "transformer", "abs"),
    )
)


@pytest.mark.parametrize(("encoder", "decoder"), KINDS)
def test_any_encoder_goes_with_any_decoder(encoder: str, decoder: str) -> None:
    config = small.preset(
        "rnnsearch",
        encoder__kind=encoder,
        decoder__kind=decoder,
        decoder__start="mean",
        attention__score="general",
    )
    assert torch.isfinite(small.built(config).score(small.batch()).logits).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"decoder__kind": "transformer", "decoder__source": "init"}, "has no state to start from"),
        ({"encoder__kind": "conv", "decoder__start": "backward"}, 'take "mean" or "zeros"'),
        ({"encoder__bidirectional": False}, "needs encoder.bidirectional"),
        ({"decoder__kind": "lstm", "decoder__order": "conditional"}, "is made of GRUs"),
        ({"decoder__feed": "context"}, 'belongs to decoder.order = "update-look-generate"'),
        (
            {"decoder__order": "update-look-generate", "decoder__feed": "attentional"},
            'needs decoder.read_out = "tanh"',
        ),
        ({"decoder__order": "conditional", "decoder__combine": True}, "belongs to decoder.order"),
        ({"encoder__kernel": 4}, "must be odd"),
        ({"decoder__kind": "transformer", "decoder__heads": 4}, "does not divide decoder.hidden"),
        ({"tie": "output", "decoder__read_out": "linear"}, "has no vector of a word's width"),
        ({"attention__score": "dot", "encoder__hidden": 5}, "the decoder gives 6 and the encoder 10"),
    ],
)
def test_what_has_no_meaning_together_is_refused_in_words(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        small.preset("rnnsearch", **changes)


def test_one_vocabulary_is_needed_to_tie_all() -> None:
    from heedful.errors import ShapeError
    from heedful.models import build

    config: ModelConfig = small.preset("cgru", tie="all")
    with pytest.raises(ShapeError, match="the source has 11 words and the target 13"):
        build(config, 11, 13)


def test_states_are_dropped_in_training_only_and_alike_for_comparing_and_reading() -> None:
    model = small.built(small.preset("cgru", encoder__dropout=0.5))
    batch = small.batch()
    calm = model.read(batch)
    assert torch.equal(model.read(batch).keys, calm.keys)
    model.train()
    with torch.no_grad():
        busy = model.read(batch)
    assert busy.values is busy.keys
    lost = (busy.keys == 0)[busy.keep].double().mean()
    assert 0.3 < lost < 0.7
    kept = busy.keys != 0
    torch.testing.assert_close(busy.keys[kept], 2 * calm.keys[kept])
