"""Search over the `Writer` protocol; knows no model."""

from heedful.decoding.beam import Search, returned, searched
from heedful.decoding.ensemble import Ensemble
from heedful.decoding.search import search
from heedful.decoding.types import Beam, Forced, Found, Greedy, Hypothesis, Method, Sample
from heedful.decoding.words import own_sites

__all__ = [
    "Beam",
    "Ensemble",
    "Forced",
    "Found",
    "Greedy",
    "Hypothesis",
    "Method",
    "Sample",
    "Search",
    "own_sites",
    "returned",
    "search",
    "searched",
]
