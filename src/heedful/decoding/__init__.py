"""Greedy search, beam search, sampling and ensembles over the `AutoregressiveModel` protocol."""

from heedful.decoding.batched import search_all
from heedful.decoding.beam import BeamSearch
from heedful.decoding.ensemble import Ensemble
from heedful.decoding.search import force_decode, search
from heedful.decoding.types import SearchResult
from heedful.hypothesis import Hypothesis
from heedful.stopping import NEVER, StopCondition

__all__ = [
    "NEVER",
    "BeamSearch",
    "Ensemble",
    "Hypothesis",
    "SearchResult",
    "StopCondition",
    "force_decode",
    "search",
    "search_all",
]
