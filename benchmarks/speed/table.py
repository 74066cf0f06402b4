"""From what was measured to Markdown. Pure functions over the conductor's records.

A record is what `run.py` saves of a row: `row`, `when`, `commit`, `machine`, `threads`, `rounds` (for each
the `rate` of every system, larger is better, and for training its `peak_rss_mb`), `peaks` (GFLOP/s of a
matrix product, measured between the rounds) and `notes` (for each system what else is known of it).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

import sizes
from rows import BY_NAME, NAMES, Row

Record = Mapping[str, Any]
LENGTHS = (15.3, 15.8)  # pieces a sentence of the training pairs, end tokens included


class Ratio(NamedTuple):
    """How many times better we are, round by round."""

    middle: float
    least: float
    most: float


def ratio(record: Record, peer: str, ours: str = "heedful") -> Ratio:
    """
    >>> rounds = [{"heedful": {"rate": 3.0}, "onmt": {"rate": r}} for r in (1.0, 1.5, 2.0)]
    >>> ratio({"rounds": rounds}, "onmt")
    Ratio(middle=2.0, least=1.5, most=3.0)
    """
    each = [r[ours]["rate"] / r[peer]["rate"] for r in record["rounds"]]
    return Ratio(median(each), min(each), max(each))


def rate(record: Record, system: str) -> float:
    return median(r[system]["rate"] for r in record["rounds"])


def shown(row: Row, value: float) -> str:
    """A rate as one speaks of it.

    >>> shown(BY_NAME["train-R"], 1857.3), shown(BY_NAME["single-R"], 27.9), shown(BY_NAME["startup"], 0.5)
    ('1,857 tokens/s', '35.8 ms', '2.00 s')
    """
    if row.kind == "train":
        return f"{value:,.0f} tokens/s"
    if row.kind == "startup":
        return f"{1 / value:.2f} s"
    if row.kind == "bleu":
        return f"{1 / value:.1f} min"
    return f"{1000 / value:.1f} ms" if row.how == "single" else f"{value:,.0f} sentences/s"


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    if not lines:
        return []
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *lines)]


def ratios(records: Sequence[Record]) -> list[str]:
    """The main table: a line for each row, of ours and peer."""
    lines = []
    for record in records:
        row = BY_NAME[record["row"]]
        for ours, peer, wanted in row.pairs:
            found = ratio(record, peer, ours)
            least = "" if record["notes"].get(peer, {}).get("reached", True) else "> "  # it was given up
            lines.append(
                [
                    row.title,
                    f"{'int8: ' if ours == 'int8' else ''}{shown(row, rate(record, ours))}",
                    f"{NAMES[peer]}: {least}{shown(row, rate(record, peer))}",
                    f"**{least}{found.middle:.2f}x**",
                    f"{found.least:.2f}-{found.most:.2f}",
                    "" if wanted is None else f"{wanted:g}x",
                    "" if wanted is None else ("yes" if found.middle >= wanted else "no"),
                    f"{len(record['rounds'])}",
                    record["commit"],
                ]
            )
    head = ["what", "we", "peer", "ratio (median)", "least-most", "wanted", "met", "rounds", "commit"]
    return _table(head, lines)


def shares(records: Sequence[Record]) -> list[str]:
    """How much of the machine's matrix product a training uses, and how much memory."""
    lines = []
    for record in records:
        row = BY_NAME[record["row"]]
        if row.kind != "train":
            continue
        peak = max(record["peaks"])
        cost = sizes.flops(row.model, *LENGTHS)
        for system in row.systems:
            speed = rate(record, system)
            memory = max(r[system]["peak_rss_mb"] for r in record["rounds"])
            notes = record["notes"].get(system, {})
            lines.append(
                [
                    f"{row.model}, {NAMES[system]}",
                    f"{speed:,.0f}",
                    f"{speed * cost / 1e9:.1f}",
                    f"{speed * cost / 1e9 / peak:.0%}",
                    f"{memory:,.0f}",
                    f"{notes.get('parameters', 0):,}",
                ]
            )
        lines.append([f"{row.model}, a matrix product of 2048^3", "", f"{peak:.0f}", "100%", "", ""])
    head = [
        "training",
        "tokens/s",
        "GFLOP/s of the model",
        "share of the peak",
        "peak memory, MB",
        "parameters",
    ]
    return _table(head, lines)


def quality(records: Sequence[Record]) -> list[str]:
    """Equal weights, equal outputs: BLEU on the test sentences, and how many are OpenNMT-py's very words."""
    lines = []
    for record in records:
        row = BY_NAME[record["row"]]
        if row.kind not in ("decode", "traced"):
            continue
        for system in row.systems:
            notes = record["notes"].get(system, {})
            same = notes.get("same")
            lines.append(
                [
                    row.title,
                    NAMES[system],
                    f"{notes['bleu']:.1f}" if "bleu" in notes else "",
                    f"{same} of {notes['sentences']}" if same is not None else "",
                    str(notes.get("threads", "")),
                ]
            )
    if not lines:
        return []
    return [
        "CTranslate2 divides a beam's log-probability by its length, the others by Wu's length penalty, so"
        " its beams differ; its weights are in bytes. Threads: within a product, or workers x threads.",
        "",
        *_table(["what", "who", "BLEU", "same as OpenNMT-py", "threads"], lines),
    ]


def memory(records: Sequence[Record]) -> list[str]:
    """Peak memory of training model R beside OpenNMT-py's."""
    for record in records:
        if record["row"] == "train-R":
            ours, theirs = (
                max(r[system]["peak_rss_mb"] for r in record["rounds"]) for system in ("heedful", "onmt")
            )
            met = "yes" if ours <= theirs / 2 else "no"
            return [
                f"Training model R holds {ours:,.0f} MB at most, OpenNMT-py {theirs:,.0f} MB:"
                f" {ours / theirs:.2f} of it (wanted: at most 0.5; met: {met})."
            ]
    return []


def short(records: Sequence[Record]) -> list[str]:
    """Rows below what we want, and what their profile says."""
    lines = []
    for record in records:
        row = BY_NAME[record["row"]]
        for ours, peer, wanted in row.pairs:
            found = ratio(record, peer, ours).middle
            if wanted is not None and found < wanted:
                beside = f"{row.title}, beside {NAMES[peer]}"
                lines.append(
                    f"- **{beside}: {found:.2f}x of {wanted:g}x.** {row.why or 'Not yet looked into'}."
                )
    return lines


OWN = (
    "In the rows of our own model we write with a smaller recurrent model of ours (`speed/own.toml`),"
    " CTranslate2 with model T as OpenNMT-py learnt it in three epochs: BLEU stands below. It compares speed;"
    " how good T becomes with more epochs was not tried."
)


def _section(title: str, lines: Sequence[str]) -> str:
    return "\n".join([f"## {title}", "", *lines]) if lines else ""


def document(records: Sequence[Record], versions: Mapping[str, str], growth: str = "") -> str:
    """The whole of RESULTS.md."""
    last = max(records, key=lambda record: str(record["when"]))
    whom = ", ".join(f"{name} {number}" for name, number in versions.items())
    parts = [
        "# Speed beside JoeyNMT, OpenNMT-py and CTranslate2",
        f"Measured by `make bench` on {last['when'][:10]} at commit {last['commit']} (a row's own commit"
        f" stands beside it), {last['machine']}, {last['threads']} threads. {whom}.",
        "Multi30k en-de, the same 8,000 pieces and sizes for everybody (models R and T: `speed/sizes.py`)."
        " Everybody runs in turn, round after round; a ratio belongs to one round. To write, all have the"
        " weights that OpenNMT-py learnt; text goes in and detokenised text comes out, start-up not counted.",
        OWN if any(BY_NAME[record["row"]].own for record in records) else "",
        "\n".join(ratios(records)),
        "![ratios](results.png)",
        "\n".join(memory(records)),
        _section("Where we fall short, and why", short(records)),
        _section("Training: share of the machine", shares(records)),
        _section("Writing: equal weights, equal outputs", quality(records)),
        growth,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
