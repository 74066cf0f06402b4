"""A small corpus and a recipe for it, shared by the tests of bad input."""

from __future__ import annotations

from pathlib import Path

MODEL = """
[model]
embedding = 8
dropout = 0.0
[model.encoder]
hidden = 4
[model.decoder]
hidden = 8
[model.attention]
hidden = 4
[training]
epochs = 1
batch_tokens = 100
threads = 1
[decoding]
max_length = 5
"""
GOOD = "".join(f"the {word} falls\tle {word} tombe\n" for word in "abcdefghij" * 3)
LONG = " ".join(["the"] * 100_000)


def contents(folder: Path) -> dict[Path, bytes | None]:
    """Return every file of a folder with its bytes."""
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def recipe(folder: Path, data: str) -> Path:
    """Write a recipe with this [data] section."""
    (folder / "r.toml").write_text(f"[data]\n{data}\n{MODEL}", encoding="utf-8")
    return folder / "r.toml"


def write_corpus(folder: Path) -> Path:
    """Write good data and a recipe for it into a folder; return the folder."""
    (folder / "good.tsv").write_text(GOOD)
    recipe(folder, 'train = ["good.tsv"]\nvalid = ["good.tsv"]\ntest = ["good.tsv"]')
    return folder
