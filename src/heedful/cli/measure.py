"""`heedful measure` on the terminal: numbers beside their baselines, and what they mean in a sentence."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from heedful.errors import DataError, nearest
from heedful.evaluation.alignment import alignment_error
from heedful.record import read_links


def score_links(found: Path, gold: Path, base: int, as_json: bool) -> None:
    """Link files alone."""
    links = [mine.possible for mine in read_links(found)]
    score = alignment_error(links, read_links(gold, base))
    if as_json:
        print(json.dumps(score._asdict()))
        return
    told = f"AER {score.aer:.2f}  precision {score.precision:.2f}  recall {score.recall:.2f}"
    print(f"{told}  ({score.links:,} links)")


def run(
    models: Sequence[Path],
    data: Sequence[str],
    split: str,
    gold: Path | None,
    base: int,
    limit: int,
    tests: Sequence[str],
    steps: int,
    seed: int,
    as_json: bool,
) -> None:
    from heedful.studies.measure import TESTS, Asked, items_of, measure
    from heedful.tasks.bundled import find
    from heedful.tasks.folder import open_model

    unknown = [
        f'--test "{name}": no such test; {nearest(name, (*TESTS, "all", "none"))}'
        for name in tests
        if name not in (*TESTS, "all", "none")
    ]
    if unknown:
        raise DataError("\n".join(unknown))
    if len(models) > 1:
        raise DataError(f"-m: measured is one model at a time; {len(models)} were given")
    (folder,) = find(models, "translate")
    opened = open_model(folder)
    pairs, known = items_of(opened, data, split, gold, base, limit)
    chosen = TESTS if "all" in tests else () if "none" in tests else tests or TESTS[:-1]
    console = Console(highlight=False)

    def say(text: str) -> None:
        if sys.stderr.isatty():
            print(f"measuring: {text}", file=sys.stderr)

    found = measure(opened, pairs, Asked(chosen, steps, seed=seed, say=say), known)
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
        return
    show(console, found)


def show(console: Console, found: Mapping[str, Any]) -> None:
    console.print(f"{found['model']}: {found['sentences']:,} {found['unit']}")
    table = Table("where it looks", "", box=None, pad_edge=False)
    for name, value in found["looks"].items():
        table.add_row(name, f"{value:.1%}")
    console.print(table)
    if "gold" in found:
        _show_gold(console, found["gold"])
    if "tests" in found:
        _show_tests(console, found["tests"])
        for sentence in verdicts(found["tests"]):
            console.print(f"- {sentence}")
        console.print("Weights say where the model read from, not why it said what it said.", style="dim")


def _show_gold(console: Console, gold: Mapping[str, Any]) -> None:
    readings = {name: row for name, row in gold.items() if isinstance(row, Mapping) and "aer" in row}
    if readings:
        table = Table("against gold", "AER", "precision", "recall", box=None, pad_edge=False)
        for name, row in readings.items():
            table.add_row(name, *(f"{row[key]:.2f}" for key in ("aer", "precision", "recall")))
        for site, both in gold.get("layers", {}).items():
            for name, row in both.items():
                cells = (f"{row[key]:.2f}" for key in ("aer", "precision", "recall"))
                table.add_row(f"{name}, {site}", *cells)
        console.print(table)
    mass, even = gold["mass on gold"], gold["mass on gold, uniform"]
    console.print(f"weight on gold words {mass:.1%} (uniform weights: {even:.1%})")
    for name, value in gold.items():
        if isinstance(value, float) and not name.startswith("mass"):
            console.print(f"{name} {value:.1%}")


def _show_tests(console: Console, tests: Mapping[str, Any]) -> None:
    count = f" ({tests['decisions']:,} decisions)" if tests["decisions"] else ""
    table = Table(f"does it matter?{count}", "", "beside it", box=None, pad_edge=False)
    for row in rows(tests):
        table.add_row(*row)
    console.print(table)


def rows(tests: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """What was done, what came of it, and what it is to be held against."""
    for name, found in tests.get("correlation", {}).items():
        told = f"sd {found['sd']:.2f}, significant in {found['significant']:.0%}"
        yield f"T1 rank correlation, {name}", f"{found['mean']:.3f}", told
    decision = tests["decision"]
    largest = f"largest weight {tests.get('largest weight', 0):.2f}"
    if "permutation" in tests:
        found = tests["permutation"]["median TVD"]
        yield f"T2 weights permuted: change of the {decision}", f"{found['mean']:.3f}", largest
    if "uniform" in tests:
        found = tests["uniform"]["TVD"]
        yield f"T3 weights uniform: change of the {decision}", f"{found['mean']:.3f}", largest
    if "outputs" in tests:
        own = tests["outputs"]["as it is"]
        for test, name, op in (("T3", "uniform", "uniform"), ("T2", "permuted", "permute")):
            value = f"{tests['outputs'][op]:.1f}"
            yield f"{test} {tests['quality']}, all weights {name}", value, f"as it is {own:.1f}"
    if "counterfactual" in tests:
        found = tests["counterfactual"]["largest JSD within 0.01"]
        yield f"T4 other weights, same {decision}: how far", f"{found['mean']:.3f}", "at most 0.693"
    if "erasure" in tests:
        table = tests["erasure"]["decision changes"]
        best, other = table["both"] + table["only the best"], table["both"] + table["only the random one"]
        yield f"T5 largest weight erased: {decision} changes", f"{best:.1%}", f"a random one {other:.1%}"
        for name, order in tests["erasure"]["until it changes"].items():
            share = "–" if order["share erased"] is None else f"{order['share erased']:.1%}"
            yield f"T5 erased until it changes, by {name}", share, f"never in {order['never changed']:.1%}"
    if "words" in tests:
        for name in ("weight", "gradient", "random"):
            found = tests["words"][name]
            told = f"kept alone {found['sufficiency']:+.3f}"
            yield f"T6 {tests['things']} erased, by {name}", f"{found['comprehensiveness']:+.3f}", told


def verdicts(tests: Mapping[str, Any]) -> Iterator[str]:
    """What the numbers say, in words."""
    decision, things = tests["decision"], tests["things"].capitalize()
    if "permutation" in tests:
        value = tests["permutation"]["median TVD"]["mean"]
        how = "hardly changes" if value < 0.1 else "changes" if value < 0.3 else "greatly changes"
        yield f"Shuffling the weights {how} the {decision} ({value:.2f} of 1)."
    if "erasure" in tests:
        orders = {k: v["share erased"] for k, v in tests["erasure"]["until it changes"].items()}
        if all(value is not None for value in orders.values()):
            best = min(orders, key=lambda name: orders[name])
            yield (
                f"Erasing by {best} changes the {decision} soonest ({orders[best]:.0%} of the weights,"
                f" by chance {orders['random']:.0%})."
            )
    if "correlation" in tests:
        value = tests["correlation"]["weight and leave-one-out"]["mean"]
        other = tests["correlation"]["gradient and leave-one-out"]["mean"]
        than = (
            "better than" if value > other + 0.02 else "worse than" if value < other - 0.02 else "as well as"
        )
        yield (
            f"Weights rank {tests['things']} {than} gradients do, by what leaving them out changes"
            f" ({value:.2f}, {other:.2f})."
        )
    if "words" in tests:
        by = {name: tests["words"][name]["comprehensiveness"] for name in ("weight", "gradient", "random")}
        if by["weight"] > by["random"] + 0.02:
            told = f"{by['weight']:.2f}, by chance {by['random']:.2f}"
            yield f"{things} that were looked at matter more than others ({told})."
        else:
            yield f"{things} that were looked at matter no more than others."
    if "counterfactual" in tests:
        value = tests["counterfactual"]["largest JSD within 0.01"]["mean"]
        many = (
            "Quite other weights would have led" if value > 0.3 else "Only weights much alike would have led"
        )
        yield f"{many} to the same {decision} (distance {value:.2f} of at most 0.69)."
