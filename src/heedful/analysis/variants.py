"""Variants of a recipe to compare: combinations of settings, baselines without attention, and the budget."""

from __future__ import annotations

import itertools
import math
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from heedful.errors import ConfigError, Problem
from heedful.tasks.base import Variant

MAX_DIGITS = 12  # of a number of steps


class Budget(NamedTuple):
    """The budget of each training run: minutes, or steps (comparable even if the machine is busy)."""

    minutes: float = 0.0
    steps: int = 0

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Parse a duration or a number of steps.

        >>> Budget.parse("90s"), Budget.parse("1.5h"), Budget.parse("2000steps")
        (Budget(minutes=1.5, steps=0), Budget(minutes=90.0, steps=0), Budget(minutes=0.0, steps=2000))
        """
        number = text.removesuffix("steps")
        if number != text and number.isascii() and number.isdigit() and len(number) <= MAX_DIGITS and int(number):
            return cls(steps=int(number))
        units = {"s": 1 / 60, "m": 1.0, "h": 60.0}
        try:
            minutes = float(text[:-1]) * units[text[-1]]
        except (KeyError, ValueError, IndexError):
            minutes = 0.0
        if not 0.0 < minutes < math.inf:  # 0 minutes would mean no limit
            message = f'"{text}": expected a duration such as 90s, 10m or 1h, or steps such as 2000steps'
            raise ConfigError([Problem("--budget", "", message)])
        return cls(minutes=minutes)

    @property
    def overrides(self) -> list[str]:
        """The settings that make this budget the only limit of a training run."""
        limits = [f"training.max_minutes={self.minutes}", f"training.max_steps={self.steps}"]
        return [*limits, "training.epochs=100000", "training.patience=0"]


def expand_variants(
    vary: Sequence[str], settings: Sequence[str] = (), baselines: Sequence[Variant] = ()
) -> list[Variant]:
    """Return every combination of the given values, then the baselines without attention.

    `vary` has settings with their values ("a.b=1,2"). `settings` has groups of settings that belong together
    ("a.b=1 c.d=2"); the groups are combined with `vary` like the values of one more setting.
    """
    choices: list[list[tuple[str, ...]]] = []
    if settings:
        choices.append([_split_settings(text) for text in settings])
    keys = {setting.partition("=")[0] for groups in choices for group in groups for setting in group}
    for text in vary:
        key, equals, values = text.partition("=")
        if not equals or not values:
            raise ConfigError([Problem("--vary", "", f'"{text}": expected section.key=value,value,...')])
        if key in keys:
            raise ConfigError([Problem("--vary", "", f"{key}: given twice; give all its values in one --vary")])
        keys.add(key)
        choices.append([(f"{key}={value}",) for value in values.split(",")])
    if not choices:
        raise ConfigError([Problem("--vary", "", "nothing to compare: give --vary, --variant or both")])
    combinations = [tuple(itertools.chain(*parts)) for parts in itertools.product(*choices)]
    variants = [Variant(_variant_name(overrides), overrides) for overrides in combinations]
    return [*variants, *baselines]


def _split_settings(text: str) -> tuple[str, ...]:
    """Split a group of settings.

    >>> _split_settings("model.dropout=0.1 model.attention.score=dot")
    ('model.dropout=0.1', 'model.attention.score=dot')
    """
    try:
        settings = tuple(shlex.split(text))
    except ValueError:  # an unclosed quotation mark
        settings = ()
    if not settings or any(not setting.partition("=")[2] for setting in settings):
        example = "model.dropout=0.1 model.tie_embeddings=all"
        message = f'"{text}": expected settings separated by spaces, such as "{example}"'
        raise ConfigError([Problem("--variant", "", message)])
    return settings


def _variant_name(overrides: Sequence[str]) -> str:
    parts = (text.partition("=") for text in overrides)
    return ", ".join(f"{key.rsplit('.', 1)[-1]}={value}" for key, _, value in parts)
