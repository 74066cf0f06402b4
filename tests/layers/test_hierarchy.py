"""Words, then sentences: the same as reading each sentence by itself, in plain loops."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import labels
from heedful.attention import Detail, Look, Override, Watch
from heedful.data.batch import pad
from heedful.data.labels import LabelBatch
from heedful.data.tokenizer import END
from heedful.errors import ShapeError
from heedful.layers.hierarchy import WORDS, SentenceEncoder
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


def built(**changes: Any) -> Classifier:
    config = labels.preset("classify-sentences", **changes)
    return labels.wild(build_classifier(config, 11, 3, [MARK, OTHER])).double().eval()


def alone(model: Classifier, sentence: list[int]) -> tuple[Tensor, list[float]]:
    """One sentence by itself: its vector `sum_i a_i h_i`, and the weights."""
    encoder = model.encoder
    assert isinstance(encoder, SentenceEncoder)
    words = model.embedding(torch.tensor([sentence]))
    states = encoder.words(words, torch.ones(1, len(sentence), dtype=torch.bool)).keys[0]
    score: Any = encoder.look.score
    asked = score.query.weight @ encoder.query
    scores = [score.v @ torch.tanh(asked + score.key.weight @ state) for state in states]
    weights = torch.stack(scores).softmax(dim=0)
    return sum((a * h for a, h in zip(weights, states, strict=True)), torch.zeros(())), weights.tolist()


@pytest.mark.parametrize("watched", [False, True])
def test_sentences_are_read_one_by_one_and_then_together(watched: bool) -> None:
    model = built()
    encoder = model.encoder
    assert isinstance(encoder, SentenceEncoder)
    watch = Watch(Detail.FULL if watched else Detail.NONE)
    said = model.judge(LabelBatch(pad(TEXTS)), watch)
    for row, sentences in enumerate(SENTENCES):
        vectors = torch.stack([alone(model, sentence)[0] for sentence in sentences])[None]
        states = encoder.sentences(vectors, torch.ones(1, len(sentences), dtype=torch.bool)).keys[0]
        ends = torch.tensor([len(sentence) for sentence in sentences]).cumsum(dim=0) - 1
        assert said.read.keep[row].nonzero().flatten().tolist() == ends.tolist()
        assert torch.allclose(said.read.keys[row][ends], states, atol=1e-12)


def test_words_share_what_their_sentence_got() -> None:
    model = built().requires_grad_(False)
    said = model.judge(LabelBatch(pad(TEXTS)), Watch(Detail.WEIGHTS))
    assert said.weights is not None
    pooled = said.looks[POOL].weights
    assert pooled is not None
    for row, sentences in enumerate(SENTENCES):
        wanted: list[float] = []
        for sentence in sentences:
            _, inside = alone(model, sentence)
            got = float(pooled[row, 0, 0, len(wanted) + len(sentence) - 1])
            wanted += [got * weight for weight in inside]
        assert said.weights[row].tolist() == pytest.approx(wanted + [0.0] * (9 - len(wanted)), abs=1e-12)
        assert sum(wanted) == pytest.approx(1)


@pytest.mark.usefixtures("as_users_run")
def test_what_is_used_is_what_is_traced() -> None:
    """In single precision without gradients kernels look; they must mind sentences too."""
    model = built().float()
    batch = LabelBatch(pad(TEXTS))
    with torch.inference_mode():
        seen = [model.judge(batch, Watch(detail)) for detail in (Detail.WEIGHTS, Detail.FULL)]
    for part in ("weights", "logits"):
        assert torch.allclose(getattr(seen[0], part), getattr(seen[1], part), atol=1e-6), part


def onto(place: int) -> Watch:
    """All weight of every sentence that may read it on one word."""

    def change(site: str, look: Look, at: Tensor) -> Override | None:
        assert look.weights is not None
        if site != WORDS:
            return None
        assert at.tolist() == [list(range(9))] * len(TEXTS)
        new = look.weights.clone()
        new[0, 5] = 0.0
        new[0, 5, :, place] = 1.0
        return Override(new)

    return Watch(edit=change)


@pytest.mark.parametrize("detail", [Detail.NONE, Detail.FULL])
def test_weights_inside_sentences_can_be_changed(detail: Detail) -> None:
    """By positions of the text, however closely it is watched; never beyond a sentence."""
    model = built()
    batch, encoder = LabelBatch(pad(TEXTS)), model.encoder
    assert isinstance(encoder, SentenceEncoder)
    watch = Watch(detail, edit=onto(4).edit)
    changed, own = model.read(batch, watch).keys, model.read(batch).keys
    assert torch.equal(changed[1:], own[1:])
    sentence = torch.tensor([SENTENCES[0][1]])
    word = encoder.words(model.embedding(sentence), torch.ones(1, 3, dtype=torch.bool)).keys[0, 1]
    rest = [alone(model, SENTENCES[0][i])[0] for i in (0, 2)]
    vectors = torch.stack([rest[0], word, rest[1]])[None]
    wanted = encoder.sentences(vectors, torch.ones(1, 3, dtype=torch.bool)).keys[0]
    assert torch.allclose(changed[0][[2, 5, 7]], wanted, atol=1e-12)
    with pytest.raises(ShapeError, match=r"enc\.words puts weight on positions that may not be read"):
        model.read(batch, Watch(detail, edit=onto(2).edit))


def test_no_sentence_sees_another_before_sentences_are_read() -> None:
    model = built()
    changed = [[10, 10, MARK, *TEXTS[0][3:]]]
    before, after = (
        model.read(LabelBatch(pad(texts)), Watch(Detail.FULL)).looks[WORDS].context
        for texts in (TEXTS[:1], changed)
    )
    assert before is not None
    assert after is not None
    assert not torch.allclose(before[0, 2], after[0, 2])
    assert torch.equal(before[0, 3:], after[0, 3:])


def test_gradients_reach_every_part() -> None:
    model = built().train()
    model.judge(LabelBatch(pad(TEXTS))).logits.square().sum().backward()  # type: ignore[no-untyped-call]
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name
