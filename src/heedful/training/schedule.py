"""How the learning rate goes, and how many steps there will be."""

from __future__ import annotations

import math

from heedful.config import TrainingConfig


def share(config: TrainingConfig, step: int, total: int, decays: int = 0, seconds: float = 0.0) -> float:
    """The share of the full rate that the step after `step` others, and `seconds`, gets.

    First a straight rise over `warmup` steps, then what the schedule says; "plateau" has been lowered
    `decays` times so far (see `Plateau`). Where time may end it first, time is what cosine and linear go by.

    >>> cosine = TrainingConfig(warmup=2, schedule="cosine")
    >>> [round(share(cosine, step, total=6), 2) for step in range(7)]
    [0.5, 1.0, 1.0, 0.85, 0.5, 0.15, 0.0]
    >>> [round(share(TrainingConfig(warmup=4, schedule="inverse-sqrt"), step, 99), 2) for step in (0, 3, 15)]
    [0.25, 1.0, 0.5]
    >>> short = TrainingConfig(warmup=0, schedule="linear", max_minutes=2)
    >>> share(short, step=10, total=1_000_000, seconds=90)
    0.25
    """
    if step < config.warmup:
        return (step + 1) / config.warmup
    done = (step - config.warmup) / max(1, total - config.warmup)
    if config.max_minutes:
        done = max(done, seconds / (60 * config.max_minutes))
    done = min(1.0, done)
    match config.schedule:
        case "cosine":
            return 0.5 * (1 + math.cos(math.pi * done))
        case "linear":
            return 1 - done
        case "inverse-sqrt":  # Vaswani 2017, equation 3, scaled to be 1 where the rise ends
            return math.sqrt(max(1, config.warmup) / (step + 1))
        case "plateau":
            return config.decay**decays
        case "constant":
            return 1.0


def steps_planned(batches: int, config: TrainingConfig) -> int:
    """Steps until epochs or max_steps end it; `batches` an epoch and process.

    >>> steps_planned(5, TrainingConfig(epochs=3, accumulate=2))
    9
    """
    total = math.ceil(batches / config.accumulate) * config.epochs
    return min(total, config.max_steps) if config.max_steps else total


LOWER = frozenset({"loss", "perplexity", "ppl", "ter", "wer", "cer", "aer", "error", "mae", "rmse"})


def better(metric: str, new: float, old: float | None) -> bool:
    """Is `new` the better figure? Of errors and those in LOWER less is better, of all others more.

    >>> better("loss", 1.0, 2.0), better("bleu", 1.0, 2.0), better("bleu", float("nan"), None)
    (True, False, False)
    """
    if math.isnan(new):
        return False
    if old is None or math.isnan(old):
        return True
    return new < old if metric in LOWER or metric.endswith("-error") else new > old
