"""Statistical word alignment: IBM models 1 and 2 with a diagonal prior, both directions, and their symmetrization."""

from heedful.alignment.aligner import AlignerOptions, PairAlignment, align_pairs
from heedful.alignment.symmetrize import SYMMETRIZATIONS, Symmetrization, symmetrize

__all__ = ["SYMMETRIZATIONS", "AlignerOptions", "PairAlignment", "Symmetrization", "align_pairs", "symmetrize"]
