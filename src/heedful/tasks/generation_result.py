"""Outputs with their confidence, and notes about inputs that are unlike the training data."""

from __future__ import annotations

from typing import Any, NamedTuple

from heedful.tasks.limits import Log, warn

MAX_NOTES = 5  # inputs that are named; further ones are counted


class Generation(NamedTuple):
    """The best output of one input, and everything that `--json` prints about it."""

    text: str
    confidence: float | None  # geometric mean of the probabilities of the output's tokens; None for a blank line
    unlike_training: bool | None  # None if the model folder has no statistics of its training data
    record: dict[str, Any]

    def __repr__(self) -> str:
        return f"Generation({self.text!r}, confidence={self.confidence!r}, unlike_training={self.unlike_training})"

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        return dict(self.record)

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Generation:
        """Return the result of a record of `--json`."""
        text = record["outputs"][0]["text"] if record["outputs"] else ""
        return cls(text, record["confidence"], record["unlike_training"], record)


class UnlikeNotes:
    """Notes about inputs that are unlike the training data: the first few by name, the others as a number."""

    def __init__(self, unit: str = "lines", log: Log = warn) -> None:
        self.unit, self.log, self.count = unit, log, 0

    def add(self, place: str, reason: str, consequence: str = "the output may be meaningless") -> None:
        """Note one input."""
        self.count += 1
        if self.count <= MAX_NOTES:
            self.log(f"{place}: {reason}; {consequence}")

    def finish(self) -> None:
        """Report the number of inputs that were not named, and start again."""
        if self.count > MAX_NOTES:
            self.log(f"{self.count - MAX_NOTES:,} more {self.unit} are unlike the training data")
        self.count = 0
