"""Measure peak memory of building, planning and reading one epoch, while the corpus grows.

    python benchmarks/memory_corpus.py            # about five minutes; writes memory_corpus.md and .png here

Each size runs in its own process, over parallel files of generated pairs: it trains a tokenizer, writes the tokenized
corpus to its cache, plans an epoch, and reads every batch of it.
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


def write_pairs(folder: Path, pairs: int) -> None:
    """Write pairs of 3 to 14 words from a vocabulary of 20,000, a little longer on one side."""
    rng = random.Random(1)
    syllables = [a + b for a in "bdfglmnprst" for b in "aeiou"]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(20_000)]
    with (folder / "source").open("w") as source, (folder / "target").open("w") as target:
        for _ in range(pairs):  # frequencies as in natural language: few common words, many rare ones
            drawn = [words[int(len(words) ** rng.random()) - 1] for _ in range(rng.randint(3, 14))]
            print(*drawn, file=source)
            print(*(word[::-1] for word in drawn), *drawn[: rng.randint(0, 2)], file=target)


def peak_mb() -> float:
    """Return the peak memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(folder: Path) -> dict[str, float]:
    """Return the peak memory after each phase."""
    from heedful.config import DataConfig, TokenizerConfig
    from heedful.data.batch import BucketBatches
    from heedful.data.corpus import open_corpus
    from heedful.data.pairs import PairFiles
    from heedful.data.tokenizer import train_tokenizers

    started = time.time()
    peaks = {"imports": peak_mb()}
    data = DataConfig(train=("source", "target"), valid=("source", "target"), in_memory=0)
    pairs = PairFiles(data.train, folder, data)
    tokenizers = train_tokenizers(pairs, TokenizerConfig(kind="bpe", vocab_size=8_000))
    peaks["vocabulary"] = peak_mb()
    corpus = open_corpus(pairs, *tokenizers, data)
    peaks["corpus"] = peak_mb()
    buckets = BucketBatches(corpus, 4_000, seed=1)
    batches = buckets.n_batches(1)
    peaks["plan"] = peak_mb()
    assert sum(1 for _ in buckets.batches(1)) == batches
    peaks["epoch"] = peak_mb()
    disk = sum(path.stat().st_size for path in (folder / "cache").rglob("*.*") if path.is_file())
    return {**peaks, "pairs": len(corpus), "cache": disk / 2**20, "seconds": time.time() - started}


def draw(rows: list[dict[str, float]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    for phase in PHASES:
        axes.plot([row["pairs"] for row in rows], [row[phase] for row in rows], marker="o", label=f"after {phase}")
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
            "Peak resident memory in MB after each phase (`python benchmarks/memory_corpus.py`), BPE of 8,000",
            "subwords on each side, batches of 4,000 positions.",
            f"From {rows[0]['pairs']:,} to {rows[-1]['pairs']:,} pairs the peak grows by {growth:.0f} MB",
            f"({growth / rows[0]['epoch']:.0%}): the lengths of all pairs and the order of the epoch are",
            "in memory, the text and its token ids are not.",
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
            write_pairs(Path(name), size)
            environment = {**os.environ, "HEEDFUL_CACHE": str(Path(name) / "cache")}
            process = subprocess.run(
                [sys.executable, __file__, name], env=environment, stdout=subprocess.PIPE, check=True
            )
        rows.append(json.loads(process.stdout))
        print(rows[-1], file=sys.stderr, flush=True)
    (HERE / "memory_corpus.md").write_text(table(rows), encoding="utf-8")
    draw(rows, HERE / "memory_corpus.png")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(Path(sys.argv[1]))))
    else:
        main()
