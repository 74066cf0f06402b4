"""Measure `heedful align` on the Hansards gold links, and fast_align and eflomal beside it.

    python benchmarks/alignment/aligners.py [--peers PYTHON]       # writes benchmarks/alignment/ALIGNERS.md

All learn from the same text: Canadian laws alone, or (ours) with Tatoeba and Multi30k, tokenized like the gold
(`prepare.py`), and as is usual from the 447 test sentences themselves, without their links. PYTHON is that of an
environment with the packages of `peers.py`. Records are kept under `runs:alignment/aligners`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prepare import DATA, OUT, ROOT, read_pairs, tokenize_english, tokenize_french

from heedful.alignment import SYMMETRIZATIONS, AlignerOptions, align_pairs, symmetrize
from heedful.metrics.alignment import score_alignment
from heedful.trace.schema import parse_links, read_links

RUNS = OUT / "aligners"
GOLD = DATA / "word_alignment_gold"
OURS = {
    "heedful align": AlignerOptions(),
    "heedful align --prefix 5": AlignerOptions(prefix=5),
    "heedful align --prior ibm1": AlignerOptions("ibm1"),
}
PEERS = ("fast_align", "eflomal")
TEXTS = {"laws": "laws.tsv", "laws, Tatoeba, Multi30k": "laws-Tatoeba-Multi30k.tsv"}
METHODS = ("grow-diag-final-and", "grow-diag", "intersection", "forward", "reverse")
HEAD = """# Statistical aligners on the Hansards

Alignment error rates on the 447 sentences of the shared task of 2003. All learn from the text named and from these
sentence pairs, without their links (`aligners.py`). *forward* has one English word per French word. CPU time is that of
the whole run. fast_align (systran-align 3.5.0), where it is listed, symmetrizes by itself.

"""


def read_laws() -> Iterator[tuple[str, str]]:
    with gzip.open(DATA / "canada_laws_enfr" / "sentences.tsv.gz", "rt", encoding="utf-8") as file:
        for line in file:
            _, source, target = line.rstrip("\n").split("\t")
            yield source, target


def read_test() -> list[tuple[str, str]]:
    sides = [gzip.decompress((GOLD / f"enfr.{side}.gz").read_bytes()).decode().splitlines() for side in ("src", "tgt")]
    return list(zip(*sides, strict=True))


def prepare() -> dict[str, Path]:
    """Write the texts, the test sentences first."""
    laws = [(tokenize_english(source), tokenize_french(target)) for source, target in read_laws()]
    others = [(tokenize_english(source), tokenize_french(target)) for source, target in read_pairs()]
    paths = {}
    for name, more in {"laws": laws, "laws, Tatoeba, Multi30k": [*laws, *others]}.items():
        paths[name] = RUNS / TEXTS[name]
        pairs = [pair for pair in (*read_test(), *more) if all(side.strip() for side in pair)]
        paths[name].write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return paths


def run_ours(options: AlignerOptions, path: Path, count: int) -> dict[str, Any]:
    start = time.process_time()
    pairs = [tuple(line.split("\t")) for line in path.read_text(encoding="utf-8").splitlines()]
    alignments = list(align_pairs(pairs[:count], pairs[count:], options))  # type: ignore[arg-type]
    seconds = time.process_time() - start
    return {"seconds": seconds, "directions": [[sorted(a.forward), sorted(a.reverse)] for a in alignments]}


def run_peer(name: str, python: str, path: Path, count: int) -> dict[str, Any]:
    links = RUNS / f"{name}.links"
    command = [
        "bash",
        "-c",
        'time "$@"',
        "",
        python,
        str(Path(__file__).with_name("peers.py")),
        name,
        str(path),
        str(count),
    ]
    done = subprocess.run([*command, str(links)], capture_output=True, text=True, check=True)
    times = dict(line.split("\t") for line in done.stderr.splitlines() if line.startswith(("user", "sys")))
    seconds = sum(60 * float(m) + float(s.rstrip("s")) for m, s in (value.split("m") for value in times.values()))
    lines = [line.split("\t") for line in links.read_text(encoding="utf-8").splitlines()]
    return {"seconds": seconds, "directions": [[sorted(parse_links(part).possible) for part in line] for line in lines]}


def score(record: dict[str, Any]) -> dict[str, float]:
    gold = read_links(GOLD / "enfr.gold.gz", 1)
    directions = [[{tuple(link) for link in part} for part in parts] for parts in record["directions"]]
    if len(directions[0]) == 1:
        return {"grow-diag-final-and": score_alignment([parts[0] for parts in directions], gold).aer}
    joined = {method: [symmetrize(*parts, method) for parts in directions] for method in SYMMETRIZATIONS}
    return {method: score_alignment(links, gold).aer for method, links in joined.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", default="", help="Python with the packages of peers.py")
    parser.add_argument("--report", action="store_true", help="only write the table of the records that there are")
    options = parser.parse_args()
    python = options.peers
    RUNS.mkdir(parents=True, exist_ok=True)
    count, rows = len(read_test()), []
    paths = {name: RUNS / file for name, file in TEXTS.items()} if options.report else prepare()
    for name, text in [*((ours, text) for text in paths for ours in OURS), *((peer, "laws") for peer in PEERS)]:
        record = RUNS / f"{paths[text].stem} {name}.json"
        if not record.exists() and not options.report and (name in OURS or python):
            path = paths[text]
            result = run_ours(OURS[name], path, count) if name in OURS else run_peer(name, python, path, count)
            record.write_text(json.dumps(result), encoding="utf-8")
        if record.exists():
            result = json.loads(record.read_text(encoding="utf-8"))
            aer = score(result)
            cells = " | ".join(f"{aer[method]:.1f}" if method in aer else "-" for method in METHODS)
            rows.append(f"| {name} | {text} | {cells} | {result['seconds']:.0f} s |")
            print(rows[-1], flush=True)
    title = f"| aligner | learned from | {' | '.join(METHODS)} | CPU time |\n{'|---' * (len(METHODS) + 3)}|\n"
    commit = subprocess.run(["git", "describe", "--always"], cwd=ROOT, capture_output=True, text=True, check=False)
    when = f"\n\n{datetime.now(UTC):%Y-%m-%d}, commit {commit.stdout.strip()}; `benchmarks/alignment/aligners.py`.\n"
    Path(__file__).with_name("ALIGNERS.md").write_text(HEAD + title + "\n".join(rows) + when, encoding="utf-8")


if __name__ == "__main__":
    main()
