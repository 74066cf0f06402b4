"""Multi30k to German and to French as one corpus: a word before each source says which is wanted.

    python benchmarks/figures/both.py        # build/figures/both: train, val, val.de, test.de, ...

What `recipes/multi30k-both.toml` says in shell.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path

from run import MODELS

WANTED = {"de": "deutsch", "fr": "français"}
FILES = {  # of the corpus, and what they are made of
    "train": ("train", tuple(WANTED)),
    "val": ("val", tuple(WANTED)),
    "train.de": ("train", ("de",)),
    "train.fr": ("train", ("fr",)),
    "val.de": ("val", ("de",)),
    "val.fr": ("val", ("fr",)),
    "test.de": ("test_2016_flickr", ("de",)),
    "test.fr": ("test_2016_flickr", ("fr",)),
}


def lines(name: str) -> list[str]:
    path = Path(os.environ["HEEDFUL_DATA"]) / "multi30k" / name
    return gzip.decompress(path.read_bytes()).decode().splitlines()


def main() -> None:
    folder = MODELS / "both"
    folder.mkdir(parents=True, exist_ok=True)
    for name, (part, languages) in FILES.items():
        sources, targets = [], []
        for language in languages:
            sources += [f"{WANTED[language]} {line}" for line in lines(f"{part}.en.gz")]
            targets += lines(f"{part}.{language}.gz")
        for end, found in (("en", sources), ("both", targets)):
            (folder / f"{name}.{end}").write_text("\n".join(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
