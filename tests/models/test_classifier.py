"""Classifiers of every preset: texts of a batch are independent, and attention stays within the text."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import small_classifiers
from heedful.attention import AttentionOutput, Detail, Hooks, Override
from heedful.data.batch import pad
from heedful.data.labels import LabelBatch
from heedful.data.tokenizer import END, UNK
from heedful.layers.dropout import Dropout
from heedful.layers.pooling import POOL
from heedful.layers.transformer import TransformerEncoder
from heedful.models import Classifier, build_classifier

TEXTS = [[4, 5, 6, 7, END], [8, END], [END], [9, 10, UNK, END]]
every_model = pytest.mark.parametrize(("preset", "changes"), small_classifiers.ALL, ids=str)


def build_model(preset: str, **changes: Any) -> Classifier:
    return (
        small_classifiers.randomize_weights(build_classifier(small_classifiers.small_preset(preset, **changes), 11, 3))
        .double()
        .eval()
    )


@every_model
def test_texts_of_a_batch_never_mix(preset: str, changes: dict[str, Any]) -> None:
    """A view of the final states as (batch, width) would mix the texts of a batch."""
    model = build_model(preset, **changes)
    in_batch = model(LabelBatch(pad(TEXTS))).logits
    assert torch.isfinite(in_batch).all()
    for row, text in enumerate(TEXTS):
        alone = model(LabelBatch(pad([text]))).logits[0]
        assert torch.allclose(in_batch[row], alone, atol=1e-10)


@every_model
def test_recording_changes_nothing_and_weights_sum_to_one(preset: str, changes: dict[str, Any]) -> None:
    model = build_model(preset, **changes)
    batch = LabelBatch(pad(TEXTS))
    recorded = model(batch, Hooks(Detail.FULL))
    assert torch.allclose(recorded.logits, model(batch).logits, atol=1e-10)
    if model.alignment_site is None:
        return
    weights = recorded.attentions[POOL].weights
    assert weights is not None
    assert torch.allclose(weights.sum(dim=-1)[[0, 1, 3]], torch.ones(3, 1, 1).double())
    end = weights[0, 0, :, 4]
    assert bool((end > 0).all()) == (model.config.encoder.read_end and model.config.attention.read_end)


def test_weights_can_be_edited() -> None:
    model = build_model("classify-learned")
    batch = LabelBatch(pad(TEXTS[:1]))

    def attend_to(position: int) -> Hooks:
        def edit(_: str, attention: AttentionOutput, __: object) -> Override:
            assert attention.weights is not None
            weights = torch.zeros_like(attention.weights)
            weights[..., position] = 1
            return Override(weights)

        return Hooks(edit=edit)

    output = model(batch)
    for position in range(4):
        edited = model(batch, attend_to(position))
        assert torch.allclose(edited.features[0], output.encoder_output.values[0, position])
        assert output.pooling_query is not None
        logits = model.reattend(output.pooling_query, attend_to(position))
        assert torch.allclose(logits[:, 0], edited.logits)


def test_word_dropout_replaces_words_by_unk_in_training_alone() -> None:
    model = build_model("classify-mean", classifier__word_dropout=0.5, encoder__kind="embedding")
    ids = pad([[4, 5, 6, 7, 8, 9] * 50 + [END]])
    assert torch.equal(model(LabelBatch(ids)).features, model(LabelBatch(ids)).features)
    model.train()
    states = model.encode(LabelBatch(ids)).keys[0]
    unknown = (states == model.embedding.weight[UNK]).all(dim=-1)
    assert 0.3 < unknown.double().mean() < 0.7


def test_encoder_dropout_applies_in_training_alone() -> None:
    model = build_model("classify-learned", encoder__dropout=0.5)
    ids = pad([[4, 5, 6, 7, 8, 9] * 50 + [END]])
    assert not (model.encode(LabelBatch(ids)).keys[:, :-1] == 0).any()  # the end token is not encoded
    model.train()
    assert 0.3 < (model.encode(LabelBatch(ids)).keys == 0).double().mean() < 0.7


def test_the_auxiliary_loss_predicts_neighboring_words() -> None:
    """In plain loops: a forward state predicts the next word, a backward state the previous one."""
    model = build_model("classify-learned", classifier__lm_auxiliary=0.3)
    batch = LabelBatch(pad(TEXTS))
    states = model.encode(batch).keys
    lm_auxiliary, hidden, terms = model.lm_auxiliary, model.config.encoder.hidden, []
    for row, text in enumerate(TEXTS):
        for at in range(int(model.source_keep(batch)[row].sum()) - 1):
            for target, state, layer in (
                (text[at + 1], states[row, at, :hidden], lm_auxiliary.next_token),
                (text[at], states[row, at + 1, hidden:], lm_auxiliary.previous_token),
            ):
                scores = model.embedding.weight @ torch.tanh(layer(state)) + lm_auxiliary.output.bias
                terms.append(-scores.log_softmax(dim=0)[target])
    loss = lm_auxiliary(states, model.source_keep(batch), batch.source.ids)
    assert torch.allclose(loss, torch.stack(terms).mean(), atol=1e-10)
    plain = build_model("classify-learned")
    plain.load_state_dict({k: v for k, v in model.state_dict().items() if "lm_auxiliary" not in k})
    assert torch.equal(plain(batch).logits, model(batch).logits)


def test_the_auxiliary_loss_of_single_words_is_zero() -> None:
    model = build_model("classify-learned", classifier__lm_auxiliary=0.3)
    batch = LabelBatch(pad([[4, END], [5, END]]))
    states = model.encode(batch).keys[:, :1]
    loss = model.lm_auxiliary(states, batch.source.keep[:, :1], batch.source.ids[:, :1])
    loss.backward()
    assert float(loss.detach()) == 0.0


def test_dropout_inside_transformer_layers_can_be_lower() -> None:
    config = small_classifiers.small_preset(
        "classify-learned", encoder__kind="transformer", encoder__inner_dropout=0.5, dropout=0.4
    )
    encoder = build_classifier(config, 11, 3).encoder
    assert isinstance(encoder, TransformerEncoder)
    layer = encoder.layers[0]
    assert layer.self_attention.dropout == 0.2
    assert [part.p for part in layer.feed_forward if isinstance(part, Dropout)] == [0.2]
    assert layer.self_residual.dropout.p == layer.feed_forward_residual.dropout.p == 0.4
