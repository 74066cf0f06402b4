"""The report of `heedful measure` in words: conclusions first, then table rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

JSON = Mapping[str, Any]
SMALL_TVD, LARGE_TVD = 0.1, 0.3  # between them, the outcome "changes"
SMALL_DIFFERENCE = 0.02  # correlations and probability losses closer than this count as equal
LARGE_JSD = 0.3
METHODS = {  # how links follow from weights
    "naive": "weights of the step that generates a word (naive)",
    "shift": "weights of the step after it (shift)",
    "shared": "weights shared out among the output words (shared)",
    "diagonal": "no weights, only the lengths (diagonal)",
}
DEFINITIONS = "docs/faithfulness.md"
CAUTION = "Attention weights show which inputs the model used, not why it decided as it did."


def label(key: str) -> str:
    """Return a key of the report for display.

    >>> label("entropy_ratio")
    'entropy ratio'
    """
    return key.replace("_", " ")


def definitions(report: JSON) -> str:
    """Return where the codes of the tables are defined, or an empty text if there are none."""
    codes = ["the tests T1 to T6"] if "faithfulness" in report else []
    codes += ["the link methods"] if any(True for _ in alignment_rows(report.get("gold", {}))) else []
    return f"{' and '.join(codes)} are defined in {DEFINITIONS}" if codes else ""


def conclusions(report: JSON) -> list[str]:
    """Return what the numbers mean, one sentence each."""
    sentences = [*_gold_conclusions(report["gold"])] if "gold" in report else []
    if "faithfulness" in report:
        sentences += _faithfulness_conclusions(report["faithfulness"])
        sentences.append(CAUTION)
    return sentences


def _gold_conclusions(gold: JSON) -> Iterator[str]:
    if "chosen" in gold:
        chosen = gold["chosen"]
        head = "mean of all heads" if chosen["head"] is None else f"head {chosen['head']}"
        yield (
            f"{chosen['site']}, {head}, aligns best on the first {chosen['found_on']:,} pairs"
            f" (AER {chosen['aer']:.1f}); the figures are of it on the other {chosen['measured_on']:,}."
        )
    ratio = gold["gold_weight"] / max(gold["gold_weight_uniform"], 1e-12)
    yield (
        f"{gold['gold_weight']:.0%} of the attention weight is on gold positions, {ratio:.1f} times as much as with"
        " uniform weights."
    )
    methods = {name: row["aer"] for name, row in gold.items() if name in METHODS and "aer" in row}
    diagonal = methods.pop("diagonal", None)
    if methods and diagonal is not None:
        best = min(methods, key=lambda name: methods[name])
        than = "lower" if methods[best] < diagonal else "not lower"
        yield (
            f"The alignment error rate is {methods[best]:.1f} with {METHODS.get(best, best)}, {than} than that of"
            f" a diagonal alignment ({diagonal:.1f})."
        )


def _faithfulness_conclusions(tests: JSON) -> Iterator[str]:
    decision, positions = tests["decision"], tests["positions"]
    if "permutation" in tests:
        value = tests["permutation"]["median_tvd"]["mean"]
        effect = "hardly changes" if value < SMALL_TVD else "changes" if value < LARGE_TVD else "strongly changes"
        yield f"Permuting the weights {effect} the {decision} (total variation distance {value:.2f} of at most 1)."
    elif "outputs" in tests and "permuted" in tests["outputs"]:
        outputs = tests["outputs"]
        yield (
            f"With permuted weights, the {tests['metric']} goes from {outputs['unchanged']:.1f} to"
            f" {outputs['permuted']:.1f}."
        )
    if "erasure" in tests:
        fractions = {name: order["fraction_erased"] for name, order in tests["erasure"]["until_flip"].items()}
        if all(value is not None for value in fractions.values()):
            best = min(fractions, key=lambda name: fractions[name])
            yield (
                f"Erasing weights by {label(best)} changes the {decision} soonest: after {fractions[best]:.0%} of them,"
                f" in random order after {fractions['random']:.0%}."
            )
    if "correlation" in tests:
        weight = tests["correlation"]["weight_vs_leave_one_out"]["mean"]
        gradient = tests["correlation"]["gradient_vs_leave_one_out"]["mean"]
        difference = weight - gradient
        than = "as well as"
        if abs(difference) > SMALL_DIFFERENCE:
            than = "better than" if difference > 0 else "worse than"
        yield (
            f"Weights rank {positions} {than} gradients do, by the effect of leaving them out"
            f" (rank correlation {weight:.2f} and {gradient:.2f})."
        )
    if "input_erasure" in tests:
        losses = {name: tests["input_erasure"][name]["comprehensiveness"] for name in ("weight", "random")}
        more = "matter more than" if losses["weight"] > losses["random"] + SMALL_DIFFERENCE else "matter no more than"
        yield (
            f"{positions.capitalize()} with large weights {more} random ones: without them the {decision} loses"
            f" {losses['weight']:.2f} of its probability, without random ones {losses['random']:.2f}."
        )
    if "counterfactual" in tests:
        value = tests["counterfactual"]["max_jsd"]["mean"]
        which = "Very different weights" if value > LARGE_JSD else "Only similar weights"
        yield f"{which} lead to the same {decision} (Jensen-Shannon divergence {value:.2f} of at most 0.69)."


def faithfulness_rows(tests: JSON) -> Iterator[tuple[str, str, str]]:
    """Yield for each result of a test its name, its value, and a value to compare it with."""
    decision = tests["decision"]
    for name, result in tests.get("correlation", {}).items():
        spread = f"sd {result['sd']:.2f}, significant in {result['significant']:.0%}"
        yield f"rank correlation, {label(name)} (T1)", f"{result['mean']:.3f}", spread
    largest = f"largest weight {tests.get('largest_weight', 0):.2f}"
    if "permutation" in tests:
        mean = tests["permutation"]["median_tvd"]["mean"]
        yield f"weights permuted: change of the {decision} (T2)", f"{mean:.3f}", largest
    if "uniform" in tests:
        mean = tests["uniform"]["tvd"]["mean"]
        yield f"weights uniform: change of the {decision} (T3)", f"{mean:.3f}", largest
    if "outputs" in tests:
        unchanged = f"unchanged {tests['outputs']['unchanged']:.1f}"
        for test, name in (("T3", "uniform"), ("T2", "permuted")):
            value = f"{tests['outputs'][name]:.1f}"
            yield f"{tests['metric']}, all weights {name} ({test})", value, unchanged
    if "counterfactual" in tests:
        mean = tests["counterfactual"]["max_jsd"]["mean"]
        yield f"different weights, same {decision}: divergence (T4)", f"{mean:.3f}", "at most 0.693"
    if "erasure" in tests:
        yield from _erasure_rows(tests["erasure"], decision)
    for name in ("weight", "gradient", "random"):
        if "input_erasure" in tests:
            result = tests["input_erasure"][name]
            kept = f"kept alone {result['sufficiency']:+.3f}"
            yield f"{tests['positions']} erased, by {name} (T6)", f"{result['comprehensiveness']:+.3f}", kept


def _erasure_rows(erasure: JSON, decision: str) -> Iterator[tuple[str, str, str]]:
    flips = erasure["flips"]
    largest, random = flips["both"] + flips["largest_only"], flips["both"] + flips["random_only"]
    yield f"largest weight erased: {decision} changes (T5)", f"{largest:.1%}", f"random weight {random:.1%}"
    for name, order in erasure["until_flip"].items():
        fraction = "–" if order["fraction_erased"] is None else f"{order['fraction_erased']:.1%}"
        yield f"erased until the {decision} changes, by {label(name)} (T5)", fraction, f"never in {order['never']:.1%}"


def alignment_rows(gold: JSON) -> Iterator[tuple[str, str, str, str]]:
    """Yield the name, AER, precision and recall of every link method, and of every layer."""
    tables = {"": gold, **{f", {site}": methods for site, methods in gold.get("layers", {}).items()}}
    for suffix, methods in tables.items():
        for name, row in methods.items():
            if name in METHODS and "aer" in row:
                yield (
                    f"{METHODS.get(name, name)}{suffix}",
                    f"{row['aer']:.2f}",
                    f"{row['precision']:.2f}",
                    f"{row['recall']:.2f}",
                )


def gold_rows(gold: JSON) -> Iterator[tuple[str, str]]:
    """Yield the agreement with gold that is a fraction."""
    for name, value in gold.items():
        if isinstance(value, float):
            yield label(name), f"{value:.1%}"
