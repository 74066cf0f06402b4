"""Paired tests: sure of what is sure, silent about nothing, the same from the same seed."""

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
from heedful.evaluation import TALLIES, evaluate, paired_bootstrap, paired_randomisation
from heedful.evaluation.significance import resampled
from heedful.evaluation.translation import bleu_tally


def corpus(items: int, seed: int = 1) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices("abcdefghij", k=rng.randint(5, 12))) for _ in range(items)]


def damaged(lines: list[str], rate: float, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join("x" if rng.random() < rate else word for word in line.split()) for line in lines]


REFERENCES = corpus(120)
GOOD, FAIR, BAD = (damaged(REFERENCES, rate, seed) for rate, seed in ((0.10, 2), (0.14, 3), (0.3, 4)))


@pytest.mark.parametrize("metric", TALLIES)
def test_a_system_against_itself(metric: str) -> None:
    same = paired_bootstrap(FAIR, FAIR, REFERENCES, metric=metric, samples=50)
    assert same.first == same.second
    assert (same.difference, same.low, same.high, same.p, same.wins) == (0, 0, 0, 1, 0)
    assert paired_randomisation(FAIR, FAIR, REFERENCES, metric=metric, samples=50) == 1


@pytest.mark.parametrize("metric", [name for name in TALLIES if name != "length-ratio"])
def test_a_clearly_better_system(metric: str) -> None:
    (first,), (second,) = (evaluate([metric], system, REFERENCES) for system in (GOOD, BAD))
    found = paired_bootstrap(GOOD, BAD, REFERENCES, metric=metric, samples=200)
    assert (found.first, found.second) == (first, second)
    assert found.difference == pytest.approx(first.value - second.value)
    assert found.low < found.difference < found.high
    assert found.low * found.high > 0
    assert found.p < 0.05
    assert found.wins > 0.97  # whichever direction is better
    assert paired_randomisation(GOOD, BAD, REFERENCES, metric=metric, samples=200) < 0.05


def test_swapped_systems_give_the_mirrored_comparison() -> None:
    one, other = (paired_bootstrap(*pair, REFERENCES, samples=200) for pair in ((GOOD, FAIR), (FAIR, GOOD)))
    assert (one.difference, one.low, one.high) == pytest.approx((-other.difference, -other.high, -other.low))
    assert one.p == other.p
    assert one.wins + other.wins == pytest.approx(1)


def test_chance_is_not_taken_for_skill() -> None:
    # two systems of the same quality, twenty times: about one in twenty may look better
    found = [
        paired_bootstrap(
            damaged(REFERENCES, 0.2, 100 + k), damaged(REFERENCES, 0.2, 200 + k), REFERENCES, samples=200
        )
        for k in range(20)
    ]
    assert sum(each.p < 0.05 for each in found) <= 3
    assert sum(each.p > 0.5 for each in found) >= 5
    for each in found:  # the interval and p tell the same
        if each.p < 0.045:
            assert each.low * each.high > 0
        if each.p > 0.06:
            assert each.low <= 0 <= each.high


def test_wins_and_p_by_hand() -> None:
    # the first is right once more, in 2 of 2 items: it ties when that item is not drawn, a chance of 1/4
    found = paired_bootstrap(["a", "b"], ["a", "x"], ["a", "b"], metric="exact", samples=2000)
    assert found.difference == 50
    assert found.wins == pytest.approx(0.75, abs=0.03)
    assert found.p == pytest.approx(2 * (2000 * (1 - found.wins) + 1) / 2001)
    assert (found.low, found.high) == (0, 100)


def test_randomisation_by_hand() -> None:
    # five items, all right against all wrong: of 32 swaps only the two extremes reach the difference
    p = paired_randomisation(["a"] * 5, ["b"] * 5, ["a"] * 5, metric="exact", samples=4000)
    assert p == pytest.approx(2 / 32, abs=0.012)


def test_the_seed_decides() -> None:
    one, again, other = (
        paired_bootstrap(GOOD, FAIR, REFERENCES, samples=100, seed=seed) for seed in (7, 7, 8)
    )
    assert one == again
    assert (one.samples, one.seed) == (100, 7)
    assert (one.low, one.high) != (other.low, other.high)
    assert one.difference == other.difference
    spread = [paired_randomisation(GOOD, FAIR, REFERENCES, samples=100, seed=seed) for seed in (7, 7, 8, 9)]
    assert spread[0] == spread[1]
    assert len(set(spread)) > 1


@pytest.mark.parametrize(("metric", "counter"), [("bleu", BLEU()), ("chrf", CHRF())])
def test_resamples_are_sacrebleus_own(
    metric: str, counter: BLEU | CHRF, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SACREBLEU_SEED", "12345")
    named: list[tuple[str, Sequence[str]]] = [("baseline", FAIR), ("system", GOOD)]
    _, table = PairedTest(named, {metric: counter}, [REFERENCES], test_type="bs", n_samples=300)()
    baseline, system = table[counter.sentence_score("a", ["a"]).name]
    scores = resampled([TALLIES[metric](lines, REFERENCES) for _, lines in named], 300, 12345)
    for column, theirs in zip(scores.T, (baseline, system), strict=True):
        assert not isinstance(theirs, str)
        ordered = np.sort(column)
        assert column.mean() == pytest.approx(theirs.mean)
        assert (ordered[-8] - ordered[7]) / 2 == pytest.approx(theirs.ci)  # 1/40 off either end
    # their reading of p, from our resamples
    sizes = np.abs(scores[:, 1] - scores[:, 0])
    assert not isinstance(system, str)
    assert not isinstance(baseline, str)
    beyond = (sizes - sizes.mean() > abs(system.score - baseline.score)).sum()
    assert system.p_value == pytest.approx((beyond + 1) / 301)


def test_both_tests_agree_with_sacrebleus_on_what_is_significant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACREBLEU_SEED", "12345")
    named: list[tuple[str, Sequence[str]]] = [("good", GOOD), ("fair", FAIR), ("bad", BAD)]
    _, table = PairedTest(named, {"BLEU": BLEU()}, [REFERENCES], test_type="ar", n_samples=1000)()
    for (_, lines), theirs in zip(named[1:], table["BLEU"][1:], strict=True):
        assert not isinstance(theirs, str)
        ours = paired_randomisation(GOOD, lines, REFERENCES, samples=1000)
        assert ours == pytest.approx(theirs.p_value, abs=0.03)
        assert (paired_bootstrap(GOOD, lines, REFERENCES, samples=300).p < 0.05) == (ours < 0.05)


def test_a_protocol_of_the_callers() -> None:
    loud = [line.upper() for line in GOOD]
    protocol = partial(bleu_tally, tokenize="none", lowercase=True)
    assert paired_bootstrap(loud, GOOD, REFERENCES, metric=protocol, samples=20).p == 1
    assert paired_bootstrap(loud, GOOD, REFERENCES, samples=20).p < 1


def test_several_references() -> None:
    both = [[reference, output] for reference, output in zip(REFERENCES, BAD, strict=True)]
    found = paired_bootstrap(GOOD, BAD, both, samples=20)
    assert found.second.value == pytest.approx(100)
    assert found.wins == 0


def test_what_cannot_be_compared() -> None:
    with pytest.raises(DataError, match="2 outputs of the first system but 3 of the second"):
        paired_bootstrap(["a"] * 2, ["a"] * 3, ["a"] * 3)
    with pytest.raises(DataError, match="2 outputs but 3 references"):
        paired_bootstrap(["a"] * 2, ["a"] * 2, ["a"] * 3)
    with pytest.raises(DataError, match="one output a system"):
        paired_bootstrap(["a"], ["b"], ["a"])
    with pytest.raises(DataError, match="nothing to evaluate"):
        paired_bootstrap([], [], [])
    with pytest.raises(DataError, match="samples = 0"):
        paired_randomisation(["a"] * 2, ["a"] * 2, ["a"] * 2, samples=0)
    with pytest.raises(DataError, match='"rouge": no such metric; did you mean "rouge-'):
        paired_bootstrap(["a"] * 2, ["a"] * 2, ["a"] * 2, metric="rouge")
