"""`heedful measure`: statistics of attention weights, agreement with gold, and faithfulness tests.

Attention weights say which inputs a model used, not why it decided as it did. Code for a specific task
is in its MeasureAdapter.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heedful.analysis.faithfulness import DEFAULT_TESTS, TESTS, FaithfulnessOptions, run_faithfulness_tests
from heedful.analysis.measure_report import conclusions
from heedful.errors import DataError, TraceError, nearest
from heedful.tasks.base import LoadedModel
from heedful.tasks.probes import MeasureAdapter
from heedful.tasks.registry import task_of
from heedful.trace.schema import Links, grade_links, no_alignment_message


class MeasureItems(NamedTuple):
    """Items to measure on, with the gold links of each if they are known."""

    items: list[Any]
    gold: list[Links] | None


def load_items(
    loaded: LoadedModel[Any, Any],
    data: Sequence[str],
    split: str,
    gold_file: Path | None,
    base: int,
    limit: int = 0,
) -> MeasureItems:
    """Load items and gold links from files, or from the recipe's data; for generated worlds the gold links are known.

    `base` is the number of the first word in the gold file; `limit` 0 uses all items.
    """
    adapter = _get_adapter(loaded)
    items = adapter.load_items(loaded, data, split)
    gold: list[Links] | None = None
    if gold_file is not None:
        gold = adapter.read_gold(gold_file, base)
    elif items and all(getattr(item, "links", None) is not None for item in items):
        gold = [grade_links(item.links) for item in items]
    if not limit:
        return MeasureItems(items, gold)
    return MeasureItems(items[:limit], None if gold is None else gold[:limit])


def measure(
    loaded: LoadedModel[Any, Any],
    items: Sequence[Any],
    options: FaithfulnessOptions,
    gold: Sequence[Links] | None = None,
) -> dict[str, Any]:
    """Return a report of plain numbers, with keys "attention", "gold" and "faithfulness"."""
    adapter = _get_adapter(loaded)
    if loaded.model.alignment_site is None:
        raise TraceError(no_alignment_message(loaded.name, [site.id for site in loaded.model.sites]))
    if gold is not None and len(gold) != len(items):
        raise DataError(f"{len(items):,} {adapter.unit}, but {len(gold):,} lines of gold links")
    report: dict[str, Any] = {"model": loaded.name, "items": len(items), "unit": adapter.unit}
    report |= adapter.describe_attention(loaded, items, gold)
    if options.tests:
        report["faithfulness"] = run_faithfulness_tests(adapter.make_probe_target(loaded, items), options)
    return report


def measure_data(
    loaded: LoadedModel[Any, Any],
    files: Sequence[str],
    split: str,
    gold: str | Path | None,
    tests: Sequence[str] | None,
    **options: int,
) -> tuple[dict[str, Any], list[str]]:
    """Return the report on some files or a split, and its conclusions; `options` are `limit`, `steps` and `seed`."""
    unknown = [name for name in tests or () if name not in (*TESTS, "all", "none")]
    if unknown:
        raise DataError(f'--test "{unknown[0]}": no such test; {nearest(unknown[0], (*TESTS, "all", "none"))}')
    names = DEFAULT_TESTS if tests is None else TESTS if "all" in tests else () if "none" in tests else tests
    items, links = load_items(loaded, files, split, None if gold is None else Path(gold), 0, options["limit"])
    report = measure(loaded, items, FaithfulnessOptions(names, options["steps"], seed=options["seed"]), links)
    return report, conclusions(report)


def _get_adapter(loaded: LoadedModel[Any, Any]) -> MeasureAdapter:
    return task_of(loaded).adapter
