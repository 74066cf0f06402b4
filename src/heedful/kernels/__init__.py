"""C kernels for operations that torch runs slowly on a CPU, each with the same computation in torch as a fallback."""

from heedful.kernels.attention import additive_attention, additive_attention_backward, dot_attention
from heedful.kernels.cells import gru_cell, gru_cell_backward, lstm_cell, lstm_cell_backward
from heedful.kernels.dropout import DropoutMask, dropout, seeded_dropout
from heedful.kernels.guards import (
    accepts,
    admits,
    admits_mask,
    check_indices,
    is_dropout_active,
    is_full_precision,
    out_of_range,
    supports,
)
from heedful.kernels.int8 import Int8Product, int8_gru_sequence
from heedful.kernels.loader import has_fast_int8, library
from heedful.kernels.losses import cross_entropy, rdrop_cross_entropy, top_k

__all__ = [
    "DropoutMask",
    "Int8Product",
    "accepts",
    "additive_attention",
    "additive_attention_backward",
    "admits",
    "admits_mask",
    "check_indices",
    "cross_entropy",
    "dot_attention",
    "dropout",
    "is_dropout_active",
    "gru_cell",
    "gru_cell_backward",
    "has_fast_int8",
    "int8_gru_sequence",
    "is_full_precision",
    "library",
    "lstm_cell",
    "lstm_cell_backward",
    "out_of_range",
    "rdrop_cross_entropy",
    "seeded_dropout",
    "supports",
    "top_k",
]
