"""Alignment error rates on the Hansards gold, of three models and two readings.

    python benchmarks/alignment/prepare.py
    heedful train benchmarks/alignment/aer-rnnsearch.toml --out build/alignment/rnnsearch     # and the others
    python benchmarks/alignment/run.py            # writes benchmarks/alignment/RESULTS.md

The sentences and links are the 447 of the 2003 shared task; the models never saw them.
"""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

from prepare import DATA, OUT, ROOT

from heedful.data.readers import TextPair
from heedful.record import read_links
from heedful.studies.measure import Asked, measure
from heedful.tasks.folder import finished, open_model

GOLD = DATA / "word_alignment_gold"
HEAD = """# Alignment error rates

English-French, 447 sentences of the Hansards with sure and possible links (shared task of 2003). Models were
trained on Tatoeba and Multi30k (`prepare.py`), and never saw these sentences; references are forced. `naive`
reads the step that wrote a word, `shift` the first whose query has read it. IBM Model 1 on the same text,
which had seen the test sentences too, has 37.8 (36.4 from French to English); the diagonal has 54.0.

| model | BLEU (held out) | AER naive | AER shift | precision | recall | mass on gold | uniform |
|---|---|---|---|---|---|---|---|
"""


def pairs() -> list[TextPair]:
    import gzip

    sides = []
    for side in ("src", "tgt"):
        with gzip.open(GOLD / f"enfr.{side}.gz", "rt", encoding="utf-8") as file:
            sides.append(file.read().splitlines())
    return [TextPair(source, target) for source, target in zip(*sides, strict=True)]


def main() -> None:
    gold = read_links(GOLD / "enfr.gold.gz", 1)
    rows = []
    for name in ("rnnsearch", "luong", "transformer"):
        folder = OUT / name
        if not finished(folder):
            print(f"{name}: not trained yet")
            continue
        opened = open_model(folder)
        found = measure(opened, pairs(), Asked(tests=()), gold)["gold"]
        best = min(("naive", "shift"), key=lambda how: found[how]["aer"])
        rows.append(
            f"| {name} | {opened.card['figures']['bleu']:.1f} | {found['naive']['aer']:.1f}"
            f" | {found['shift']['aer']:.1f} | {found[best]['precision']:.1f} | {found[best]['recall']:.1f}"
            f" | {found['mass on gold']:.1%} | {found['mass on gold, uniform']:.1%} |"
        )
        print(rows[-1])
    commit = subprocess.run(
        ["git", "describe", "--always"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    when = f"{datetime.now(UTC):%Y-%m-%d}, commit {commit.stdout.strip()}"
    tail = f"\n{when}; `python benchmarks/alignment/run.py`.\n"
    Path(__file__).with_name("RESULTS.md").write_text(HEAD + "\n".join(rows) + "\n" + tail, encoding="utf-8")


if __name__ == "__main__":
    main()
