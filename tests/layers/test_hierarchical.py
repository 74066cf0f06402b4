"""The hierarchical encoder: the same as pooling each sentence by itself, in plain loops."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import small_classifiers
from heedful.attention import AttentionOutput, Detail, Hooks, Override
from heedful.data.batch import pad
from heedful.data.labels import LabelBatch
from heedful.data.tokenizer import END
from heedful.errors import ShapeError
from heedful.layers.hierarchical import WORDS, SentenceEncoder
from heedful.layers.pooling import POOL
from heedful.models import Classifier, build_classifier

MARK, OTHER = 4, 5
TEXTS = [
    [6, 7, MARK, 8, OTHER, MARK, 9, 10, END],  # the second of two marks ends
    [8, MARK, END],  # a mark at the end of the text
    [MARK, MARK, 7, 6, 9, END],
    [10, END],
]
SENTENCES = [[[6, 7, MARK], [8, OTHER, MARK], [9, 10]], [[8, MARK]], [[MARK, MARK], [7, 6, 9]], [[10]]]


def build_model(**changes: Any) -> Classifier:
    config = small_classifiers.small_preset("classify-sentences", **changes)
    return small_classifiers.randomize_weights(build_classifier(config, 11, 3, [MARK, OTHER])).double().eval()


def pool_sentence(model: Classifier, sentence: list[int]) -> tuple[Tensor, list[float]]:
    """Return the vector `sum_i a_i h_i` of one sentence, and its weights."""
    encoder = model.encoder
    assert isinstance(encoder, SentenceEncoder)
    words = model.embedding(torch.tensor([sentence]))
    states = encoder.word_encoder(words, torch.ones(1, len(sentence), dtype=torch.bool)).keys[0]
    score: Any = encoder.word_attention.score
    query = score.query.weight @ encoder.query
    scores = [score.v @ torch.tanh(query + score.key.weight @ state) for state in states]
    weights = torch.stack(scores).softmax(dim=0)
    return sum((a * h for a, h in zip(weights, states, strict=True)), torch.zeros(())), weights.tolist()


@pytest.mark.parametrize("recorded", [False, True])
def test_sentences_are_pooled_by_themselves_and_then_encoded_together(recorded: bool) -> None:
    model = build_model()
    encoder = model.encoder
    assert isinstance(encoder, SentenceEncoder)
    hooks = Hooks(Detail.FULL if recorded else Detail.NONE)
    output = model(LabelBatch(pad(TEXTS)), hooks)
    for row, sentences in enumerate(SENTENCES):
        vectors = torch.stack([pool_sentence(model, sentence)[0] for sentence in sentences])[None]
        states = encoder.sentence_encoder(vectors, torch.ones(1, len(sentences), dtype=torch.bool)).keys[0]
        ends = torch.tensor([len(sentence) for sentence in sentences]).cumsum(dim=0) - 1
        assert output.encoder_output.keep[row].nonzero().flatten().tolist() == ends.tolist()
        assert torch.allclose(output.encoder_output.keys[row][ends], states, atol=1e-12)


def test_a_words_weight_is_its_sentences_weight_times_its_own() -> None:
    model = build_model().requires_grad_(False)
    output = model(LabelBatch(pad(TEXTS)), Hooks(Detail.WEIGHTS))
    assert output.weights is not None
    pooled = output.attentions[POOL].weights
    assert pooled is not None
    for row, sentences in enumerate(SENTENCES):
        expected: list[float] = []
        for sentence in sentences:
            _, word_weights = pool_sentence(model, sentence)
            sentence_weight = float(pooled[row, 0, 0, len(expected) + len(sentence) - 1])
            expected += [sentence_weight * weight for weight in word_weights]
        assert output.weights[row].tolist() == pytest.approx(expected + [0.0] * (9 - len(expected)), abs=1e-12)
        assert sum(expected) == pytest.approx(1)


@pytest.mark.usefixtures("as_users_run")
def test_kernels_and_recorded_attention_agree() -> None:
    """In single precision without gradients the C kernels attend; they must respect sentences too."""
    model = build_model().float()
    batch = LabelBatch(pad(TEXTS))
    with torch.inference_mode():
        outputs = [model(batch, Hooks(detail)) for detail in (Detail.WEIGHTS, Detail.FULL)]
    for part in ("weights", "logits"):
        assert torch.allclose(getattr(outputs[0], part), getattr(outputs[1], part), atol=1e-6), part


def attend_to(position: int) -> Hooks:
    """Return hooks that put all weight of the second sentence of the first text on one position."""

    def edit(site: str, attention: AttentionOutput, positions: Tensor) -> Override | None:
        assert attention.weights is not None
        if site != WORDS:
            return None
        assert positions.tolist() == [list(range(9))] * len(TEXTS)
        weights = attention.weights.clone()
        weights[0, 5] = 0.0
        weights[0, 5, :, position] = 1.0
        return Override(weights)

    return Hooks(edit=edit)


@pytest.mark.parametrize("detail", [Detail.NONE, Detail.FULL])
def test_weights_within_sentences_can_be_edited(detail: Detail) -> None:
    """Edits are by positions of the text, whatever is recorded, and never beyond a sentence."""
    model = build_model()
    batch, encoder = LabelBatch(pad(TEXTS)), model.encoder
    assert isinstance(encoder, SentenceEncoder)
    hooks = Hooks(detail, edit=attend_to(4).edit)
    edited, unedited = model.encode(batch, hooks).keys, model.encode(batch).keys
    assert torch.equal(edited[1:], unedited[1:])
    sentence = torch.tensor([SENTENCES[0][1]])
    word = encoder.word_encoder(model.embedding(sentence), torch.ones(1, 3, dtype=torch.bool)).keys[0, 1]
    other_vectors = [pool_sentence(model, SENTENCES[0][i])[0] for i in (0, 2)]
    vectors = torch.stack([other_vectors[0], word, other_vectors[1]])[None]
    expected = encoder.sentence_encoder(vectors, torch.ones(1, 3, dtype=torch.bool)).keys[0]
    assert torch.allclose(edited[0][[2, 5, 7]], expected, atol=1e-12)
    with pytest.raises(ShapeError, match=r"enc\.words puts weight on positions that may not be attended to"):
        model.encode(batch, Hooks(detail, edit=attend_to(2).edit))


def test_pooled_words_depend_on_their_own_sentence_alone() -> None:
    model = build_model()
    edited = [[10, 10, MARK, *TEXTS[0][3:]]]
    before, after = (
        model.encode(LabelBatch(pad(texts)), Hooks(Detail.FULL)).attentions[WORDS].context
        for texts in (TEXTS[:1], edited)
    )
    assert before is not None
    assert after is not None
    assert not torch.allclose(before[0, 2], after[0, 2])
    assert torch.equal(before[0, 3:], after[0, 3:])


def test_gradients_reach_every_weight() -> None:
    model = build_model().train()
    model(LabelBatch(pad(TEXTS))).logits.square().sum().backward()  # type: ignore[no-untyped-call]
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name
