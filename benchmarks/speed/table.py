"""Write RESULTS.md from records. Pure functions.

A record is what `run.py` saves of a row: `row`, `when`, `commit`, `machine`, `threads`, `rounds` (per round the `rate`
of every system, higher is better, and for training its `peak_rss_mb`), `peaks` (GFLOP/s of a matrix product, measured
between the rounds) and `notes` (further facts per system).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

import sizes
from rows import BY_NAME, NAMES, Row

Record = Mapping[str, Any]
MEAN_LENGTHS = (15.3, 15.8)  # subwords per training sentence, end tokens included


class Ratio(NamedTuple):
    """Speed of heedful over a peer's: the median and the range over the rounds."""

    median: float
    low: float
    high: float


def speed_ratio(record: Record, peer: str, variant: str = "heedful") -> Ratio:
    """
    >>> rounds = [{"heedful": {"rate": 3.0}, "onmt": {"rate": r}} for r in (1.0, 1.5, 2.0)]
    >>> speed_ratio({"rounds": rounds}, "onmt")
    Ratio(median=2.0, low=1.5, high=3.0)
    """
    ratios = [r[variant]["rate"] / r[peer]["rate"] for r in record["rounds"]]
    return Ratio(median(ratios), min(ratios), max(ratios))


def measured_pairs(record: Record) -> list[tuple[str, str, float | None]]:
    """Return the pairs of a row, without peers that were added after the record was made."""
    return [pair for pair in BY_NAME[record["row"]].pairs if pair[1] in record["rounds"][0]]


def median_rate(record: Record, system: str) -> float:
    return median(r[system]["rate"] for r in record["rounds"])


def format_rate(row: Row, value: float) -> str:
    """Format a rate in the unit of the row.

    >>> tuple(format_rate(BY_NAME[n], v) for n, v in (("train-R", 1857.3), ("single-R", 27.9), ("startup", 0.5)))
    ('1,857 tokens/s', '35.8 ms', '2.00 s')
    """
    if row.kind == "train":
        return f"{value:,.0f} tokens/s"
    if row.kind == "startup":
        return f"{1 / value:.2f} s"
    if row.kind == "memory":
        return f"{1 / value:,.0f} MB"
    if row.kind == "bleu":
        return f"{1 / value:.1f} min"
    return f"{1000 / value:.1f} ms" if row.method == "single" else f"{value:,.0f} sentences/s"


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    if not lines:
        return []
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *lines)]


def ratio_table(records: Sequence[Record]) -> list[str]:
    """Return the main table: one line per row, variant and peer."""
    lines = []
    for record in records:
        row = BY_NAME[record["row"]]
        for variant, peer, target in measured_pairs(record):
            ratio = speed_ratio(record, peer, variant)
            bound = "" if record["notes"].get(peer, {}).get("reached", True) else "> "  # the peer did not finish
            lines.append(
                [
                    row.title,
                    f"{'int8: ' if variant == 'int8' else ''}{format_rate(row, median_rate(record, variant))}",
                    f"{NAMES[peer]}: {bound}{format_rate(row, median_rate(record, peer))}",
                    f"**{bound}{ratio.median:.2f}x**",
                    f"{ratio.low:.2f}-{ratio.high:.2f}",
                    "" if target is None else f"{target:g}x",
                    "" if target is None else ("yes" if ratio.median >= target else "no"),
                    f"{len(record['rounds'])}",
                    record["commit"],
                ]
            )
    head = ["measurement", "heedful", "peer", "ratio (median)", "range", "target", "reached", "rounds", "commit"]
    return _table(head, lines)


def utilization_table(records: Sequence[Record]) -> list[str]:
    """Return the share of the machine's peak that each training uses, and its memory."""
    lines = []
    for record in records:
        row = BY_NAME[record["row"]]
        if row.kind != "train":
            continue
        peak = max(record["peaks"])
        cost = sizes.flops(row.model, *MEAN_LENGTHS)
        for system in row.systems:
            speed = median_rate(record, system)
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
    head = ["training", "tokens/s", "GFLOP/s of the model", "share of the peak", "peak memory, MB", "parameters"]
    return _table(head, lines)


def quality_table(records: Sequence[Record]) -> list[str]:
    """Return BLEU on the test sentences, and how many outputs are identical to OpenNMT-py's."""
    lines = []
    for record in records:
        row = BY_NAME[record["row"]]
        if row.kind not in ("decode", "traced"):
            continue
        for system in record["rounds"][0]:
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
        "CTranslate2 divides a hypothesis's log-probability by its length, the others by Wu's length penalty, so its"
        " beams differ; its weights are int8. Threads: within a product, or workers x threads.",
        "",
        *_table(["measurement", "system", "BLEU", "same as OpenNMT-py", "threads"], lines),
    ]


def memory_sentence(records: Sequence[Record]) -> list[str]:
    """Return the peak memory of training model R next to OpenNMT-py's."""
    for record in records:
        if record["row"] == "train-R":
            ours, theirs = (max(r[system]["peak_rss_mb"] for r in record["rounds"]) for system in ("heedful", "onmt"))
            reached = "yes" if ours <= theirs / 2 else "no"
            return [
                f"Peak memory of training model R: heedful {ours:,.0f} MB, OpenNMT-py {theirs:,.0f} MB, ratio"
                f" {ours / theirs:.2f} (target: at most 0.5; reached: {reached})."
            ]
    return []


def missed_targets(records: Sequence[Record]) -> list[str]:
    """Return the rows below their target, with the explanation."""
    lines = []
    for record in records:
        row = BY_NAME[record["row"]]
        for variant, peer, target in measured_pairs(record):
            ratio = speed_ratio(record, peer, variant).median
            if target is not None and ratio < target:
                comparison = f"{row.title}, against {NAMES[peer]}"
                explanation = row.explanation or "Not yet investigated"
                lines.append(f"- **{comparison}: {ratio:.2f}x, target {target:g}x.** {explanation}.")
    return lines


OWN_MODEL_NOTE = (
    "In the rows of our own model, heedful decodes with a smaller recurrent model (`speed/own.toml`) and CTranslate2"
    " with model T as OpenNMT-py trained it in three epochs; BLEU is below. These rows compare speed; how good T"
    " becomes with more epochs was not tried."
)


def _section(title: str, lines: Sequence[str]) -> str:
    return "\n".join([f"## {title}", "", *lines]) if lines else ""


def make_document(records: Sequence[Record], versions: Mapping[str, str], growth: str = "") -> str:
    """Return the text of RESULTS.md."""
    last = max(records, key=lambda record: str(record["when"]))
    packages = ", ".join(f"{name} {number}" for name, number in versions.items())
    parts = [
        "# Speed next to JoeyNMT, OpenNMT-py and CTranslate2",
        f"Measured by `make bench` on {last['when'][:10]} at commit {last['commit']} (each row has its own commit),"
        f" {last['machine']}, {last['threads']} threads,"
        f" int8 kernels: {last.get('kernels', 'not recorded')}. {packages}.",
        "Multi30k en-de, the same 8,000 subwords and model sizes for all systems (models R and T: `speed/sizes.py`)."
        " The systems are measured in turn, round by round; a ratio is taken within one round. For decoding, all"
        " systems use the weights that OpenNMT-py trained; time is from text to detokenized text, without start-up.",
        OWN_MODEL_NOTE if any(BY_NAME[record["row"]].own_model for record in records) else "",
        "\n".join(ratio_table(records)),
        "![ratios](results.png)",
        "\n".join(memory_sentence(records)),
        _section("Missed targets, and why", missed_targets(records)),
        _section("Training: share of the machine", utilization_table(records)),
        _section("Decoding: equal weights, equal outputs", quality_table(records)),
        growth,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
