"""Search over the `Writer` protocol; knows no model."""

from heedful.decoding.search import Hypothesis, search

__all__ = ["Hypothesis", "search"]
