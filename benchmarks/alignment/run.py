"""Measure alignment error rates of three models on the Hansards gold, and on the phrase world.

    python benchmarks/alignment/prepare.py
    heedful train benchmarks/alignment/aer-rnnsearch.toml --out $HEEDFUL_RUNS/alignment/rnnsearch     # and the others
    heedful train benchmarks/alignment/aer-world.toml training.seed=1 --out $HEEDFUL_RUNS/alignment/world-1     # 2, 3
    python benchmarks/alignment/run.py            # writes benchmarks/alignment/RESULTS.md

The gold has the 447 sentences of the 2003 shared task; the models never saw them.
"""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prepare import DATA, OUT, ROOT

from heedful.analysis.faithfulness import FaithfulnessOptions
from heedful.analysis.measure import load_items, measure
from heedful.data.pairs import TextPair
from heedful.tasks.model_card import is_finished
from heedful.tasks.model_folder import load_model
from heedful.trace.schema import LINK_METHODS, Links, read_links

GOLD = DATA / "word_alignment_gold"
INTRODUCTION = """# Alignment error rates

English-French, 447 sentences of the Hansards with sure and possible links (shared task of 2003). Models were trained on
Tatoeba and Multi30k (`prepare.py`) and never saw these sentences; references are forced. Links come from the weights
of the step that wrote a word (`naive`), of the first step whose query has read it (`shift`), or of the step that wrote
it after the weights of each source word were normalized over the sentence (`shared`). Precision and recall are those of
the best reading. IBM Model 1 on the same text, which had seen the test sentences too, has 37.8 (36.4 from French to
English); the diagonal has 54.0.

"""
TABLE = """| model | BLEU | naive | shift | shared | precision | recall | mass on gold | uniform |
|---|---|---|---|---|---|---|---|---|
"""
WORLD = """
## The phrase world

500 test sentences of up to ten words, whose links are known (`aer-world.toml`, three seeds). The target is 2.

"""


def pairs() -> list[TextPair]:
    import gzip

    sides = []
    for side in ("src", "tgt"):
        with gzip.open(GOLD / f"enfr.{side}.gz", "rt", encoding="utf-8") as file:
            sides.append(file.read().splitlines())
    return [TextPair(source, target) for source, target in zip(*sides, strict=True)]


def rows(name: str, pairs: list[TextPair], gold: list[Links]) -> list[str]:
    """The usual site, and of several layers each."""
    folder = OUT / name
    if not is_finished(folder):
        print(f"{name}: not trained yet")
        return []
    loaded = load_model(folder)
    found = measure(loaded, pairs, FaithfulnessOptions(tests=()), gold)["gold"]
    bleu = f"{loaded.card['figures']['bleu']:.1f}"
    mass = f"{found['gold_weight']:.1%} | {found['gold_weight_uniform']:.1%}"
    lines = [_line(name, bleu, found, mass)]
    for site, both in found.get("layers", {}).items():
        lines.append(_line(f"{name}, {site}", "", both, "|"))
    print("\n".join(lines))
    return lines


def _line(name: str, bleu: str, found: dict[str, Any], mass: str) -> str:
    best = min(LINK_METHODS, key=lambda how: found[how]["aer"])
    both = " | ".join(f"{found[how]['aer']:.1f}" for how in LINK_METHODS)
    rates = " | ".join(f"{found[best][key]:.1f}" for key in ("precision", "recall"))
    return f"| {name} | {bleu} | {both} | {rates} | {mass} |"


def main() -> None:
    gold = read_links(GOLD / "enfr.gold.gz", 1)
    hansards = [line for name in ("rnnsearch", "luong", "transformer") for line in rows(name, pairs(), gold)]
    world: list[str] = []
    for name in ("world-1", "world-2", "world-3"):
        if is_finished(OUT / name):
            items = load_items(load_model(OUT / name), [], "test", None, 0)
            assert items.gold is not None
            world += rows(name, items.items, items.gold)
    commit = subprocess.run(["git", "describe", "--always"], cwd=ROOT, capture_output=True, text=True, check=False)
    when = f"{datetime.now(UTC):%Y-%m-%d}, commit {commit.stdout.strip()}"
    tables = ["\n".join([TABLE.strip(), *lines]) for lines in (hansards, world)]
    text = f"{INTRODUCTION}{tables[0]}\n{WORLD}{tables[1]}\n\n{when}; `python benchmarks/alignment/run.py`.\n"
    Path(__file__).with_name("RESULTS.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
