"""Search over the `Writer` protocol; knows no model."""

from heedful.decoding.ensemble import Ensemble
from heedful.decoding.search import search
from heedful.decoding.types import Beam, Forced, Found, Greedy, Hypothesis, Method, Sample

__all__ = ["Beam", "Ensemble", "Forced", "Found", "Greedy", "Hypothesis", "Method", "Sample", "search"]
