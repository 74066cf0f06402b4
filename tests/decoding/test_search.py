"""Search against enumeration and against loops that know no batches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import small_models
from heedful.attention import Detail, Hooks
from heedful.config import DecodingOptions
from heedful.data.batch import EncodedPair, TextBatch, collate, pad
from heedful.data.tokenizer import END, PAD, START
from heedful.decoding import Ensemble, Hypothesis, batched, force_decode, search
from heedful.hypothesis import length_penalty
from heedful.models import Seq2Seq

FULL = Hooks(Detail.WEIGHTS)
SOURCES = [e.source for e in small_models.small_examples()]
PRESETS = ["bigru-gru", "rnnsearch", "luong", "cgru", "transformer", "conv-conv", "abs", "seq2seq-every-step"]


def wild(name: str, seed: int = 1, vocabulary: int = small_models.VOCABULARY, **changes: object) -> Seq2Seq:
    return small_models.randomize_weights(
        small_models.build_model(small_models.small_preset(name, **changes), vocabulary), seed
    )


@torch.inference_mode()
def by_hand(model: Seq2Seq, source: list[int], limit: int) -> list[int]:
    """Greedy for one sentence, the whole prefix scored anew for each word."""
    words: list[int] = []
    while len(words) < limit and END not in words:
        batch = TextBatch(pad([source]), pad([[START, *words, PAD]]))
        logits = model(batch).logits[0, -1].clone()
        logits[[PAD, START]] = float("-inf")
        words.append(int(logits.argmax()))
    return words


def agrees_with_forced(model: Seq2Seq, source: list[int], found: Hypothesis) -> None:
    """Scoring the output again as given text finds the same log-probabilities and looks."""
    batch = collate([EncodedPair(source, list(found.tokens))])
    again = force_decode(model, batch, FULL)[0]
    free = model(batch).logits[0].clone()
    free[:, [PAD, START]] = float("-inf")
    logp = free.log_softmax(-1)[range(len(found.tokens)), list(found.tokens)]
    assert found.token_logp == pytest.approx(logp.tolist(), abs=1e-9)
    assert found.logp == pytest.approx(sum(found.token_logp), abs=1e-9)
    assert set(found.attentions) == set(again.attentions)
    for site, weights in found.attentions.items():
        torch.testing.assert_close(weights, again.attentions[site], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", PRESETS)
def test_greedy_in_a_batch_equals_one_sentence_by_hand(name: str) -> None:
    for seed in range(3):
        model = wild(name, seed)
        found = search(model, TextBatch(pad(SOURCES)), DecodingOptions(max_length=9), FULL).hypotheses
        for (hypothesis,), source in zip(found, SOURCES, strict=True):
            assert list(hypothesis.tokens) == by_hand(model, source, 9)
            assert hypothesis.finished == (hypothesis.tokens[-1] == END)
            agrees_with_forced(model, source, hypothesis)


@pytest.mark.parametrize("name", PRESETS)
def test_a_beam_of_one_is_greedy(name: str) -> None:
    for seed in range(4):
        model = wild(name, seed)
        greedy = search(model, TextBatch(pad(SOURCES)), DecodingOptions(max_length=9)).hypotheses
        beam = search(
            model,
            TextBatch(pad(SOURCES)),
            DecodingOptions(method="beam", beam=1, length_penalty=seed / 2, max_length=9),
        ).hypotheses
        assert [h[0].tokens for h in beam] == [h[0].tokens for h in greedy]


@pytest.mark.parametrize("name", PRESETS)
def test_beam_in_a_batch_equals_beam_alone_and_its_looks_are_its_own(name: str) -> None:
    model = wild(name, 3)
    options = DecodingOptions(method="beam", beam=4, length_penalty=0.6, coverage_penalty=0.2, n_best=3, max_length=8)
    together = search(model, TextBatch(pad(SOURCES)), options, FULL).hypotheses
    for found, source in zip(together, SOURCES, strict=True):
        alone = search(model, TextBatch(pad([source])), options, FULL).hypotheses[0]
        assert [h.tokens for h in found] == [h.tokens for h in alone]
        assert [h.score for h in found] == pytest.approx([h.score for h in alone], abs=1e-9)
        assert [h.score for h in found if h.finished] == sorted((h.score for h in found if h.finished), reverse=True)
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
    model: Seq2Seq, source: list[int], options: DecodingOptions, vocabulary: int
) -> list[tuple[float, tuple[int, ...]]]:
    """All outputs with their scores by the formula, best first."""
    scored = []
    every = list(outputs(vocabulary, options.max_length))
    step_output = model(collate([EncodedPair(source, list(tokens)) for tokens in every]), FULL)
    logits = step_output.logits.clone()
    logits[..., [PAD, START]] = float("-inf")
    logps = logits.log_softmax(-1)
    for row, tokens in enumerate(every):
        logp = float(logps[row, range(len(tokens)), list(tokens)].sum())
        score = logp / ((5 + len(tokens)) / 6) ** options.length_penalty
        if options.coverage_penalty and model.alignment_site:
            weights = step_output.attentions[model.alignment_site].weights
            assert weights is not None
            seen = weights[row, : len(tokens)].mean(dim=1).sum(dim=0)
            score += options.coverage_penalty * sum(math.log(min(max(float(s), 1e-10), 1.0)) for s in seen)
        scored.append((score, tokens))
    return sorted(scored, reverse=True)


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(PRESETS),
    st.integers(0, 1000),
    st.sampled_from([0.0, 0.6, 1.0, 2.0]),
    st.sampled_from([0.0, 0.3]),
)
def test_a_beam_wide_enough_finds_what_enumeration_finds(name: str, seed: int, alpha: float, beta: float) -> None:
    vocabulary, limit = 6, 4  # <unk> and two words: 1 + 3 + 9 + 27 outputs
    model = wild(name, seed, vocabulary)
    options = DecodingOptions(
        method="beam", beam=120, length_penalty=alpha, coverage_penalty=beta, n_best=5, max_length=limit, exact=True
    )
    source = [4, 5, END]
    found = search(model, TextBatch(pad([source])), options).hypotheses[0]
    wanted = enumerated(model, source, options, vocabulary)[:5]
    assert [h.score for h in found] == pytest.approx([score for score, _ in wanted], abs=1e-7)
    assert [h.tokens for h in found] == [tokens for _, tokens in wanted]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([0.0, 0.6, 1.0]))
def test_stopping_early_loses_nothing(seed: int, alpha: float) -> None:
    """A search that never stops before the limit returns the same best hypothesis."""
    model = wild("rnnsearch", seed)
    batch = TextBatch(pad(SOURCES))
    early = search(
        model, batch, DecodingOptions(method="beam", beam=3, length_penalty=alpha, max_length=12, exact=True)
    ).hypotheses
    never = search(
        model, batch, DecodingOptions(method="beam", beam=3, length_penalty=alpha, n_best=3, max_length=12)
    ).hypotheses
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
            found = search(
                model, batch, DecodingOptions(method="beam", beam=3, length_penalty=1.0, max_length=60, exact=exact)
            ).hypotheses
        steps[exact] = calls
        assert all(h.finished for (h,) in found)
    assert steps[False] < steps[True]


def test_a_forced_prefix_is_kept_and_then_left() -> None:
    model = wild("rnnsearch", 2)
    prefix = pad([[7, 8], [9], []])
    for options in (
        DecodingOptions(max_length=8),
        DecodingOptions(method="beam", beam=3, max_length=8),
        DecodingOptions(method="sample", seed=4, max_length=8),
    ):
        found = search(model, TextBatch(pad(SOURCES)), options, prefix=prefix).hypotheses
        assert found[0][0].tokens[:2] == (7, 8)
        assert found[1][0].tokens[0] == 9
    free = search(model, TextBatch(pad(SOURCES[2:])), DecodingOptions(max_length=8)).hypotheses[0][0].tokens
    assert (
        search(model, TextBatch(pad(SOURCES)), DecodingOptions(max_length=8), prefix=prefix).hypotheses[2][0].tokens
        == free
    )


def test_sampling_repeats_by_seed_and_follows_the_model() -> None:
    model = wild("rnnsearch", 5)
    batch = TextBatch(pad([SOURCES[0]] * 3000))

    def first_words(**options: float) -> torch.Tensor:
        found = search(model, batch, DecodingOptions(method="sample", max_length=1, **options)).hypotheses  # type: ignore[arg-type]
        return torch.tensor([h[0].tokens[0] for h in found])

    assert torch.equal(first_words(seed=1), first_words(seed=1))
    assert not torch.equal(first_words(seed=1), first_words(seed=2))
    state, _ = model.initial_state(TextBatch(pad([SOURCES[0]])))
    logits = model.step(state, torch.tensor([START])).logits[0, 0].detach().clone()
    logits[[PAD, START]] = float("-inf")
    p = logits.softmax(-1)
    seen = torch.bincount(first_words(seed=3), minlength=len(p)) / 3000
    assert (seen - p).abs().max() < 0.03
    assert set(first_words(seed=3, top_k=2).tolist()) <= set(p.topk(2).indices.tolist())
    best = int(p.argmax())
    assert set(first_words(seed=3, temperature=1e-4).tolist()) == {best}
    assert set(first_words(seed=3, top_p=1e-6).tolist()) == {best}
    drawn = search(model, TextBatch(pad(SOURCES)), DecodingOptions(method="sample", n_best=4, max_length=6)).hypotheses
    assert all(len(hypotheses) == 4 for hypotheses in drawn)


def test_without_watching_there_are_no_weights_and_the_same_words() -> None:
    model = small_models.attention_model()
    watched = search(model, TextBatch(pad(SOURCES)), DecodingOptions(max_length=9), FULL).hypotheses
    plain = search(model, TextBatch(pad(SOURCES)), DecodingOptions(max_length=9)).hypotheses
    assert [h[0].tokens for h in plain] == [h[0].tokens for h in watched]
    assert all(h[0].attentions == {} for h in plain)


def test_outputs_that_never_end_are_as_long_as_allowed_and_said_unfinished() -> None:
    model = small_models.attention_model()
    with torch.no_grad():
        model.get_parameter("decoder.read_out.output.bias")[END] = -1e9
    for options in (DecodingOptions(max_length=4), DecodingOptions(method="beam", beam=3, max_length=4)):
        found = search(model, TextBatch(pad(SOURCES)), options).hypotheses
        assert [len(h[0].tokens) for h in found] == [4, 4, 4]
        assert not any(h[0].finished for h in found)


def test_the_encoders_own_looks_are_found_too() -> None:
    model = small_models.build_model(small_models.small_preset("transformer"))
    found = search(model, TextBatch(pad(SOURCES)), DecodingOptions(max_length=3), FULL)
    assert found.encoder_attentions[1]["enc.0.self"].shape == (3, 2, 3)
    assert length_penalty(1, 5.0) == 1.0


@pytest.mark.parametrize(
    "options", [DecodingOptions(max_length=9), DecodingOptions(method="beam", beam=4, n_best=2, max_length=9)]
)
def test_a_model_twice_is_the_model_and_two_models_are_their_mean(options: DecodingOptions) -> None:
    one, other = wild("rnnsearch", 1), wild("transformer", 2)
    batch = TextBatch(pad(SOURCES))
    alone = search(one, batch, options, FULL).hypotheses
    twice = search(Ensemble([one, one]), batch, options, FULL).hypotheses
    for mine, theirs in zip(alone, twice, strict=True):
        assert [h.tokens for h in mine] == [h.tokens for h in theirs]
        assert [h.logp for h in mine] == pytest.approx([h.logp for h in theirs], abs=1e-9)
        torch.testing.assert_close(mine[0].attentions["cross"], theirs[0].attentions["1:cross"])
    both = Ensemble([one, other])
    given = collate([EncodedPair(SOURCES[0], [5, 6, END])])
    p = sum(m(given).logits.softmax(-1) for m in (one, other)) / 2
    torch.testing.assert_close(both(given).logits.exp(), p, rtol=0, atol=1e-10)
    assert both.alignment_site == "0:cross"
    assert "1:dec.0.cross" in [site.id for site in both.sites]


@pytest.mark.usefixtures("as_users_run")
def test_a_wide_beam_makes_batches_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def fake_search(_model: object, batch: list[int], *_more: object, **_options: object) -> Any:
        sizes.append(len(batch))
        return SimpleNamespace(hypotheses=[[]] * len(batch))

    monkeypatch.setattr(batched, "search", fake_search)
    for beam, n_best, size in ((5, 1, 64), (1_000, 1, 8), (5, 1_000, 8)):
        sizes.clear()
        batched.search_all(None, list, [1] * 100, DecodingOptions(beam=beam, n_best=n_best))  # type: ignore[arg-type]
        assert (max(sizes), sum(sizes)) == (size, 100)
