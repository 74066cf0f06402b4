"""Provenance of a trace: the model, the writing package, and the checks that were run."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from heedful.trace.schema.record import Integer, Record


class ModelInfo(Record):
    """The traced model; `settings` is the [model] section of its recipe."""

    name: str
    task: str = "translate"
    settings: dict[str, Any] = Field(default_factory=dict)
    parameters: Integer | None = None  # how many
    sha256: str | None = None  # of its weights

    @field_validator("settings")
    @classmethod
    def _check_sections(cls, settings: dict[str, Any]) -> dict[str, Any]:
        for name in ("attention", "classifier", "decoder", "encoder"):
            if not isinstance(settings.get(name) or {}, dict):
                raise ValueError(f"{name} is not a section of settings")
        return settings


class Generator(Record):
    """The package that wrote the trace."""

    package: str = "heedful"
    version: str = ""


class Checks(Record):
    """Largest absolute differences between recorded and recomputed numbers; None: not recomputed.

    `row_sum`, `weights` and `context` need the trace alone; `scores`, `features` and `output` (log-probabilities)
    need the model's parameters. `greedy_is_argmax`: each greedy choice is the most likely token. `weights_vary`: the
    weights differ between steps.
    """

    row_sum: float | None = None
    weights: float | None = None
    context: float | None = None
    greedy_is_argmax: bool | None = None
    weights_vary: bool | None = None
    scores: float | None = None
    features: float | None = None
    output: float | None = None
