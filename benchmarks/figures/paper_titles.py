"""Write abstracts and titles of papers as training, validation and test data of `paper-titles`.

    python benchmarks/figures/paper_titles.py         # runs:figures/papers/{train,valid,test}.tsv

Papers until 2023 are for training, those of 2024 for validation, later ones for testing. Papers whose title or
abstract is also in an earlier year are left out.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator

from run import MODELS

from heedful.data.paths import locate

SOURCE = "data:acl_abstract_title/all.tsv.gz"
SPLITS = {"train": range(2016, 2024), "valid": range(2024, 2025), "test": range(2025, 2100)}
MIN_WORDS = 15  # shorter abstracts are fragments


def read_papers() -> Iterator[tuple[int, str, str]]:
    """Yield year, abstract and title."""
    with gzip.open(locate(SOURCE, MODELS), "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            _, year, title, abstract = line.rstrip("\n").split("\t")
            yield int(year), abstract.strip(), title.strip()


def main() -> None:
    folder = MODELS / "papers"
    folder.mkdir(parents=True, exist_ok=True)
    papers = sorted(read_papers(), key=lambda paper: paper[0])
    seen: set[str] = set()
    lines: dict[str, list[str]] = {split: [] for split in SPLITS}
    for year, abstract, title in papers:
        keys = {abstract.lower(), title.lower()}
        if len(abstract.split()) >= MIN_WORDS and title and not keys & seen:
            split = next(split for split, years in SPLITS.items() if year in years)
            lines[split].append(f"{abstract}\t{title}\n")
        seen |= keys
    for split, rows in lines.items():
        (folder / f"{split}.tsv").write_text("".join(rows), encoding="utf-8")
        print(f"{split}: {len(rows):,} papers")


if __name__ == "__main__":
    main()
