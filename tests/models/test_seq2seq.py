"""The encoder-decoder: teacher forcing equals single steps, and sentences are independent."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch

import small_models
from heedful import registry
from heedful.attention import Detail, Hooks
from heedful.config import ModelConfig
from heedful.config.presets import ENCODER_DECODERS
from heedful.data.batch import Padded, TextBatch, collate
from heedful.data.tokenizer import END
from heedful.errors import ShapeError
from heedful.models import build_seq2seq
from small_models import VARIANTS

RECORD_WEIGHTS = Hooks(Detail.WEIGHTS)
ALL = [*((name, {}) for name in ENCODER_DECODERS if name != "rnnsearch-paper"), *VARIANTS]
every_model = pytest.mark.parametrize(("preset", "changes"), ALL, ids=lambda x: str(x))


@every_model
def test_teacher_forcing_equals_single_steps(preset: str, changes: dict[str, Any]) -> None:
    model, batch = small_models.build_model(small_models.small_preset(preset, **changes)), small_models.small_batch()
    assert batch.target is not None
    parallel = model(batch, RECORD_WEIGHTS)
    state, _ = model.initial_state(batch)
    inputs = batch.target.ids.clone()
    inputs[:, 0] = model.start_token
    for t in range(inputs.shape[1] - 1):
        output = model.step(state, inputs[:, t], RECORD_WEIGHTS)
        state = output.state
        assert state.position == t + 1
        torch.testing.assert_close(output.logits[:, 0], parallel.logits[:, t], rtol=0, atol=1e-10)
        for site, attention in output.attentions.items():
            expected = parallel.attentions[site].weights
            assert attention.weights is not None
            assert expected is not None
            n_keys = attention.weights.shape[-1]
            torch.testing.assert_close(attention.weights[:, 0], expected[:, t, :, :n_keys], rtol=0, atol=1e-10)
            assert not expected[:, t, :, n_keys:].any()


@every_model
def test_sentences_are_independent_of_their_batch(preset: str, changes: dict[str, Any]) -> None:
    model = small_models.build_model(small_models.small_preset(preset, **changes))
    together = model(small_models.small_batch()).logits
    for row, example in enumerate(small_models.small_examples()):
        alone = model(collate([example])).logits[0]
        torch.testing.assert_close(together[row, : len(alone)], alone, rtol=0, atol=1e-10)


@every_model
def test_a_step_depends_on_earlier_words_alone(preset: str, changes: dict[str, Any]) -> None:
    model, batch = small_models.build_model(small_models.small_preset(preset, **changes)), small_models.small_batch()
    assert batch.target is not None
    ids = batch.target.ids.clone()
    ids[1, 2] = 10
    before = model(batch).logits[1]
    after = model(TextBatch(batch.source, Padded(ids, batch.target.keep))).logits[1]
    torch.testing.assert_close(before[:2], after[:2], rtol=0, atol=1e-12)
    assert not torch.allclose(before[2], after[2])


@every_model
def test_selected_rows_continue_unchanged(preset: str, changes: dict[str, Any]) -> None:
    """As in beam search: expanded rows, reordered within their sentence, after a sentence has left."""
    model, batch = small_models.build_model(small_models.small_preset(preset, **changes)), small_models.small_batch()
    state, _ = model.initial_state(batch)
    expanded = model.step(state.expand_to_beam(2), torch.tensor([4, 5, 6, 7, 8, 9])).state
    selected = expanded.select(torch.tensor([1, 1, 5, 4]), torch.tensor([0, 2]), beam=2)
    logits = model.step(selected, torch.tensor([10, 4, 5, 6]), RECORD_WEIGHTS).logits[:, 0]
    for row, (sentence, inputs) in enumerate([(0, (5, 10)), (0, (5, 4)), (2, (9, 5)), (2, (8, 6))]):
        alone, _ = model.initial_state(collate([small_models.small_examples()[sentence]]))
        for word in inputs:
            output = model.step(alone, torch.tensor([word]))
            alone = output.state
        torch.testing.assert_close(logits[row], output.logits[0, 0], rtol=0, atol=1e-10)


@every_model
def test_every_weight_gets_a_gradient(preset: str, changes: dict[str, Any]) -> None:
    config = small_models.small_preset(preset, **{**changes, "initialization": "torch"})
    model = small_models.build_model(config).train()
    output = model(small_models.small_batch(), RECORD_WEIGHTS)
    extras = [extra for attention in output.attentions.values() for extra in attention.extras.values() if extra.grad_fn]
    loss = output.logits.square().sum() + sum(extra.square().sum() for extra in extras)
    loss.backward()  # type: ignore[no-untyped-call]
    without_gradient = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    # a bias of keys adds the same to every score, so softmax cancels it
    assert [name for name in without_gradient if not name.endswith("to_key.bias")] == []


def test_the_recipe_sets_the_start_token() -> None:
    assert small_models.build_model(small_models.small_preset("five-steps")).start_token == END
    one, other = (
        small_models.small_preset("bigru-gru"),
        small_models.small_preset("bigru-gru", decoder__start_token="</s>"),
    )
    assert not torch.allclose(
        small_models.build_model(one)(small_models.small_batch()).logits,
        small_models.build_model(other)(small_models.small_batch()).logits,
    )


def test_scheduled_sampling_goes_from_teacher_forcing_to_greedy() -> None:
    model, batch = (
        small_models.randomize_weights(small_models.build_model(small_models.small_preset("rnnsearch"))),
        small_models.small_batch(),
    )
    teacher_forced = model(batch).logits
    torch.testing.assert_close(model(batch, scheduled_sampling=1e-12).logits, teacher_forced, rtol=0, atol=1e-10)
    sampled = model(batch, scheduled_sampling=1.0).logits
    predicted = sampled.argmax(dim=-1)
    ids = torch.cat([torch.full((3, 1), model.start_token), predicted], dim=1)
    replayed = model(TextBatch(batch.source, Padded(ids, torch.ones_like(ids, dtype=torch.bool)))).logits
    torch.testing.assert_close(sampled, replayed, rtol=0, atol=1e-10)


def test_the_initialization_is_that_of_the_paper() -> None:
    model = small_models.build_model(small_models.small_preset("rnnsearch-paper"))
    recurrent = model.get_parameter("decoder.rnn.layers.0.weight_hh_l0")
    for gate in recurrent.chunk(3):
        torch.testing.assert_close(gate @ gate.T, torch.eye(6, dtype=torch.float64), rtol=0, atol=1e-6)
    assert not model.get_parameter("decoder.attention.score.v").any()
    assert model.embedding.weight.std() < 0.02


NAMES = list(product(registry.built_in_names("score"), registry.built_in_names("placement")))


@pytest.mark.parametrize(("score", "placement"), NAMES)
def test_every_score_works_with_every_placement(score: str, placement: str) -> None:
    logits = small_models.attention_model(score=score, placement=placement)(small_models.small_batch()).logits
    assert torch.isfinite(logits).all()


KINDS = list(
    product(
        ("rnn", "gru", "lstm", "conv", "transformer", "embedding"),
        ("rnn", "gru", "lstm", "conv", "transformer", "abs"),
    )
)


@pytest.mark.parametrize(("encoder", "decoder"), KINDS)
def test_every_encoder_works_with_every_decoder(encoder: str, decoder: str) -> None:
    config = small_models.small_preset(
        "rnnsearch",
        encoder__kind=encoder,
        decoder__kind=decoder,
        decoder__state_init="mean",
        attention__score="general",
    )
    assert torch.isfinite(small_models.build_model(config)(small_models.small_batch()).logits).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"decoder__kind": "transformer", "decoder__source": "init"}, "has no initial state"),
        ({"encoder__kind": "conv", "decoder__state_init": "backward"}, 'use "mean" or "zeros"'),
        ({"encoder__bidirectional": False}, "needs encoder.bidirectional"),
        ({"decoder__kind": "lstm", "decoder__step_order": "conditional"}, 'needs decoder.kind = "gru"'),
        ({"decoder__input_feeding": "context"}, 'needs decoder.step_order = "update-attend-generate"'),
        (
            {"decoder__step_order": "update-attend-generate", "decoder__input_feeding": "attentional"},
            'needs decoder.read_out = "tanh"',
        ),
        ({"decoder__step_order": "conditional", "decoder__combine": True}, "needs decoder.step_order"),
        ({"encoder__kernel_size": 4}, "must be odd"),
        ({"decoder__kind": "transformer", "decoder__heads": 4}, "does not divide decoder.hidden"),
        ({"tie_embeddings": "output", "decoder__read_out": "linear"}, "has no vector of the embeddings' width"),
        ({"attention__score": "dot", "encoder__hidden": 5}, "queries have 6 and the encoder's keys 10"),
    ],
)
def test_contradictory_settings_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small_models.small_preset("rnnsearch", **changes)


def test_tying_all_embeddings_needs_one_vocabulary() -> None:
    config: ModelConfig = small_models.small_preset("cgru", tie_embeddings="all")
    with pytest.raises(ShapeError, match="the source has 11 words and the target 13"):
        build_seq2seq(config, 11, 13)


def test_encoder_dropout_applies_in_training_and_equally_to_keys_and_values() -> None:
    model = small_models.build_model(small_models.small_preset("cgru", encoder__dropout=0.5))
    batch = small_models.small_batch()
    evaluated = model.encode(batch)
    assert torch.equal(model.encode(batch).keys, evaluated.keys)
    model.train()
    with torch.no_grad():
        trained = model.encode(batch)
    assert trained.values is trained.keys
    dropped_fraction = (trained.keys == 0)[trained.keep].double().mean()
    assert 0.3 < dropped_fraction < 0.7
    kept = trained.keys != 0
    torch.testing.assert_close(trained.keys[kept], 2 * evaluated.keys[kept])
