"""Search against enumeration and against loops that know no batches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import small
from heedful.attention import Detail, Watch
from heedful.data.batch import Encoded, TextBatch, collate, pad
from heedful.data.tokenizer import END, PAD, START
from heedful.decoding import Beam, Ensemble, Forced, Greedy, Hypothesis, Sample, search
from heedful.decoding.beam import length_penalty
from heedful.models import Seq2Seq

FULL = Watch(Detail.WEIGHTS)
SOURCES = [e.source for e in small.examples()]
PRESETS = ["bigru-gru", "rnnsearch", "luong", "cgru", "transformer", "conv-conv", "abs", "seq2seq-every-step"]


def wild(name: str, seed: int = 1, vocabulary: int = small.VOCABULARY, **changes: object) -> Seq2Seq:
    return small.wild(small.built(small.preset(name, **changes), vocabulary), seed)


@torch.inference_mode()
def by_hand(model: Seq2Seq, source: list[int], limit: int) -> list[int]:
    """Greedy for one sentence, the whole prefix scored anew for each word."""
    words: list[int] = []
    while len(words) < limit and END not in words:
        batch = TextBatch(pad([source]), pad([[START, *words, PAD]]))
        logits = model.score(batch).logits[0, -1].clone()
        logits[[PAD, START]] = float("-inf")
        words.append(int(logits.argmax()))
    return words


def agrees_with_forced(model: Seq2Seq, source: list[int], found: Hypothesis) -> None:
    """Scoring the output again as given text finds the same log-probabilities and looks."""
    batch = collate([Encoded(source, list(found.tokens))])
    again = search(model, batch, Forced(), FULL).best[0][0]
    free = model.score(batch).logits[0].clone()
    free[:, [PAD, START]] = float("-inf")
    logp = free.log_softmax(-1)[range(len(found.tokens)), list(found.tokens)]
    assert found.token_logp == pytest.approx(logp.tolist(), abs=1e-9)
    assert found.logp == pytest.approx(sum(found.token_logp), abs=1e-9)
    assert set(found.looks) == set(again.looks)
    for site, weights in found.looks.items():
        torch.testing.assert_close(weights, again.looks[site], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", PRESETS)
def test_greedy_in_a_batch_equals_one_sentence_by_hand(name: str) -> None:
    for seed in range(3):
        model = wild(name, seed)
        found = search(model, TextBatch(pad(SOURCES)), Greedy(9), FULL).best
        for (hypothesis,), source in zip(found, SOURCES, strict=True):
            assert list(hypothesis.tokens) == by_hand(model, source, 9)
            assert hypothesis.finished == (hypothesis.tokens[-1] == END)
            agrees_with_forced(model, source, hypothesis)


@pytest.mark.parametrize("name", PRESETS)
def test_a_beam_of_one_is_greedy(name: str) -> None:
    for seed in range(4):
        model = wild(name, seed)
        greedy = search(model, TextBatch(pad(SOURCES)), Greedy(9)).best
        beam = search(model, TextBatch(pad(SOURCES)), Beam(1, alpha=seed / 2, max_length=9)).best
        assert [h[0].tokens for h in beam] == [h[0].tokens for h in greedy]


@pytest.mark.parametrize("name", PRESETS)
def test_beam_in_a_batch_equals_beam_alone_and_its_looks_are_its_own(name: str) -> None:
    model = wild(name, 3)
    how = Beam(4, alpha=0.6, beta=0.2, n_best=3, max_length=8)
    together = search(model, TextBatch(pad(SOURCES)), how, FULL).best
    for found, source in zip(together, SOURCES, strict=True):
        alone = search(model, TextBatch(pad([source])), how, FULL).best[0]
        assert [h.tokens for h in found] == [h.tokens for h in alone]
        assert [h.score for h in found] == pytest.approx([h.score for h in alone], abs=1e-9)
        assert [h.score for h in found if h.finished] == sorted(
            (h.score for h in found if h.finished), reverse=True
        )
        for hypothesis in found:
            agrees_with_forced(model, source, hypothesis)


def outputs(vocabulary: int, limit: int) -> Iterator[tuple[int, ...]]:
    """Every finished output of at most `limit` tokens."""
    words = [w for w in range(vocabulary) if w not in (PAD, START, END)]
    for length in range(limit):
        for body in itertools.product(words, repeat=length):
            yield (*body, END)


@torch.inference_mode()
def enumerated(
    model: Seq2Seq, source: list[int], how: Beam, vocabulary: int
) -> list[tuple[float, tuple[int, ...]]]:
    """All outputs with their scores by the formula, best first."""
    scored = []
    every = list(outputs(vocabulary, how.max_length))
    stepped = model.score(collate([Encoded(source, list(tokens)) for tokens in every]), FULL)
    logits = stepped.logits.clone()
    logits[..., [PAD, START]] = float("-inf")
    logps = logits.log_softmax(-1)
    for row, tokens in enumerate(every):
        logp = float(logps[row, range(len(tokens)), list(tokens)].sum())
        score = logp / ((5 + len(tokens)) / 6) ** how.alpha
        if how.beta and model.alignment:
            weights = stepped.looks[model.alignment].weights
            assert weights is not None
            seen = weights[row, : len(tokens)].mean(dim=1).sum(dim=0)
            score += how.beta * sum(math.log(min(max(float(s), 1e-10), 1.0)) for s in seen)
        scored.append((score, tokens))
    return sorted(scored, reverse=True)


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(PRESETS),
    st.integers(0, 1000),
    st.sampled_from([0.0, 0.6, 1.0, 2.0]),
    st.sampled_from([0.0, 0.3]),
)
def test_a_beam_wide_enough_finds_what_enumeration_finds(
    name: str, seed: int, alpha: float, beta: float
) -> None:
    vocabulary, limit = 6, 4  # <unk> and two words: 1 + 3 + 9 + 27 outputs
    model = wild(name, seed, vocabulary)
    how = Beam(size=120, alpha=alpha, beta=beta, n_best=5, max_length=limit, exact=True)
    source = [4, 5, END]
    found = search(model, TextBatch(pad([source])), how).best[0]
    wanted = enumerated(model, source, how, vocabulary)[:5]
    assert [h.score for h in found] == pytest.approx([score for score, _ in wanted], abs=1e-7)
    assert [h.tokens for h in found] == [tokens for _, tokens in wanted]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([0.0, 0.6, 1.0]))
def test_stopping_early_loses_nothing(seed: int, alpha: float) -> None:
    """A search that never stops before the limit returns the same best hypothesis."""
    model = wild("rnnsearch", seed)
    batch = TextBatch(pad(SOURCES))
    early = search(model, batch, Beam(3, alpha=alpha, max_length=12, exact=True)).best
    never = search(model, batch, Beam(3, alpha=alpha, n_best=3, max_length=12)).best
    for one, many in zip(early, never, strict=True):
        if one[0].finished:
            assert one[0].score >= many[0].score - 1e-9


def test_a_search_that_is_not_exact_ends_when_what_lives_is_worse_as_it_stands() -> None:
    model = wild("rnnsearch", 4)
    with torch.no_grad():
        model.get_parameter("decoder.read_out.output.bias")[END] += 3.0  # it comes soon
    batch = TextBatch(pad(SOURCES))
    steps: dict[bool, int] = {}
    for exact in (False, True):
        calls = 0
        usual = type(model).step

        def counted(*given: Any, usual: Any = usual) -> Any:
            nonlocal calls
            calls += 1
            return usual(*given)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(model), "step", counted)
            found = search(model, batch, Beam(3, alpha=1.0, max_length=60, exact=exact)).best
        steps[exact] = calls
        assert all(h.finished for (h,) in found)
    assert steps[False] < steps[True]


def test_a_forced_prefix_is_kept_and_then_left() -> None:
    model = wild("rnnsearch", 2)
    prefix = pad([[7, 8], [9], []])
    for how in (Greedy(8), Beam(3, max_length=8), Sample(seed=4, max_length=8)):
        found = search(model, TextBatch(pad(SOURCES)), how, prefix=prefix).best
        assert found[0][0].tokens[:2] == (7, 8)
        assert found[1][0].tokens[0] == 9
    free = search(model, TextBatch(pad(SOURCES[2:])), Greedy(8)).best[0][0].tokens
    assert search(model, TextBatch(pad(SOURCES)), Greedy(8), prefix=prefix).best[2][0].tokens == free


def test_sampling_repeats_by_seed_and_follows_the_model() -> None:
    model = wild("rnnsearch", 5)
    batch = TextBatch(pad([SOURCES[0]] * 3000))

    def first_words(**how: float) -> torch.Tensor:
        found = search(model, batch, Sample(max_length=1, **how)).best  # type: ignore[arg-type]
        return torch.tensor([h[0].tokens[0] for h in found])

    assert torch.equal(first_words(seed=1), first_words(seed=1))
    assert not torch.equal(first_words(seed=1), first_words(seed=2))
    state, _ = model.encode(TextBatch(pad([SOURCES[0]])))
    logits = model.step(state, torch.tensor([START])).logits[0, 0].detach().clone()
    logits[[PAD, START]] = float("-inf")
    p = logits.softmax(-1)
    seen = torch.bincount(first_words(seed=3), minlength=len(p)) / 3000
    assert (seen - p).abs().max() < 0.03
    assert set(first_words(seed=3, top_k=2).tolist()) <= set(p.topk(2).indices.tolist())
    best = int(p.argmax())
    assert set(first_words(seed=3, temperature=1e-4).tolist()) == {best}
    assert set(first_words(seed=3, top_p=1e-6).tolist()) == {best}
    drawn = search(model, TextBatch(pad(SOURCES)), Sample(n_best=4, max_length=6)).best
    assert all(len(hypotheses) == 4 for hypotheses in drawn)


def test_without_watching_there_are_no_weights_and_the_same_words() -> None:
    model = small.model()
    watched = search(model, TextBatch(pad(SOURCES)), Greedy(9), FULL).best
    plain = search(model, TextBatch(pad(SOURCES)), Greedy(9)).best
    assert [h[0].tokens for h in plain] == [h[0].tokens for h in watched]
    assert all(h[0].looks == {} for h in plain)


def test_outputs_that_never_end_are_as_long_as_allowed_and_said_unfinished() -> None:
    model = small.model()
    with torch.no_grad():
        model.get_parameter("decoder.read_out.output.bias")[END] = -1e9
    for how in (Greedy(4), Beam(3, max_length=4)):
        found = search(model, TextBatch(pad(SOURCES)), how).best
        assert [len(h[0].tokens) for h in found] == [4, 4, 4]
        assert not any(h[0].finished for h in found)


def test_the_encoders_own_looks_are_found_too() -> None:
    model = small.built(small.preset("transformer"))
    found = search(model, TextBatch(pad(SOURCES)), Greedy(3), FULL)
    assert found.encoder[1]["enc.0.self"].shape == (3, 2, 3)
    assert length_penalty(1, 5.0) == 1.0


@pytest.mark.parametrize("how", [Greedy(9), Beam(4, n_best=2, max_length=9)])
def test_a_model_twice_is_the_model_and_two_models_are_their_mean(how: Greedy | Beam) -> None:
    one, other = wild("rnnsearch", 1), wild("transformer", 2)
    batch = TextBatch(pad(SOURCES))
    alone = search(one, batch, how, FULL).best
    twice = search(Ensemble([one, one]), batch, how, FULL).best
    for mine, theirs in zip(alone, twice, strict=True):
        assert [h.tokens for h in mine] == [h.tokens for h in theirs]
        assert [h.logp for h in mine] == pytest.approx([h.logp for h in theirs], abs=1e-9)
        torch.testing.assert_close(mine[0].looks["cross"], theirs[0].looks["1:cross"])
    both = Ensemble([one, other])
    given = collate([Encoded(SOURCES[0], [5, 6, END])])
    p = sum(m.score(given).logits.softmax(-1) for m in (one, other)) / 2
    torch.testing.assert_close(both.score(given).logits.exp(), p, rtol=0, atol=1e-10)
    assert both.alignment == "0:cross"
    assert "1:dec.0.cross" in [site.id for site in both.sites]
