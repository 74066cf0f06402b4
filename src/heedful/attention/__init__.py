"""Every mechanism of the attention family behind one interface: `prepare` once, then `look`.

>>> import torch
>>> attention = Attention(ScaledDot(query=4, key=4))
>>> keys = torch.eye(4)[None]                                  # one sentence of four positions
>>> memory = attention.prepare(keys, keep=torch.tensor([[True, True, True, False]]))
>>> context, look, _ = attention.look(torch.zeros(1, 1, 4), memory, watch=Watch(Detail.WEIGHTS))
>>> look.weights[0, 0, 0]                                      # a query of zeros finds all keys alike
tensor([0.3333, 0.3333, 0.3333, 0.0000])
"""

from heedful.attention.attention import Attention, causal, coverage_loss, mix
from heedful.attention.heads import Heads
from heedful.attention.normalise import (
    NORMALISERS,
    Normaliser,
    entmax15,
    masked_softmax,
    smoothed_softmax,
    sparsemax,
)
from heedful.attention.placements import (
    PLACEMENTS,
    Global,
    Hard,
    LocalM,
    LocalP,
    Placement,
    Uniform,
)
from heedful.attention.scores import (
    SCORES,
    Additive,
    Concat,
    ConcatRelu,
    CoverageAdditive,
    Dot,
    General,
    Location,
    ProdRelu,
    ScaledDot,
    Score,
)
from heedful.attention.table import build_attention, build_placement, build_score
from heedful.attention.tape import Tape
from heedful.attention.types import (
    EMPTY,
    PLAIN,
    Carry,
    Detail,
    Edit,
    Look,
    Memory,
    Override,
    Watch,
    extent,
    lengths_to_keep,
    without_last,
)

__all__ = [
    "EMPTY",
    "NORMALISERS",
    "PLACEMENTS",
    "PLAIN",
    "SCORES",
    "Additive",
    "Attention",
    "Carry",
    "Concat",
    "ConcatRelu",
    "CoverageAdditive",
    "Detail",
    "Dot",
    "Edit",
    "General",
    "Global",
    "Hard",
    "Heads",
    "LocalM",
    "LocalP",
    "Location",
    "Look",
    "Memory",
    "Normaliser",
    "Override",
    "Placement",
    "ProdRelu",
    "ScaledDot",
    "Score",
    "Tape",
    "Uniform",
    "Watch",
    "build_attention",
    "build_placement",
    "build_score",
    "causal",
    "coverage_loss",
    "entmax15",
    "extent",
    "lengths_to_keep",
    "masked_softmax",
    "mix",
    "smoothed_softmax",
    "sparsemax",
    "without_last",
]
