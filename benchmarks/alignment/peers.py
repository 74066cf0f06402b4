"""Align a table of sentence pairs with fast_align and eflomal; run by `aligners.py` in an environment of its own.

    pip install systran-align==3.5.0 eflomal==2.0.0
    python peers.py fast_align PAIRS.tsv COUNT LINKS      # writes the links of the first COUNT pairs

fast_align is SYSTRAN's library of it, with the options of its paper (-d -o -v).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path


def fast_align(pairs: list[list[str]], count: int, folder: Path) -> list[str]:
    import systran_align

    joint, forward, reverse = (str(folder / name) for name in ("joint", "forward", "reverse"))
    Path(joint).write_text("".join(f"{source} ||| {target}\n" for source, target in pairs), encoding="utf-8")
    systran_align.generate_alignment_probabilities(joint, forward, reverse, False, 5, True, -4, 4.0, True, True)
    sides = [[pair[side].split() for pair in pairs[:count]] for side in (0, 1)]
    results = systran_align.Aligner(forward, reverse).align_batch(*sides)
    return [" ".join(f"{i}-{j}" for i, j in result["alignments"]) for result in results]


def eflomal(pairs: list[list[str]], count: int, folder: Path) -> list[str]:
    import eflomal as package

    forward, reverse = folder / "forward", folder / "reverse"
    sides = [[pair[side] for pair in pairs] for side in (0, 1)]
    package.Aligner().align(*sides, links_filename_fwd=str(forward), links_filename_rev=str(reverse), quiet=True)
    lines = [path.read_text(encoding="utf-8").splitlines()[:count] for path in (forward, reverse)]
    return ["\t".join(both) for both in zip(*lines, strict=True)]  # both directions, to be symmetrized by heedful


def main() -> None:
    name, path, count, out = sys.argv[1:]
    lines = Path(path).read_text(encoding="utf-8").lower().splitlines()
    with tempfile.TemporaryDirectory() as folder:
        aligner = {"fast_align": fast_align, "eflomal": eflomal}[name]
        links = aligner([line.split("\t") for line in lines], int(count), Path(folder))
    Path(out).write_text("".join(f"{line}\n" for line in links), encoding="utf-8")


if __name__ == "__main__":
    main()
