"""Paired significance tests: they find clear differences, ignore chance, and are reproducible."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from heedful.errors import DataError
from heedful.metrics import evaluate, get_metric, metric_names, paired_bootstrap, paired_randomization
from heedful.metrics.significance import resample
from heedful.metrics.translation import bleu_state


def corpus(items: int, seed: int = 1) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices("abcdefghij", k=rng.randint(5, 12))) for _ in range(items)]


def damaged(lines: list[str], rate: float, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join("x" if rng.random() < rate else word for word in line.split()) for line in lines]


REFERENCES = corpus(120)
GOOD, FAIR, BAD = (damaged(REFERENCES, rate, seed) for rate, seed in ((0.10, 2), (0.14, 3), (0.3, 4)))


RESAMPLED = [name for name in metric_names() if name not in ("meteor", "rouge")]


@pytest.mark.parametrize("metric", RESAMPLED)
def test_a_system_does_not_differ_from_itself(metric: str) -> None:
    same = paired_bootstrap(FAIR, FAIR, REFERENCES, metric=metric, samples=50)
    assert same.first == same.second
    assert (same.difference, same.low, same.high, same.p, same.wins) == (0, 0, 0, 1, 0)
    assert paired_randomization(FAIR, FAIR, REFERENCES, metric=metric, samples=50) == 1


@pytest.mark.parametrize("metric", [name for name in RESAMPLED if name != "length-ratio"])
def test_a_clearly_better_system_is_found(metric: str) -> None:
    (first,), (second,) = (evaluate([metric], system, REFERENCES) for system in (GOOD, BAD))
    comparison = paired_bootstrap(GOOD, BAD, REFERENCES, metric=metric, samples=200)
    assert (comparison.first, comparison.second) == (first, second)
    assert comparison.difference == pytest.approx(first.value - second.value)
    assert comparison.low < comparison.difference < comparison.high
    assert comparison.low * comparison.high > 0
    assert comparison.p < 0.05
    assert comparison.wins > 0.97  # in either direction
    assert paired_randomization(GOOD, BAD, REFERENCES, metric=metric, samples=200) < 0.05


def test_swapped_systems_give_the_mirrored_comparison() -> None:
    one, other = (paired_bootstrap(*pair, REFERENCES, samples=200) for pair in ((GOOD, FAIR), (FAIR, GOOD)))
    assert (one.difference, one.low, one.high) == pytest.approx((-other.difference, -other.high, -other.low))
    assert one.p == other.p
    assert one.wins + other.wins == pytest.approx(1)


def test_systems_of_equal_quality_rarely_differ_significantly() -> None:
    # two systems of equal quality, twenty times: about one in twenty may seem to differ
    comparisons = [
        paired_bootstrap(damaged(REFERENCES, 0.2, 100 + k), damaged(REFERENCES, 0.2, 200 + k), REFERENCES, samples=200)
        for k in range(20)
    ]
    assert sum(each.p < 0.05 for each in comparisons) <= 3
    assert sum(each.p > 0.5 for each in comparisons) >= 5
    for each in comparisons:  # the interval agrees with p
        if each.p < 0.045:
            assert each.low * each.high > 0
        if each.p > 0.06:
            assert each.low <= 0 <= each.high


def test_wins_and_p_have_the_values_computed_by_hand() -> None:
    # the first is right once more, in 2 of 2 items: it ties when that item is not drawn, a chance of 1/4
    comparison = paired_bootstrap(["a", "b"], ["a", "x"], ["a", "b"], metric="exact", samples=2000)
    assert comparison.difference == 50
    assert comparison.wins == pytest.approx(0.75, abs=0.03)
    assert comparison.p == pytest.approx(2 * (2000 * (1 - comparison.wins) + 1) / 2001)
    assert (comparison.low, comparison.high) == (0, 100)


def test_randomization_has_the_p_computed_by_hand() -> None:
    # five items, all right against all wrong: of 32 swaps only the two extremes reach the difference
    p = paired_randomization(["a"] * 5, ["b"] * 5, ["a"] * 5, metric="exact", samples=4000)
    assert p == pytest.approx(2 / 32, abs=0.012)


def test_results_depend_on_the_seed_only() -> None:
    one, again, other = (paired_bootstrap(GOOD, FAIR, REFERENCES, samples=100, seed=seed) for seed in (7, 7, 8))
    assert one == again
    assert (one.samples, one.seed) == (100, 7)
    assert (one.low, one.high) != (other.low, other.high)
    assert one.difference == other.difference
    spread = [paired_randomization(GOOD, FAIR, REFERENCES, samples=100, seed=seed) for seed in (7, 7, 8, 9)]
    assert spread[0] == spread[1]
    assert len(set(spread)) > 1


@pytest.mark.parametrize(("metric", "counter"), [("bleu", BLEU()), ("chrf", CHRF())])
def test_bootstrap_samples_equal_those_of_sacrebleu(
    metric: str, counter: BLEU | CHRF, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SACREBLEU_SEED", "12345")
    named: list[tuple[str, Sequence[str]]] = [("baseline", FAIR), ("system", GOOD)]
    _, table = PairedTest(named, {metric: counter}, [REFERENCES], test_type="bs", n_samples=300)()
    baseline, system = table[counter.sentence_score("a", ["a"]).name]
    scores = resample([get_metric(metric).state(lines, REFERENCES) for _, lines in named], 300, 12345)
    for column, sacrebleu_result in zip(scores.T, (baseline, system), strict=True):
        assert not isinstance(sacrebleu_result, str)
        ordered = np.sort(column)
        assert column.mean() == pytest.approx(sacrebleu_result.mean)
        assert (ordered[-8] - ordered[7]) / 2 == pytest.approx(sacrebleu_result.ci)  # 1/40 off either end
    # sacrebleu's p, from our samples
    sizes = np.abs(scores[:, 1] - scores[:, 0])
    assert not isinstance(system, str)
    assert not isinstance(baseline, str)
    beyond = (sizes - sizes.mean() > abs(system.score - baseline.score)).sum()
    assert system.p_value == pytest.approx((beyond + 1) / 301)


def test_both_tests_agree_with_sacrebleu_on_significance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACREBLEU_SEED", "12345")
    named: list[tuple[str, Sequence[str]]] = [("good", GOOD), ("fair", FAIR), ("bad", BAD)]
    _, table = PairedTest(named, {"BLEU": BLEU()}, [REFERENCES], test_type="ar", n_samples=1000)()
    for (_, lines), sacrebleu_result in zip(named[1:], table["BLEU"][1:], strict=True):
        assert not isinstance(sacrebleu_result, str)
        ours = paired_randomization(GOOD, lines, REFERENCES, samples=1000)
        assert ours == pytest.approx(sacrebleu_result.p_value, abs=0.03)
        assert (paired_bootstrap(GOOD, lines, REFERENCES, samples=300).p < 0.05) == (ours < 0.05)


def test_a_state_function_with_options_can_be_compared() -> None:
    uppercase = [line.upper() for line in GOOD]
    metric = partial(bleu_state, tokenize="none", lowercase=True)
    assert paired_bootstrap(uppercase, GOOD, REFERENCES, metric=metric, samples=20).p == 1
    assert paired_bootstrap(uppercase, GOOD, REFERENCES, samples=20).p < 1


def test_several_references_can_be_used() -> None:
    both = [[reference, output] for reference, output in zip(REFERENCES, BAD, strict=True)]
    comparison = paired_bootstrap(GOOD, BAD, both, samples=20)
    assert comparison.second.value == pytest.approx(100)
    assert comparison.wins == 0


def test_systems_that_cannot_be_compared_are_an_error() -> None:
    with pytest.raises(DataError, match="2 outputs of the first system but 3 of the second"):
        paired_bootstrap(["a"] * 2, ["a"] * 3, ["a"] * 3)
    with pytest.raises(DataError, match="2 outputs but 3 references"):
        paired_bootstrap(["a"] * 2, ["a"] * 2, ["a"] * 3)
    with pytest.raises(DataError, match="one output per system"):
        paired_bootstrap(["a"], ["b"], ["a"])
    with pytest.raises(DataError, match="nothing to evaluate"):
        paired_bootstrap([], [], [])
    with pytest.raises(DataError, match="samples = 0"):
        paired_randomization(["a"] * 2, ["a"] * 2, ["a"] * 2, samples=0)
    with pytest.raises(DataError, match='"rouge": no such metric; did you mean "rouge-'):
        paired_bootstrap(["a"] * 2, ["a"] * 2, ["a"] * 2, metric="rouge")
