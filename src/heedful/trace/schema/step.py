"""The steps of a generation, and the hypotheses of a beam search."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from heedful.trace.schema.record import Record


class Candidate(Record):
    """A token that could have been generated, and its log-probability."""

    id: int | None
    text: str
    logp: float


class Step(Record):
    """One decoding step: the input token, the log-probability of the output token, and likely candidates."""

    logp: float
    input: int | None = None
    forced: bool = False
    rank: int | None = None  # of the output token among all, from 0
    entropy: float | None = None  # of the output distribution, in nats
    top: list[Candidate] = Field(default_factory=list)


class BeamNode(Record):
    """A hypothesis of a beam search: that of its parent node (-1: the empty hypothesis), and one more token."""

    id: int
    parent: int
    step: int
    token: int
    text: str
    logp: float  # of the token
    total_logp: float  # of the hypothesis up to this token
    state: Literal["active", "pruned", "finished"]
    score: float | None = None  # of a finished hypothesis


class BeamTree(Record):
    """Every hypothesis a beam search kept; `weights` (node, head, key) are those of the alignment site."""

    beam_size: int
    nodes: list[BeamNode]
    best: list[int]  # ids of the nodes where the returned hypotheses end
    weights: str | None = None
