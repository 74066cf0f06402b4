"""The C interface: structs and signatures, exactly as in `csrc/`. Pointers are addresses, `i64` is a 64-bit integer."""

from __future__ import annotations

import ctypes

_POINTER, _I64, _FLOAT, _U32 = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float, ctypes.c_uint32
_Fields = list[tuple[str, type]]


def _fields(kind: type, *names: str) -> _Fields:
    return [(name, kind) for name in names]


class Int8Matrix(ctypes.Structure):
    """An (n, k) weight matrix in int8, see `csrc/int8.c`: packed bytes, their row sums, a scale per row, a bias."""

    _fields_ = _fields(_POINTER, "packed", "row_sums", "scales", "bias") + _fields(_I64, "n", "k")


class RnnDecoder(ctypes.Structure):
    """A GRU decoder with additive attention, see `csrc/rnn_decoder.c`."""

    _fields_ = (
        _fields(_I64, "mode", "readout", "hidden", "attention_hidden", "context_width", "feed_width")
        + _fields(_I64, "feature_width", "embedding_width", "vocabulary")
        + _fields(_POINTER, "input_gates", "embedding", "v")
        + _fields(Int8Matrix, "w_hidden", "w_query", "w_feed", "w_hidden2", "w_readout", "w_output")
    )


class LayerNorm(ctypes.Structure):
    """A layer normalization, see `csrc/transformer.c`."""

    _fields_ = [*_fields(_POINTER, "weight", "bias"), ("epsilon", ctypes.c_double)]


class TransformerLayer(ctypes.Structure):
    """A pre-norm layer, see `csrc/transformer.c`; an encoder layer leaves the cross-attention empty."""

    _fields_ = (
        _fields(LayerNorm, "self_norm", "cross_norm", "feed_forward_norm")
        + _fields(Int8Matrix, "qkv", "self_out", "cross_query", "cross_out")
        + _fields(Int8Matrix, "feed_forward_in", "feed_forward_out")
    )


class Transformer(ctypes.Structure):
    """A pre-norm encoder or decoder, see `csrc/transformer.c`; an encoder has no vocabulary and no output."""

    _fields_ = [
        *_fields(_I64, "n_layers", "width", "heads", "vocabulary"),
        *_fields(_POINTER, "embedding", "positions", "layers"),
        ("final_norm", LayerNorm),
        ("output", Int8Matrix),
    ]


class HistoryAttention(ctypes.Structure):
    """One call of attention over histories, see `csrc/history_attention.c`."""

    _fields_ = (
        _fields(_I64, "kind", "width", "hidden", "entries")
        + _fields(_POINTER, "items", "item_offsets", "targets", "target_offsets")
        + _fields(_POINTER, "keys", "queries", "bias", "labels", "w", "b", "h")
        + _fields(_POINTER, "logits", "loss", "dlogits", "dkeys", "dqueries", "dw", "db", "dh")
        + _fields(ctypes.c_double, "beta", "scale")
    )


class AlignmentCorpus(ctypes.Structure):
    """The sentence pairs of a word alignment, see `csrc/alignment.c`."""

    _fields_ = (
        _fields(_I64, "n_words", "source_vocabulary", "longest")
        + _fields(_POINTER, "source", "source_offsets", "target_offsets")
        + _fields(_POINTER, "order", "word_offsets", "sentences")
    )


class AlignmentStep(ctypes.Structure):
    """One pass over the pairs of a word alignment, see `csrc/alignment.c`."""

    _fields_ = (
        _fields(_POINTER, "table_offsets", "table", "probabilities")
        + _fields(ctypes.c_double, "null_probability", "tension")
        + _fields(_POINTER, "counts", "statistics", "best")
    )


_P, _I, _F, _U = _POINTER, _I64, _FLOAT, _U32
ARGUMENTS: dict[str, tuple[type, ...]] = {
    "heed_cross_entropy": (_P, _P, _I, _I, _F, _P, _P),
    "heed_rdrop_cross_entropy": (_P, _P, _P, _I, _I, _F, _F, _P, _P),
    "heed_dropout": (_P, _P, _I, _U, _F, _U),
    "heed_additive_attention": (_P, _P, _P, _P, _P, _P, _P, _I, _P, _I, _I, _I),
    "heed_additive_attention_backward": (_P,) * 13 + (_I,) * 4,
    "heed_dot_attention": (_P, _P, _P, _P, _F, _P, _P) + (_I,) * 6,
    "heed_gru_cell": (_P, _P, _P, _P, _P, _I, _I),
    "heed_gru_cell_backward": (_P, _P, _I, _P, _P, _P, _P, _P, _I, _I),
    "heed_lstm_cell": (_P, _P, _P, _P, _P, _I, _I),
    "heed_lstm_cell_backward": (_P, _P, _P, _P, _P, _I, _I),
    "heed_pack_int8": (_P, _I, _I, _P),
    "heed_int8_linear": (_P, _P, _P, _P, _I),
    "heed_int8_name": (_I,),
    "heed_choose_int8": (_I,),
    "heed_top_k": (_P, _I, _I, _I, _P, _P),
    "heed_rnn_decoder_step": (_P,) * 7 + (_I, _P, _P, _I, _I, _P, _P, _P, _I, _I),
    "heed_rnn_decoder_greedy": (_P, _I, _I, _I) + (_P,) * 5 + (_I, _P, _I, _P, _P, _P, _I, _I),
    "heed_gru_sequence": (_P, _P, _P, _I, _I, _P, _P, _I, _I),
    "heed_transformer_decoder_step": (
        *(_P, _I, _P, _P, _I, _I, _P, _P, _P, _P, _I, _P, _P, _P),
        *(_I, _I, _P, _P, _P, _I, _I),
    ),
    "heed_transformer_greedy": (_P, _I, _I, _I, _I, _I) + (_P,) * 5 + (_I, _P, _I, _P, _P, _P, _P, _I, _I),
    "heed_transformer_encoder": (_P, _P, _P, _I, _P, _I, _P, _P),
    "heed_history_attention": (_P,),
    "heed_alignment_table": (_P, _P, _P, _P),
    "heed_alignment_pass": (_P, _P),
    "heed_find_out_of_range": (_P, _I, _I, _I),
    "heed_are_offsets": (_P, _I, _I),
    "heed_struct_size": (_I,),
}
RETURNS_I64 = frozenset(
    {
        "heed_rnn_decoder_greedy",
        "heed_transformer_greedy",
        "heed_history_attention",
        "heed_alignment_table",
        "heed_alignment_pass",
        "heed_find_out_of_range",
        "heed_are_offsets",
        "heed_struct_size",
        "heed_choose_int8",
    }
)
RETURNS_STRING = frozenset({"heed_int8_name"})
STRUCTS = (
    *(Int8Matrix, RnnDecoder, LayerNorm, TransformerLayer, Transformer, HistoryAttention),
    *(AlignmentCorpus, AlignmentStep),
)


class InterfaceError(Exception):
    """A library that was built from other sources than this module."""


def declare(library: ctypes.CDLL) -> None:
    """Declare the argument and result types of every kernel; raise InterfaceError if the library has another interface.

    The sizes of the structs are compared with those that the library was compiled with.
    """
    for name, arguments in ARGUMENTS.items():
        try:
            function = getattr(library, name)
        except AttributeError as error:
            raise InterfaceError(str(error)) from error
        function.argtypes = arguments
        function.restype = _I64 if name in RETURNS_I64 else ctypes.c_char_p if name in RETURNS_STRING else None
    for index, struct in enumerate(STRUCTS):
        expected, actual = ctypes.sizeof(struct), library.heed_struct_size(index)
        if expected != actual:
            raise InterfaceError(f"struct {struct.__name__} has {actual} bytes instead of {expected}")
