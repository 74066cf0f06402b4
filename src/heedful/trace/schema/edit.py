"""Edits of a model's attention, and counterfactual outputs."""

from __future__ import annotations

from typing import Literal

from heedful.trace.schema.record import Integer, Record
from heedful.trace.schema.step import Candidate


class Edit(Record):
    """A change to a generation: an operation at a site, step, head and source position."""

    op: Literal["set", "onehot", "zero", "uniform", "permute", "gold", "mask-head", "source", "prefix"]
    site: str | None = None  # None: the alignment site
    step: Integer | None = None  # None: every step
    head: Integer | None = None  # None: every head
    position: Integer | None = None
    value: float | None = None
    text: str | None = None

    @property
    def changes_weights(self) -> bool:
        """Whether it changes attention weights; the others change the input text or the output's first words."""
        return self.op not in ("source", "prefix")


class Counterfactual(Record):
    """The output distribution of a step if a source position had all of the weight, or none."""

    op: Literal["onehot", "zero"]
    step: Integer
    position: Integer
    tvd: float  # total variation distance to the unedited distribution, 0 to 1
    top: list[Candidate]
