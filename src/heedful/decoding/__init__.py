"""Greedy search, beam search, sampling and ensembles over the `AutoregressiveModel` protocol."""

from heedful.decoding.batched import search_all
from heedful.decoding.beam import BeamSearch
from heedful.decoding.ensemble import Ensemble
from heedful.decoding.search import force_decode, search
from heedful.decoding.stopping import NEVER, StopCondition
from heedful.decoding.types import Hypothesis, SearchResult

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
