"""Small language models of every kind that several tests share."""

from __future__ import annotations

from pathlib import Path

from command_line import heedful

RECIPE = """
[task]
kind = "read"
[data]
max_source = 12
[data.world]
train = 300
valid = 30
test = 40
max_words = 7
[model]
preset = "read-lstmn"
embedding = 12
dropout = 0.1
[model.language_model]
hidden = 12
heads = 2
feedforward = 16
[training]
epochs = 3
batch_tokens = 150
learning_rate = 0.02
warmup_steps = 5
threads = 1
"""
CONTIGUOUS = ("data.lm.protocol=contiguous", "data.lm.window=8", "data.lm.context=5")
KINDS: dict[str, tuple[str, ...]] = {
    "lstmn": (),
    "slot": (
        "model.language_model.zero_slot=true",
        "model.language_model.recency=true",
        "model.language_model.layers=2",
        "model.embedding=10",
    ),
    "two-step": ("model.language_model.shortlist=20", "model.language_model.recency=true"),
    "lstm": ("model.language_model.kind=lstm",),
    "transformer": (
        "model.language_model.kind=transformer",
        "model.language_model.layers=2",
        "training.learning_rate=0.01",
    ),
    "running": CONTIGUOUS,
    "running-lstm": ("model.language_model.kind=lstm", *CONTIGUOUS),
    "letters": ("tokenizer.kind=character", "training.max_steps=3", "data.max_source=60"),
}


def train_language_models(folder: Path) -> dict[str, Path]:
    """Train a small model of every kind; the recipe is `r.toml`."""
    (folder / "r.toml").write_text(RECIPE)
    for name, overrides in KINDS.items():
        done = heedful("train", folder / "r.toml", *overrides, "--out", folder / name)
        assert done.returncode == 0, done.stderr
    return {name: folder / name for name in KINDS}
