"""The steps of a generation, and the hypotheses of a beam search."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from heedful.trace.schema.record import Integer, LogProbability, Record

MAX_BEAM = 1_000


class Candidate(Record):
    """A token that could have been generated, and its log-probability."""

    id: Integer | None
    text: str
    logp: LogProbability


class Step(Record):
    """One decoding step: the input token, the log-probability of the output token, and likely candidates."""

    logp: LogProbability
    input: Integer | None = None
    forced: bool = False
    rank: Integer | None = None  # of the output token among all, from 0
    entropy: float | None = None  # of the output distribution, in nats
    top: list[Candidate] = Field(default_factory=list)


class BeamNode(Record):
    """A hypothesis of a beam search: that of its parent node (-1: the empty hypothesis), and one more token."""

    id: Integer
    parent: Integer
    step: Integer
    token: Integer
    text: str
    logp: LogProbability  # of the token
    total_logp: float  # of the hypothesis up to this token
    state: Literal["active", "pruned", "finished"]
    score: float | None = None  # of a finished hypothesis


class BeamTree(Record):
    """Every hypothesis a beam search kept; `weights` (node, head, key) are those of the alignment site."""

    beam_size: Annotated[int, Field(ge=1, le=MAX_BEAM)]
    nodes: list[BeamNode]
    best: list[Integer]  # ids of the nodes where the returned hypotheses end
    weights: str | None = None
