"""Write Multi30k English-German and English-French as one corpus, with a language word before each source sentence.

    python benchmarks/figures/joint_corpus.py        # runs:figures/both/{train,val,val.de,test.de,...}

`recipes/multi30k-both.toml` shows the same as shell commands.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path

from run import MODELS

LANGUAGE_WORDS = {"de": "deutsch", "fr": "français"}
FILES = {  # output name: Multi30k split, languages
    "train": ("train", tuple(LANGUAGE_WORDS)),
    "val": ("val", tuple(LANGUAGE_WORDS)),
    "train.de": ("train", ("de",)),
    "train.fr": ("train", ("fr",)),
    "val.de": ("val", ("de",)),
    "val.fr": ("val", ("fr",)),
    "test.de": ("test_2016_flickr", ("de",)),
    "test.fr": ("test_2016_flickr", ("fr",)),
}


def read_lines(name: str) -> list[str]:
    path = Path(os.environ["HEEDFUL_DATA"]) / "multi30k" / name
    return gzip.decompress(path.read_bytes()).decode().splitlines()


def main() -> None:
    folder = MODELS / "both"
    folder.mkdir(parents=True, exist_ok=True)
    for name, (split, languages) in FILES.items():
        sources, targets = [], []
        for language in languages:
            sources += [f"{LANGUAGE_WORDS[language]} {line}" for line in read_lines(f"{split}.en.gz")]
            targets += read_lines(f"{split}.{language}.gz")
        for suffix, lines in (("en", sources), ("both", targets)):
            (folder / f"{name}.{suffix}").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
