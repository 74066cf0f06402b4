"""Classifiers of every preset: a text is judged alike alone and among others, and reads what it may."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import labels
from heedful.attention import Detail, Look, Override, Watch
from heedful.data.batch import pad
from heedful.data.labels import LabelBatch
from heedful.data.tokenizer import END, UNK
from heedful.layers.dropout import Dropout
from heedful.layers.pooling import POOL
from heedful.layers.transformer import TransformerEncoder
from heedful.models import Classifier, build_classifier

TEXTS = [[4, 5, 6, 7, END], [8, END], [END], [9, 10, UNK, END]]
every = pytest.mark.parametrize(("preset", "changes"), labels.ALL, ids=str)


def built(preset: str, **changes: Any) -> Classifier:
    return labels.wild(build_classifier(labels.preset(preset, **changes), 11, 3)).double().eval()


@every
def test_texts_of_a_batch_never_mix(preset: str, changes: dict[str, Any]) -> None:
    """The well-known tutorial's trap: final states viewed into one another."""
    model = built(preset, **changes)
    together = model.judge(LabelBatch(pad(TEXTS))).logits
    assert torch.isfinite(together).all()
    for row, text in enumerate(TEXTS):
        alone = model.judge(LabelBatch(pad([text]))).logits[0]
        assert torch.allclose(together[row], alone, atol=1e-10)


@every
def test_watching_changes_nothing_and_weights_are_where_they_may_be(
    preset: str, changes: dict[str, Any]
) -> None:
    model = built(preset, **changes)
    batch = LabelBatch(pad(TEXTS))
    seen = model.judge(batch, Watch(Detail.FULL))
    assert torch.allclose(seen.logits, model.judge(batch).logits, atol=1e-10)
    if model.alignment is None:
        return
    weights = seen.looks[POOL].weights
    assert weights is not None
    assert torch.allclose(weights.sum(dim=-1)[[0, 1, 3]], torch.ones(3, 1, 1).double())
    end = weights[0, 0, :, 4]
    assert bool((end > 0).all()) == (model.config.encoder.read_end and model.config.attention.read_end)


def test_weights_can_be_changed() -> None:
    model = built("classify-learned")
    batch = LabelBatch(pad(TEXTS[:1]))

    def on(place: int) -> Watch:
        def change(_: str, look: Look, __: object) -> Override:
            assert look.weights is not None
            new = torch.zeros_like(look.weights)
            new[..., place] = 1
            return Override(new)

        return Watch(edit=change)

    said = model.judge(batch)
    for place in range(4):
        changed = model.judge(batch, on(place))
        assert torch.allclose(changed.said[0], said.read.values[0, place])
        assert said.asked is not None
        again = model.again(said.asked, on(place))
        assert torch.allclose(again[:, 0], changed.logits), "what was read is looked at once more"


def test_word_dropout_reads_words_as_unknown_in_training_only() -> None:
    model = built("classify-mean", classifier__word_dropout=0.5, encoder__kind="embedding")
    ids = pad([[4, 5, 6, 7, 8, 9] * 50 + [END]])
    assert torch.equal(model.judge(LabelBatch(ids)).said, model.judge(LabelBatch(ids)).said)
    model.train()
    read = model.read(LabelBatch(ids)).keys[0]
    unknown = (read == model.embedding.weight[UNK]).all(dim=-1)
    assert 0.3 < unknown.double().mean() < 0.7


def test_states_are_dropped_in_training_only() -> None:
    model = built("classify-learned", encoder__dropout=0.5)
    ids = pad([[4, 5, 6, 7, 8, 9] * 50 + [END]])
    assert not (model.read(LabelBatch(ids)).keys[:, :-1] == 0).any()  # the end is not read
    model.train()
    assert 0.3 < (model.read(LabelBatch(ids)).keys == 0).double().mean() < 0.7


def test_words_are_guessed_from_their_neighbours_and_never_from_themselves() -> None:
    """In plain loops: the next word by what was read before it, the one before by what was read behind it."""
    model = built("classify-learned", classifier__neighbours=0.3)
    batch = LabelBatch(pad(TEXTS))
    read = model.read(batch).keys
    guess, hidden, terms = model.neighbours, model.config.encoder.hidden, []
    for row, text in enumerate(TEXTS):
        for at in range(int(model.readable(batch)[row].sum()) - 1):
            for gold, state, layer in (
                (text[at + 1], read[row, at, :hidden], guess.after),
                (text[at], read[row, at + 1, hidden:], guess.before),
            ):
                scores = model.embedding.weight @ torch.tanh(layer(state)) + guess.output.bias
                terms.append(-scores.log_softmax(dim=0)[gold])
    found = guess(read, model.readable(batch), batch.source.ids)
    assert torch.allclose(found, torch.stack(terms).mean(), atol=1e-10)
    plain = built("classify-learned")
    plain.load_state_dict({k: v for k, v in model.state_dict().items() if "neighbours" not in k})
    assert torch.equal(plain.judge(batch).logits, model.judge(batch).logits)


def test_a_batch_of_single_words_has_no_neighbours() -> None:
    model = built("classify-learned", classifier__neighbours=0.3)
    batch = LabelBatch(pad([[4, END], [5, END]]))
    read = model.read(batch).keys[:, :1]
    lost = model.neighbours(read, batch.source.keep[:, :1], batch.source.ids[:, :1])
    lost.backward()
    assert float(lost.detach()) == 0.0


def test_what_a_transformer_drops_inside_can_be_less_than_around() -> None:
    config = labels.preset(
        "classify-learned", encoder__kind="transformer", encoder__inner_dropout=0.5, dropout=0.4
    )
    encoder = build_classifier(config, 11, 3).encoder
    assert isinstance(encoder, TransformerEncoder)
    layer = encoder.layers[0]
    assert layer.self_attention.dropout == 0.2
    assert [part.p for part in layer.feed_forward if isinstance(part, Dropout)] == [0.2]
    assert layer.around_self.dropout.p == layer.around_feed.dropout.p == 0.4
