"""Alignment error rates on the Hansards gold, of three models and two readings, and on the phrase world.

    python benchmarks/alignment/prepare.py
    heedful train benchmarks/alignment/aer-rnnsearch.toml --out build/alignment/rnnsearch     # and the others
    heedful train benchmarks/alignment/aer-world.toml training.seed=1 --out build/alignment/world-1     # 2, 3
    python benchmarks/alignment/run.py            # writes benchmarks/alignment/RESULTS.md

The sentences and links are the 447 of the 2003 shared task; the models never saw them.
"""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

from prepare import DATA, OUT, ROOT

from heedful.data.readers import TextPair
from heedful.record import Links, read_links
from heedful.studies.measure import Asked, items_of, measure
from heedful.tasks.folder import finished, open_model

GOLD = DATA / "word_alignment_gold"
HEAD = """# Alignment error rates

English-French, 447 sentences of the Hansards with sure and possible links (shared task of 2003). Models were
trained on Tatoeba and Multi30k (`prepare.py`), and never saw these sentences; references are forced. `naive`
reads the step that wrote a word, `shift` the first whose query has read it. IBM Model 1 on the same text,
which had seen the test sentences too, has 37.8 (36.4 from French to English); the diagonal has 54.0.

"""
TABLE = """| model | BLEU (held out) | AER naive | AER shift | precision | recall | mass on gold | uniform |
|---|---|---|---|---|---|---|---|
"""
WORLD = """
## The phrase world

500 test sentences of up to ten words, whose links are known (`aer-world.toml`, three seeds). The bar is 2.

"""


def pairs() -> list[TextPair]:
    import gzip

    sides = []
    for side in ("src", "tgt"):
        with gzip.open(GOLD / f"enfr.{side}.gz", "rt", encoding="utf-8") as file:
            sides.append(file.read().splitlines())
    return [TextPair(source, target) for source, target in zip(*sides, strict=True)]


def row(name: str, pairs: list[TextPair], gold: list[Links]) -> str | None:
    folder = OUT / name
    if not finished(folder):
        print(f"{name}: not trained yet")
        return None
    opened = open_model(folder)
    found = measure(opened, pairs, Asked(tests=()), gold)["gold"]
    best = min(("naive", "shift"), key=lambda how: found[how]["aer"])
    line = (
        f"| {name} | {opened.card['figures']['bleu']:.1f} | {found['naive']['aer']:.1f}"
        f" | {found['shift']['aer']:.1f} | {found[best]['precision']:.1f} | {found[best]['recall']:.1f}"
        f" | {found['mass on gold']:.1%} | {found['mass on gold, uniform']:.1%} |"
    )
    print(line)
    return line


def main() -> None:
    gold = read_links(GOLD / "enfr.gold.gz", 1)
    hansards = [row(name, pairs(), gold) for name in ("rnnsearch", "luong", "transformer")]
    world = []
    for name in ("world-1", "world-2", "world-3"):
        if finished(OUT / name):
            items = items_of(open_model(OUT / name), [], "test", None, 0)
            assert items.gold is not None
            world.append(row(name, items.pairs, items.gold))
    commit = subprocess.run(
        ["git", "describe", "--always"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    when = f"{datetime.now(UTC):%Y-%m-%d}, commit {commit.stdout.strip()}"
    tables = ["\n".join([TABLE.strip(), *filter(None, rows)]) for rows in (hansards, world)]
    text = f"{HEAD}{tables[0]}\n{WORLD}{tables[1]}\n\n{when}; `python benchmarks/alignment/run.py`.\n"
    Path(__file__).with_name("RESULTS.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
