"""docs/results.md from the records, and in each recipe the lines that say what it reached."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rows import PARTS, ROWS, Row

from heedful.studies.compare import Row as Compared
from heedful.studies.compare import markdown

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "results.md"
EVERY_LENGTH = 99  # per cent of the phrase world, at each length that training has seen
RECORDS = Path(__file__).parent / "records"
BEGIN = "# What it reached (written by benchmarks/figures/run.py --report):"
HEAD = """# Figures

Every figure here was reached by the recipe named beside it, on two cores of a laptop-sized machine; the test
data was scored once for each finished training, tuning was done on validation data. Where a later recipe was
begun knowing what an earlier one had on test data, LOG.md says so. `±` is the standard
deviation over seeds. This page is written by

    python benchmarks/figures/run.py --report

from the records in `benchmarks/figures/records`, which hold each run's command, seed, commit, signatures and
time; nothing in its tables was typed by hand. `bleu-moses` is the papers' BLEU on Multi30k: normalised,
tokenised as Moses does, lower-cased. `bleu` is sacrebleu on cased text as it is written: models that read and
write small letters only are far lower there, German nouns being capital.

"""
Records = Mapping[str, Mapping[str, Any]]


def values(record: Mapping[str, Any], metric: str) -> list[float]:
    return [run["test"][metric]["value"] for run in record["runs"] if metric in run["test"]]


def shown(found: list[float]) -> str:
    if not found:
        return "–"
    spread = f" ± {statistics.stdev(found):.2f}" if len(found) > 1 else ""
    return f"{statistics.mean(found):.2f}{spread}"


def bar_shown(row: Row, metric: str, value: float | None, together: bool = False) -> str:
    """The bar (that of the ensemble, if asked), and whether it was reached."""
    bar = (row.together if together else row.bars).get(metric)
    if bar is None:
        return ""
    sign = "≤" if row.at_most(metric) else "≥"
    if value is None:
        return f"{sign} {bar:g}"
    value = round(value, 2)  # as it is shown
    reached = value <= bar if row.at_most(metric) else value >= bar
    return f"{sign} {bar:g} {'✓' if reached else '✗ short'}"


def lines_of(row: Row, record: Mapping[str, Any]) -> Iterator[str]:
    runs = record["runs"]
    if not runs:
        return
    minutes = statistics.mean(run["minutes"] for run in runs)
    for number, metric in enumerate(row.metrics):
        found = values(record, metric)
        title = row.title if number == 0 else ""
        published = row.published if number == 0 else ""
        reached = bar_shown(row, metric, statistics.mean(found) if found else None)
        threads = f", {runs[0]['threads']} threads" if runs[0]["threads"] > 1 else ""
        cost = f"{minutes:.0f} min{threads}" if number == 0 else ""
        recipe = f"`{row.recipe}`" if number == 0 else ""
        yield f"| {title} | {metric} | {shown(found)} | {reached} | {published} | {recipe} | {cost} |"
    if "ensemble" in record:
        for metric in row.metrics:
            value = record["ensemble"]["test"][metric]["value"]
            reached = bar_shown(row, metric, value, together=True)
            yield f"| {len(runs)} of them together | {metric} | {value:.2f} | {reached} | | | |"


def baseline_of(row: Row, record: Mapping[str, Any]) -> Iterator[str]:
    for number, metric in enumerate(row.metrics):
        title, recipe = (record["title"], f"`{record['by']}`") if number == 0 else ("", "")
        yield f"| {title} | {metric} | {record['test'][metric]['value']:.2f} | | | {recipe} | |"


def parts(records: Records) -> Iterator[str]:
    """The mean over rows of a part: of single models, and of ensembles once all are there."""
    for part in PARTS:
        rows = [row for row in ROWS if row.part == part.title]
        done = [row for row in rows if records[row.name]["runs"]]
        if not done:
            continue
        metric = part.metrics[0]
        single = statistics.mean(statistics.mean(values(records[row.name], metric)) for row in done)
        whole = len(done) == len(rows)
        note = "" if whole else f" ({len(done)} of {len(rows)})"
        reached = bar_shown(part, metric, single) if whole else ""
        about = f"{reached} | {part.published} | `{part.recipe}` | |"
        yield f"| {part.title}{note} | {metric} | {single:.2f} | {about}"
        together = [records[row.name].get("ensemble") for row in rows]
        if all(together):
            mean = statistics.mean(found["test"][metric]["value"] for found in together if found)
            reached = bar_shown(part, metric, mean, together=True)
            yield f"| the same, ensembles | {metric} | {mean:.2f} | {reached} | | | |"


def kept(name: str) -> Any:
    """A record that is no row's, where it was made."""
    path = RECORDS / name
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def lengths() -> Iterator[str]:
    """The curve of lengths.py."""
    curves = kept("lengths.curve.json")
    if curves is None:
        return
    yield "\n## Long sentences, with attention and without\n"
    yield "![exact match against the length of the source](lengths.png)\n"
    yield "Phrase world, English to French, fresh test sentences (`python benchmarks/figures/lengths.py`):"
    worst = {name: min(found.items(), key=lambda item: item[1][0]) for name, found in curves.items()}
    said = (
        f"{name} is right in {value:.1f} % at its worst length ({first} words, BLEU {bleu:.1f} there)"
        for name, (first, (value, _, bleu)) in worst.items()
    )
    yield "; ".join(said) + "."
    short = {
        name: [length for length, (value, _, _) in found.items() if value < EVERY_LENGTH]
        for name, found in curves.items()
    }
    told = (f"{name} is below it at {len(at)} of {len(curves[name])} lengths" for name, at in short.items())
    yield f"\nWanted with attention: {EVERY_LENGTH} % at every length; {'; '.join(told)}."


def comparisons() -> Iterator[str]:
    """The tables of compared.py."""
    for path in sorted(RECORDS.glob("*.compare.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        name = path.name.removesuffix(".compare.json")
        yield f"\n## {record['title']}\n"
        yield f"![{record['title']}]({name}.png)\n"
        yield (
            f"`{record['command']}`, commit {record['commit']}, {record['date']}. Mean ± standard deviation"
            f" over {record['seeds']} seeds; p by paired bootstrap of the first seed against the first row.\n"
        )
        yield markdown([Compared(**row) for row in record["rows"]]).rstrip("\n")


def page(records: Records) -> str:
    head = ["| data and model | metric | reached | bar | published | recipe | time, one thread |"]
    head += ["|---|---|---|---|---|---|---|"]
    body = []
    for row in ROWS:
        body += lines_of(row, records[row.name])
        if row.baseline and "test" in records[row.baseline]:
            body += baseline_of(row, records[row.baseline])
    return HEAD + "\n".join([*head, *body, *parts(records), *lengths(), *comparisons()]) + "\n"


def write_report(records: Records) -> None:
    PAGE.write_text(page(records), encoding="utf-8")
    for recipe in dict.fromkeys(row.recipe for row in ROWS):
        _say_in(ROOT / "recipes" / f"{recipe}.toml", [row for row in ROWS if row.recipe == recipe], records)


def _say_in(path: Path, rows: list[Row], records: Records) -> None:
    said = [line for row in rows for line in _said(row, records[row.name])]
    if not said:
        return
    text = path.read_text(encoding="utf-8").partition(BEGIN)[0].rstrip("\n")
    path.write_text("\n".join([text, "", BEGIN, *said]) + "\n", encoding="utf-8")


def _said(row: Row, record: Mapping[str, Any]) -> Iterator[str]:
    runs = record["runs"]
    if not runs:
        return
    metric = row.metrics[0]
    seeds = ", ".join(str(run["seed"]) for run in runs)
    minutes = statistics.mean(run["minutes"] for run in runs)
    yield f"# {row.name}: test {metric} {shown(values(record, metric))} (seeds {seeds})"
    threads = "1 thread" if runs[0]["threads"] == 1 else f"{runs[0]['threads']} threads"
    yield f"#   {minutes:.0f} min on {threads}, {runs[-1]['date']}, commit {runs[-1]['commit']}"
    if "before" in runs[0]:
        yield f"#   {runs[0]['before']} > build/figures/{row.name}.said"
    yield f"#   {runs[0]['command']}"
