"""The results of a search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from heedful.hypothesis import Hypothesis

if TYPE_CHECKING:
    from heedful.decoding.beam import BeamSearch


class SearchResult(NamedTuple):
    """The hypotheses of every sentence of a batch, best first."""

    hypotheses: list[list[Hypothesis]]
    encoder_attentions: list[Mapping[str, Tensor]]  # per sentence: site -> (query, head, key), unpadded
    beam: BeamSearch | None = None  # every step of a beam search
