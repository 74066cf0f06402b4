"""Paths of the benchmark. Imports only the standard library: every peer's environment imports this file."""

from __future__ import annotations

import os
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RUNS = Path(os.environ.get("HEEDFUL_RUNS") or Path.home() / ".cache" / "heedful" / "runs")  # never committed
FOLDER = Path(os.environ.get("HEEDFUL_BENCH") or RUNS / "bench").absolute()
DATA = FOLDER / "data"
TOKENIZER = DATA / "subwords.json"  # in the format of the `tokenizers` library
VOCABULARY = DATA / "vocabulary.txt"  # one subword per line, without the special tokens
SCRATCH = FOLDER / "scratch"
SOURCE, TARGET = "en", "de"
TEST = "test_2016_flickr"
SPLITS = ("train", "val", TEST)


def text_file(split: str, language: str) -> Path:
    """Return the file with the original lines of a split."""
    return DATA / f"{split}.{language}"


def subword_file(split: str, language: str) -> Path:
    """Return the file with the same lines as space-separated subwords, for peers that read files."""
    return DATA / f"{split}.subwords.{language}"


def read_lines(split: str, language: str, count: int = 0) -> list[str]:
    """Return the first `count` lines of a split (0: all)."""
    lines = text_file(split, language).read_text(encoding="utf-8").split("\n")[:-1]  # at line feeds only
    return lines[:count] if count else lines


def interpreter(peer: str) -> Path:
    """Return the Python interpreter of a peer's environment."""
    return FOLDER / f"env-{peer}" / "bin" / "python"


def checkpoint(model: str) -> Path:
    """Return OpenNMT-py's trained weights, with which every system decodes."""
    return FOLDER / "onmt" / f"{model}.pt"


def model_folder(model: str) -> Path:
    """Return the heedful model folder with the same weights."""
    return FOLDER / "heedful" / model


def ctranslate2_folder(model: str, precision: str) -> Path:
    """Return the CTranslate2 model with the same weights."""
    return FOLDER / "ct2" / f"{model}-{precision}"
