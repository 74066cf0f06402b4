"""Multi30k en-de as text and as pieces: one byte-level BPE of 8,000 pieces for both sides and for everybody.

    python benchmarks/speed/prepare.py        # a few seconds; nothing is done twice

The data is looked for in $HEEDFUL_DATA/multi30k.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import places
import sizes
from pieces import Pieces

from heedful.config import TokenizerConfig
from heedful.data.paths import data_folder
from heedful.data.tokenizer import Tokenizer

LANGUAGES = (places.SOURCE, places.TARGET)


def unpack() -> None:
    for split in places.SPLITS:
        for language in LANGUAGES:
            packed = data_folder() / "multi30k" / f"{split}.{language}.gz"
            with gzip.open(packed, "rt", encoding="utf-8") as file:
                _write(places.text(split, language), [line.strip() for line in file])


def learn() -> None:
    """The pieces, learnt from both sides of the training pairs at once."""
    both = (line for language in LANGUAGES for line in places.lines("train", language))
    config = TokenizerConfig(kind="bpe", size=sizes.PIECES, shared=True)
    Tokenizer.learn(both, config).save(places.PIECES)


def cut() -> None:
    pieces = Pieces()
    for split in places.SPLITS:
        for language in LANGUAGES:
            rows = pieces.cut(places.lines(split, language))
            _write(places.cut(split, language), [" ".join(row) for row in rows])
    _write(places.VOCABULARY, pieces.names())  # the last file: with it everything is there


def _write(path: Path, rows: list[str]) -> None:
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


def main() -> None:
    if places.VOCABULARY.is_file():
        return
    places.DATA.mkdir(parents=True, exist_ok=True)
    unpack()
    learn()
    cut()


if __name__ == "__main__":
    main()
