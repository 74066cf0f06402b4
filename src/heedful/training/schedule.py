"""Learning-rate schedules and the number of planned steps."""

from __future__ import annotations

import math

from heedful.config import TrainingConfig
from heedful.metrics import higher_is_better


def learning_rate_factor(config: TrainingConfig, step: int, total: int, decays: int = 0, seconds: float = 0.0) -> float:
    """Return the factor on `learning_rate` for the next step, after `step` steps and `seconds` of training.

    The factor rises linearly over `warmup_steps` and then follows the schedule; `decays` counts how often the
    plateau schedule has lowered it. With `max_minutes`, cosine and linear follow whichever of steps and time
    is further along.

    >>> cosine = TrainingConfig(warmup_steps=2, schedule="cosine")
    >>> [round(learning_rate_factor(cosine, step, total=6), 2) for step in range(7)]
    [0.5, 1.0, 1.0, 0.85, 0.5, 0.15, 0.0]
    >>> inverse = TrainingConfig(warmup_steps=4, schedule="inverse-sqrt")
    >>> [round(learning_rate_factor(inverse, step, 99), 2) for step in (0, 3, 15)]
    [0.25, 1.0, 0.5]
    >>> short = TrainingConfig(warmup_steps=0, schedule="linear", max_minutes=2)
    >>> learning_rate_factor(short, step=10, total=1_000_000, seconds=90)
    0.25
    """
    if step < config.warmup_steps:
        return (step + 1) / config.warmup_steps
    progress = (step - config.warmup_steps) / max(1, total - config.warmup_steps)
    if config.max_minutes:
        progress = max(progress, seconds / (60 * config.max_minutes))
    progress = min(1.0, progress)
    match config.schedule:
        case "cosine":
            return 0.5 * (1 + math.cos(math.pi * progress))
        case "linear":
            return 1 - progress
        case "inverse-sqrt":  # Vaswani 2017, equation 3, scaled to 1 at the end of the warm-up
            return math.sqrt(max(1, config.warmup_steps) / (step + 1))
        case "plateau":
            return config.plateau_factor**decays
        case "constant":
            return 1.0


def planned_steps(batches: int, config: TrainingConfig) -> int:
    """Return the steps until `epochs` or `max_steps` ends training; `batches` is per epoch and process.

    >>> planned_steps(5, TrainingConfig(epochs=3, accumulate_grad_batches=2))
    9
    """
    total = math.ceil(batches / config.accumulate_grad_batches) * config.epochs
    return min(total, config.max_steps) if config.max_steps else total


def fit_warmup(config: TrainingConfig, total: int) -> TrainingConfig:
    """Return the settings with a warm-up of a tenth of all steps where it would last longer than the training.

    >>> fit_warmup(TrainingConfig(warmup_steps=600), total=200).warmup_steps
    20
    """
    if config.warmup_steps < total or not config.warmup_steps:
        return config
    return config.model_copy(update={"warmup_steps": total // 10})


def is_improvement(metric: str, new: float, best: float | None) -> bool:
    """Return True if `new` is a better value of this metric than `best`; None: there is none yet.

    >>> is_improvement("loss", 1.0, 2.0), is_improvement("bleu", 1.0, 2.0), is_improvement("bleu", math.nan, None)
    (True, False, False)
    """
    if math.isnan(new):
        return False
    if best is None or math.isnan(best):
        return True
    return new > best if higher_is_better(metric) else new < best
