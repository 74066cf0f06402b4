"""Settings that follow from a task and the size of its data, for training without a recipe. Imports no torch.

The numbers are those of the recipes of this package, interpolated between their sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Settings = dict[str, Any]
VALIDATION_ROWS = 1_000  # at most; a tenth of the data at most
SPLIT_SEED = 1  # not 0: the file may be one part of a split by this hash, and the others would be empty
MAX_WARMUP = 400
MAX_SHARE_OF_WARMUP = 0.1  # of all steps


class DataSize:
    """What the settings depend on: rows, and the mean number of words on each side."""

    def __init__(self, rows: int, source_words: float = 0.0, target_words: float = 0.0) -> None:
        self.rows = max(1, rows)
        self.source_words, self.target_words = source_words, target_words

    def scaled(self, value: float, at: int, power: float, low: float, high: float) -> int:
        """Return `value` at `at` rows, a power of the number of rows elsewhere, within limits.

        >>> [DataSize(rows).scaled(40, at=2_000, power=-0.4, low=3, high=60) for rows in (100, 2_000, 100_000)]
        [60, 40, 8]
        """
        factor: float = (self.rows / at) ** power
        return round(min(high, max(low, value * factor)))


def auto_settings(task: str, size: DataSize) -> Settings:
    """Return the sections [tokenizer], [model], [training] and [decoding] for a task and the size of its data."""
    settings = BY_TASK.get(task, _translate)(size)
    training = settings["training"]
    if "batch_tokens" in training and task != "recommend":
        words = max(size.source_words, size.target_words) * TOKENS_PER_WORD + 1
        steps = training["epochs"] * size.rows * words / training["batch_tokens"]
        training["warmup_steps"] = max(1, round(min(MAX_WARMUP, MAX_SHARE_OF_WARMUP * steps)))
    return {**settings, "training": {**training, "keep_best": True}}


TOKENS_PER_WORD = 1.4  # subwords and padding


def split_settings(task: str, rows: int) -> Settings:
    """Return the share of the training data that is held out for validation."""
    if task == "recommend":
        return {}
    held_out: Settings = {"split_valid": round(min(0.1, VALIDATION_ROWS / max(1, rows)), 5)}
    return held_out if task == "caption" else {**held_out, "split_seed": SPLIT_SEED}  # images are split by their names


def _translate(size: DataSize) -> Settings:
    hidden = 192 if size.rows < 20_000 else 256
    return {
        "tokenizer": {"kind": "bpe", "vocab_size": size.scaled(2_000, 2_000, 0.5, 400, 16_000), "shared": True},
        "model": {
            "preset": "cgru",
            "embedding": hidden,
            "dropout": 0.4 if size.rows < 20_000 else 0.3 if size.rows < 200_000 else 0.2,
            "tie_embeddings": "all",
            "encoder": {"hidden": hidden},
            "decoder": {"hidden": hidden + 64},
            "attention": {"hidden": hidden},
        },
        "training": {
            "epochs": size.scaled(40, 2_000, -0.4, 3, 60),
            "batch_tokens": size.scaled(500, 2_000, 0.28, 300, 3_000),
            "learning_rate": 0.002,
            "adam_betas": [0.9, 0.98],
            "label_smoothing": 0.1,
            "metric": "bleu",
        },
        "decoding": {"method": "beam", "beam": 5},
    }


def _summarize(size: DataSize) -> Settings:
    settings = _translate(size)
    settings["model"]["copying"] = True  # names and numbers are copied from the source
    settings["training"]["metric"] = "rouge-1"
    return settings


def _reply(size: DataSize) -> Settings:
    settings = _translate(size)
    settings["training"]["metric"] = "loss"  # there are many right replies
    return settings


def _transduce(size: DataSize) -> Settings:
    settings = _translate(size)
    one_word = size.source_words < 1.5
    settings["tokenizer"] = {
        "kind": "character" if one_word else "word",
        "target_kind": "character" if size.target_words < 1.5 else "word",
    }
    settings["model"] |= {"tie_embeddings": "output", "dropout": 0.2}
    settings["training"] |= {"metric": "exact", "epochs": size.scaled(25, 8_000, -0.4, 3, 60)}
    return settings


def _classify(size: DataSize) -> Settings:
    return {
        "tokenizer": {
            "kind": "bpe",
            "vocab_size": size.scaled(3_000, 10_000, 0.5, 500, 16_000),
            "lowercase": True,
            "bpe_dropout": 0.1,
        },
        "model": {
            "preset": "classify-learned",
            "embedding": 200,
            "dropout": 0.5,
            "encoder": {"hidden": 160},
            "classifier": {"dropout": 0.4, "word_dropout": 0.1},
            "attention": {"hidden": 64},
        },
        "training": {
            "epochs": size.scaled(14, 10_000, -0.4, 3, 40),
            "batch_tokens": size.scaled(600, 10_000, 0.3, 200, 3_000),
            "learning_rate": 0.003,
            "adam_betas": [0.9, 0.98],
            "label_smoothing": 0.1,
            "ema": 0.995 if size.rows >= 5_000 else 0.98,
            "metric": "accuracy",
        },
    }


def _recommend(size: DataSize) -> Settings:
    return {
        "model": {"preset": "nais-prod", "embedding": 16, "attention": {"hidden": 16, "beta": 0.5}},
        "training": {
            "epochs": size.scaled(20, 140_000, -0.3, 5, 60),
            "batch_tokens": size.scaled(5_500, 140_000, 0.3, 550, 11_000),
            "negatives": 10,
            "learning_rate": 0.003,
            "grad_clip": 0.0,
            "warmup_steps": 10,
            "metric": "ndcg@10",
        },
    }


def _caption(size: DataSize) -> Settings:
    return {
        "tokenizer": {"kind": "word", "min_count": 1 if size.rows < 2_000 else 2 if size.rows < 10_000 else 4},
        "model": {
            "preset": "caption-soft",
            "embedding": 256,
            "dropout": 0.4,
            "tie_embeddings": "output",
            "encoder": {"hidden": 384},
            "decoder": {"hidden": 384},
            "attention": {"hidden": 256},
        },
        "training": {
            "epochs": size.scaled(8, 30_000, -0.3, 4, 40),
            "batch_tokens": size.scaled(1_500, 30_000, 0.3, 300, 3_000),
            "learning_rate": 0.001,
            "adam_betas": [0.9, 0.98],
            "label_smoothing": 0.1,
            "metric": "cider",
        },
        "decoding": {"method": "beam", "beam": 5, "length_penalty": 0.7, "max_length": 40},
    }


def _read(size: DataSize) -> Settings:
    return {
        "tokenizer": {"kind": "word", "vocab_size": 10_000, "min_count": 1 if size.rows < 5_000 else 2},
        "model": {
            "preset": "read-lstmn",
            "embedding": 256,
            "dropout": 0.4,
            "language_model": {"hidden": 256, "word_dropout": 0.1, "recency": True},
        },
        "training": {
            "epochs": size.scaled(10, 40_000, -0.3, 3, 40),
            "batch_tokens": size.scaled(1_000, 40_000, 0.2, 300, 3_000),
            "learning_rate": 0.003,
            "grad_clip": 0.5,
            "metric": "perplexity",
        },
    }


BY_TASK: Mapping[str, Callable[[DataSize], Settings]] = {
    "translate": _translate,
    "summarize": _summarize,
    "reply": _reply,
    "transduce": _transduce,
    "classify": _classify,
    "recommend": _recommend,
    "caption": _caption,
    "read": _read,
}
