"""Attention mechanisms behind one interface: `prepare` the source once, then call the module with queries.

>>> import torch
>>> attention = Attention(ScaledDot(query_size=4, key_size=4))
>>> keys = torch.eye(4)[None]                                  # one sentence of four positions
>>> memory = attention.prepare(keys, keep=torch.tensor([[True, True, True, False]]))
>>> output, carry = attention(torch.zeros(1, 1, 4), memory, hooks=Hooks(Detail.WEIGHTS))
>>> output.weights[0, 0, 0]                                    # a query of zeros scores all keys alike
tensor([0.3333, 0.3333, 0.3333, 0.0000])

Keys can be passed without `prepare`, `MultiHeadAttention` replaces torch's, and `record` records it inside any model:

>>> attention(torch.zeros(1, 1, 4), keys).weights.shape
torch.Size([1, 1, 1, 4])
>>> inputs = torch.randn(1, 5, 8)
>>> MultiHeadAttention(8, 2, batch_first=True)(inputs, inputs, inputs)[0].shape
torch.Size([1, 5, 8])
"""

from heedful.attention.attention import Attention, weighted_sum
from heedful.attention.build import build_attention
from heedful.attention.heads import Heads
from heedful.attention.hooks import ALLOWED, NO_HOOKS, Detail, Edit, Hooks, Override
from heedful.attention.masks import causal, extent, lengths_to_keep, without_last
from heedful.attention.multi_head import MultiHeadAttention
from heedful.attention.normalizers.base import Normalizer
from heedful.attention.normalizers.entmax15 import Entmax15, entmax15
from heedful.attention.normalizers.smoothed_softmax import SmoothedSoftmax, smoothed_softmax
from heedful.attention.normalizers.softmax import Softmax, masked_softmax
from heedful.attention.normalizers.sparsemax import Sparsemax, sparsemax
from heedful.attention.placements.base import Placement
from heedful.attention.placements.global_ import Global
from heedful.attention.placements.hard import Hard
from heedful.attention.placements.local_m import LocalM
from heedful.attention.placements.local_p import LocalP
from heedful.attention.placements.uniform import Uniform
from heedful.attention.recording import record
from heedful.attention.scores.additive import Additive, CoverageAdditive, coverage_loss
from heedful.attention.scores.base import Score
from heedful.attention.scores.concat import Concat
from heedful.attention.scores.concat_relu import ConcatRelu
from heedful.attention.scores.dot import Dot
from heedful.attention.scores.general import General
from heedful.attention.scores.location import Location
from heedful.attention.scores.prod_relu import ProdRelu
from heedful.attention.scores.scaled_dot import ScaledDot
from heedful.attention.tape import Tape
from heedful.attention.types import EMPTY, AttentionOutput, Carry, Memory

__all__ = [
    "ALLOWED",
    "EMPTY",
    "NO_HOOKS",
    "Additive",
    "Attention",
    "AttentionOutput",
    "Carry",
    "Concat",
    "ConcatRelu",
    "CoverageAdditive",
    "Detail",
    "Dot",
    "Edit",
    "Entmax15",
    "General",
    "Global",
    "Hard",
    "Heads",
    "Hooks",
    "LocalM",
    "LocalP",
    "Location",
    "Memory",
    "MultiHeadAttention",
    "Normalizer",
    "Override",
    "Placement",
    "ProdRelu",
    "ScaledDot",
    "Score",
    "SmoothedSoftmax",
    "Softmax",
    "Sparsemax",
    "Tape",
    "Uniform",
    "build_attention",
    "causal",
    "coverage_loss",
    "entmax15",
    "extent",
    "lengths_to_keep",
    "masked_softmax",
    "record",
    "smoothed_softmax",
    "sparsemax",
    "weighted_sum",
    "without_last",
]
