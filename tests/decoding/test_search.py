"""Greedy search against a loop that knows no batches."""

from __future__ import annotations

import pytest
import torch

import small
from heedful.attention import Detail, Watch
from heedful.data.batch import TextBatch, pad
from heedful.data.tokenizer import END, PAD, START
from heedful.decoding import search
from heedful.models import Seq2Seq

SOURCES = [e.source for e in small.examples()]


@torch.inference_mode()
def by_hand(model: Seq2Seq, source: list[int], limit: int) -> tuple[list[int], list[float], torch.Tensor]:
    """One sentence, the whole prefix scored anew for each word."""
    words: list[int] = []
    logps: list[float] = []
    while len(words) < limit and END not in words:
        batch = TextBatch(pad([source]), pad([[START, *words, PAD]]))
        scored = model.score(batch, Watch(Detail.WEIGHTS))
        logits = scored.logits[0, -1].clone()
        logits[[PAD, START]] = float("-inf")
        logp = logits.log_softmax(-1)
        words.append(int(logp.argmax()))
        logps.append(float(logp.max()))
    weights = scored.looks["cross"].weights
    assert weights is not None
    return words, logps, weights[0]


@pytest.mark.parametrize("variant", [{}, {"coverage": True}, {"heads": 2, "score": "scaled-dot"}], ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_greedy_in_a_batch_equals_one_sentence_by_hand(variant: dict[str, object], seed: int) -> None:
    model = small.model(**variant)
    torch.manual_seed(seed)
    for parameter in model.parameters():  # away from the tame start, so that outputs and lengths differ
        torch.nn.init.uniform_(parameter, -1.5, 1.5)
    found = search(model, TextBatch(pad(SOURCES)), 9, Watch(Detail.WEIGHTS))
    for hypothesis, source in zip(found, SOURCES, strict=True):
        words, logps, weights = by_hand(model, source, 9)
        assert list(hypothesis.tokens) == words
        assert hypothesis.token_logp == pytest.approx(logps, abs=1e-10)
        assert hypothesis.logp == pytest.approx(sum(logps), abs=1e-9)
        assert hypothesis.finished == (words[-1] == END)
        torch.testing.assert_close(hypothesis.looks["cross"], weights, rtol=0, atol=1e-10)


def test_without_watching_there_are_no_weights_and_the_same_words() -> None:
    model = small.model()
    watched = search(model, TextBatch(pad(SOURCES)), 9, Watch(Detail.WEIGHTS))
    plain = search(model, TextBatch(pad(SOURCES)), 9)
    assert [h.tokens for h in plain] == [h.tokens for h in watched]
    assert all(h.looks == {} for h in plain)


def test_the_longest_output_is_as_long_as_allowed() -> None:
    model = small.model()
    with torch.no_grad():
        model.read_out.bias[END] = -1e9
    assert [len(h.tokens) for h in search(model, TextBatch(pad(SOURCES)), 4)] == [4, 4, 4]
