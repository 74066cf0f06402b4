"""Write Multi30k en-de as text and as subwords: one byte-level BPE of 8,000 for both languages and all systems.

    python benchmarks/speed/prepare.py        # a few seconds; does nothing if the files exist

Reads $HEEDFUL_DATA/multi30k.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import paths
import sizes
from subwords import SubwordTokenizer

from heedful.config import TokenizerConfig
from heedful.data.paths import data_folder
from heedful.data.tokenizer import Tokenizer

LANGUAGES = (paths.SOURCE, paths.TARGET)


def unpack() -> None:
    for split in paths.SPLITS:
        for language in LANGUAGES:
            archive = data_folder() / "multi30k" / f"{split}.{language}.gz"
            with gzip.open(archive, "rt", encoding="utf-8") as file:
                _write(paths.text_file(split, language), [line.strip() for line in file])


def train_tokenizer() -> None:
    """Train one BPE on both sides of the training pairs."""
    both = (line for language in LANGUAGES for line in paths.read_lines("train", language))
    config = TokenizerConfig(kind="bpe", vocab_size=sizes.VOCABULARY_SIZE, shared=True)
    Tokenizer.train(both, config).save(paths.TOKENIZER)


def tokenize() -> None:
    tokenizer = SubwordTokenizer()
    for split in paths.SPLITS:
        for language in LANGUAGES:
            rows = tokenizer.split(paths.read_lines(split, language))
            _write(paths.subword_file(split, language), [" ".join(row) for row in rows])
    _write(paths.VOCABULARY, tokenizer.vocabulary())  # last: its existence means that all files exist


def _write(path: Path, rows: list[str]) -> None:
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


def main() -> None:
    if paths.VOCABULARY.is_file():
        return
    paths.DATA.mkdir(parents=True, exist_ok=True)
    unpack()
    train_tokenizer()
    tokenize()


if __name__ == "__main__":
    main()
