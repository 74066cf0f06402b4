"""Where things lie. Only the standard library: every environment imports it."""

from __future__ import annotations

import os
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CACHE = Path(os.environ.get("HEEDFUL_BENCH", ROOT / "build" / "bench")).absolute()  # never committed
DATA = CACHE / "data"
PIECES = DATA / "pieces.json"  # the tokeniser, as the `tokenizers` library saves it
VOCABULARY = DATA / "vocabulary.txt"  # its pieces, one a line, without the special ones
SCRATCH = CACHE / "scratch"
SOURCE, TARGET = "en", "de"
TEST = "test_2016_flickr"
SPLITS = ("train", "val", TEST)


def text(split: str, language: str) -> Path:
    """Lines as they were typed."""
    return DATA / f"{split}.{language}"


def cut(split: str, language: str) -> Path:
    """The same lines as pieces with spaces between them, for peers that read files."""
    return DATA / f"{split}.pieces.{language}"


def lines(split: str, language: str, count: int = 0) -> list[str]:
    """The first `count` lines of a split (0: all)."""
    found = text(split, language).read_text(encoding="utf-8").split("\n")[:-1]  # at line feeds only
    return found[:count] if count else found


def python(peer: str) -> Path:
    """The interpreter of a peer's own environment."""
    return CACHE / f"env-{peer}" / "bin" / "python"


def checkpoint(model: str) -> Path:
    """OpenNMT-py's trained weights, which everybody decodes with."""
    return CACHE / "onmt" / f"{model}.pt"


def converted(model: str) -> Path:
    """The same weights as a model folder of ours."""
    return CACHE / "heedful" / model


def for_ctranslate2(model: str, precision: str) -> Path:
    return CACHE / "ct2" / f"{model}-{precision}"
