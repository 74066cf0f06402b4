"""Does memory stay flat while the corpus grows? Peak memory of building, planning and reading one epoch.

    python benchmarks/memory_corpus.py            # about five minutes; writes memory_corpus.md and .png here

Each size runs in a process of its own, over parallel files of generated pairs: a vocabulary is learnt, the
corpus tokenised into its cache, an epoch planned, and every batch of it read.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIZES = (200_000, 500_000, 1_000_000)
PHASES = ("imports", "vocabulary", "corpus", "plan", "epoch")
HERE = Path(__file__).parent


def make(folder: Path, pairs: int) -> None:
    """Pairs like the phrase world's, but of 20,000 words: 3 to 14 words, a little longer on one side."""
    rng = random.Random(1)
    syllables = [a + b for a in "bdfglmnprst" for b in "aeiou"]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(20_000)]
    with (folder / "source").open("w") as source, (folder / "target").open("w") as target:
        for _ in range(pairs):  # few words are common and many rare, as words are
            drawn = [words[int(len(words) ** rng.random()) - 1] for _ in range(rng.randint(3, 14))]
            print(*drawn, file=source)
            print(*(word[::-1] for word in drawn), *drawn[: rng.randint(0, 2)], file=target)


def peak() -> float:
    """The most memory this process has held until now, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(folder: Path) -> dict[str, float]:
    """Peaks after each phase; a phase that needs no more than those before it does not raise them."""
    from heedful.config import DataConfig, TokenizerConfig
    from heedful.data.batch import Buckets
    from heedful.data.corpus import open_corpus
    from heedful.data.readers import Pairs
    from heedful.data.tokenizer import learn_both

    begun = time.time()
    peaks = {"imports": peak()}
    data = DataConfig(train=("source", "target"), valid=("source", "target"), in_memory=0)
    pairs = Pairs(data.train, folder, data)
    tokenizers = learn_both(pairs, TokenizerConfig(kind="bpe", size=8_000))
    peaks["vocabulary"] = peak()
    corpus = open_corpus(pairs, *tokenizers, data)
    peaks["corpus"] = peak()
    buckets = Buckets(corpus, 4_000, seed=1)
    batches = buckets.count(1)
    peaks["plan"] = peak()
    assert sum(1 for _ in buckets.epoch(1)) == batches
    peaks["epoch"] = peak()
    disk = sum(path.stat().st_size for path in (folder / "cache").rglob("*.*") if path.is_file())
    return {**peaks, "pairs": len(corpus), "cache": disk / 2**20, "seconds": time.time() - begun}


def draw(rows: list[dict[str, float]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    for phase in PHASES:
        axes.plot(
            [row["pairs"] for row in rows], [row[phase] for row in rows], marker="o", label=f"after {phase}"
        )
    axes.set(ylim=(0, None), xlim=(0, None), xlabel="pairs", ylabel="peak memory, MB")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=120)


def table(rows: list[dict[str, float]]) -> str:
    head = ["pairs", *(f"after {phase}" for phase in PHASES), "cache on disk", "seconds"]
    lines = [" | ".join(head), "|".join(["---:"] * len(head))]
    for row in rows:
        cells = [f"{row['pairs']:,}", *(f"{row[phase]:.0f}" for phase in PHASES)]
        lines.append(" | ".join([*cells, f"{row['cache']:.0f}", f"{row['seconds']:.0f}"]))
    growth = rows[-1]["epoch"] - rows[0]["epoch"]
    return "\n".join(
        [
            "# Memory while the corpus grows",
            "",
            "Peak resident memory in MB after each phase (`python benchmarks/memory_corpus.py`), 8,000-piece",
            "BPE on each side, batches of 4,000 positions.",
            f"From {rows[0]['pairs']:,} to {rows[-1]['pairs']:,} pairs the peak grows by {growth:.0f} MB",
            f"({growth / rows[0]['epoch']:.0%}): the lengths of all pairs and the order of the epoch are",
            "held, the text and its numbers are not.",
            "",
            *(f"| {line} |" for line in lines),
            "",
            "![peak memory against pairs](memory_corpus.png)",
            "",
        ]
    )


def main() -> None:
    rows = []
    for size in SIZES:
        with tempfile.TemporaryDirectory() as name:
            make(Path(name), size)
            environment = {**os.environ, "HEEDFUL_CACHE": str(Path(name) / "cache")}
            done = subprocess.run(
                [sys.executable, __file__, name], env=environment, stdout=subprocess.PIPE, check=True
            )
        rows.append(json.loads(done.stdout))
        print(rows[-1], file=sys.stderr, flush=True)
    (HERE / "memory_corpus.md").write_text(table(rows), encoding="utf-8")
    draw(rows, HERE / "memory_corpus.png")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(Path(sys.argv[1]))))
    else:
        main()
