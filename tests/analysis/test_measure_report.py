"""What `heedful measure` says about numbers."""

from __future__ import annotations

from typing import Any

import pytest

from heedful.analysis.measure_report import (
    CAUTION,
    alignment_rows,
    conclusions,
    faithfulness_rows,
    gold_rows,
)

FAITHFULNESS: dict[str, Any] = {"decisions": 9, "decision": "label", "metric": "accuracy", "positions": "words"}
CORRELATION = {"sd": 0.2, "significant": 0.5, "decisions": 9}


def conclude(**tests: Any) -> list[str]:
    *sentences, last = conclusions({"faithfulness": {**FAITHFULNESS, **tests}})
    assert last == CAUTION
    return sentences


@pytest.mark.parametrize(
    ("tvd", "effect"), [(0.05, "hardly changes the label"), (0.2, " changes the label"), (0.5, "strongly changes")]
)
def test_the_effect_of_permuting_depends_on_the_distance(tvd: float, effect: str) -> None:
    (sentence,) = conclude(permutation={"median_tvd": {"mean": tvd}})
    assert effect in sentence
    assert f"{tvd:.2f} of at most 1" in sentence


def test_without_decisions_the_metric_of_outputs_is_told() -> None:
    (sentence,) = conclude(outputs={"unchanged": 123.4, "uniform": 140.0, "permuted": 150.0}, metric="perplexity")
    assert sentence == "With permuted weights, the perplexity goes from 123.4 to 150.0."


@pytest.mark.parametrize(
    ("weight", "gradient", "than"), [(0.5, 0.3, "better than"), (0.3, 0.5, "worse than"), (0.4, 0.41, "as well as")]
)
def test_weights_are_compared_with_gradients(weight: float, gradient: float, than: str) -> None:
    (sentence,) = conclude(
        correlation={
            "weight_vs_leave_one_out": {"mean": weight, **CORRELATION},
            "gradient_vs_leave_one_out": {"mean": gradient, **CORRELATION},
        }
    )
    assert f"Weights rank words {than} gradients do" in sentence


def test_the_order_that_flips_decisions_soonest_is_named() -> None:
    orders = {"weight": 0.3, "gradient": 0.4, "gradient_x_weight": 0.2, "random": 0.6}
    until_flip = {name: {"fraction_erased": value, "never": 0.1} for name, value in orders.items()}
    (sentence,) = conclude(erasure={"until_flip": until_flip})
    assert sentence == (
        "Erasing weights by gradient x weight changes the label soonest: after 20% of them, in random order after 60%."
    )
    until_flip["random"]["fraction_erased"] = None  # type: ignore[assignment]
    assert conclude(erasure={"until_flip": until_flip}) == []


@pytest.mark.parametrize(("weight", "more"), [(0.4, "matter more than"), (0.11, "matter no more than")])
def test_words_with_large_weights_are_compared_with_random_ones(weight: float, more: str) -> None:
    losses = {"weight": {"comprehensiveness": weight}, "random": {"comprehensiveness": 0.1}}
    (sentence,) = conclude(input_erasure=losses)
    assert sentence.startswith(f"Words with large weights {more} random ones")


@pytest.mark.parametrize(("jsd", "which"), [(0.5, "Very different weights"), (0.05, "Only similar weights")])
def test_counterfactual_weights_are_similar_or_very_different(jsd: float, which: str) -> None:
    (sentence,) = conclude(counterfactual={"max_jsd": {"mean": jsd}})
    assert sentence.startswith(f"{which} lead to the same label")


ALIGNMENT = {
    "naive": {"aer": 30.0, "precision": 70.0, "recall": 71.0},
    "shift": {"aer": 25.0, "precision": 75.0, "recall": 76.0},
    "diagonal": {"aer": 54.0, "precision": 40.0, "recall": 41.0},
}
GOLD = {**ALIGNMENT, "gold_weight": 0.6, "gold_weight_uniform": 0.2}


def test_agreement_with_gold_is_compared_with_baselines() -> None:
    weight, alignment = conclusions({"gold": GOLD})
    assert weight == "60% of the attention weight is on gold positions, 3.0 times as much as with uniform weights."
    assert alignment == (
        "The alignment error rate is 25.0 with weights of the step after it (shift), lower than that of a"
        " diagonal alignment (54.0)."
    )
    assert len(conclusions({"gold": {"gold_weight": 0.6, "gold_weight_uniform": 0.2}})) == 1


def test_alignment_rows_list_every_method_and_layer() -> None:
    layers = {"cross.0": {"naive": {"aer": 33.0, "precision": 60.0, "recall": 61.0}}}
    rows = list(alignment_rows({**GOLD, "layers": layers}))
    assert rows == [
        ("weights of the step that generates a word (naive)", "30.00", "70.00", "71.00"),
        ("weights of the step after it (shift)", "25.00", "75.00", "76.00"),
        ("no weights, only the lengths (diagonal)", "54.00", "40.00", "41.00"),
        ("weights of the step that generates a word (naive), cross.0", "33.00", "60.00", "61.00"),
    ]
    assert list(gold_rows(GOLD)) == [("gold weight", "60.0%"), ("gold weight uniform", "20.0%")]


def test_every_result_has_a_row_with_a_value_to_compare_with() -> None:
    order = {"fraction_erased": None, "never": 1.0}
    tests = {
        **FAITHFULNESS,
        "correlation": {"weight_vs_gradient": {"mean": 0.4, **CORRELATION}},
        "largest_weight": 0.7,
        "permutation": {"median_tvd": {"mean": 0.3}},
        "uniform": {"tvd": {"mean": 0.2}},
        "outputs": {"unchanged": 90.0, "uniform": 80.0, "permuted": 70.0},
        "counterfactual": {"max_jsd": {"mean": 0.1}},
        "erasure": {
            "flips": {"both": 0.1, "largest_only": 0.2, "random_only": 0.05, "neither": 0.65},
            "until_flip": {"weight": order},
        },
        "input_erasure": {
            name: {"comprehensiveness": 0.25, "sufficiency": -0.5} for name in ("weight", "gradient", "random")
        },
    }
    rows = {name: (value, comparison) for name, value, comparison in faithfulness_rows(tests)}
    assert rows["rank correlation, weight vs gradient (T1)"] == ("0.400", "sd 0.20, significant in 50%")
    assert rows["weights permuted: change of the label (T2)"] == ("0.300", "largest weight 0.70")
    assert rows["accuracy, all weights permuted (T2)"] == ("70.0", "unchanged 90.0")
    assert rows["largest weight erased: label changes (T5)"] == ("30.0%", "random weight 15.0%")
    assert rows["erased until the label changes, by weight (T5)"] == ("–", "never in 100.0%")
    assert rows["words erased, by random (T6)"] == ("+0.250", "kept alone -0.500")
    assert len(rows) == 11
