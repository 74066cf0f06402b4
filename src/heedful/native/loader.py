"""Finds the kernels built for this processor, and joins them to torch's threads."""

from __future__ import annotations

import ctypes
import os
import re
from functools import cache
from pathlib import Path

import torch  # noqa: F401  # its OpenMP must be there first

HERE = Path(__file__).parent
OFF = "HEEDFUL_NATIVE"  # set to 0: torch does everything

_P, _I, _F, _U = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float, ctypes.c_uint32


class Matrix(ctypes.Structure):
    """As kernels.c has it."""

    _fields_ = (("packed", _P), ("sums", _P), ("steps", _P), ("bias", _P), ("n", _I), ("k", _I))


class Decoder(ctypes.Structure):
    """As kernels.c has it."""

    _fields_ = (
        *((name, _I) for name in ("mode", "said", "hidden", "score", "width", "fed_width", "said_width")),
        *((name, _I) for name in ("word", "vocabulary")),
        *((name, _P) for name in ("bring", "vectors", "v")),
        *((name, Matrix) for name in ("hidden_m", "ask", "fed_m", "hidden2_m", "mix", "output")),
    )


class Norm(ctypes.Structure):
    """As kernels.c has it."""

    _fields_ = (("gain", _P), ("shift", _P), ("epsilon", ctypes.c_double))


class Layer(ctypes.Structure):
    """As kernels.c has it."""

    _fields_ = (
        *((name, Norm) for name in ("self_norm", "cross_norm", "feed_norm")),
        *((name, Matrix) for name in ("qkv", "self_out", "cross_query", "cross_out", "feed_in", "feed_out")),
    )


class Transformer(ctypes.Structure):
    """As kernels.c has it."""

    _fields_ = (
        *((name, _I) for name in ("layers", "width", "heads", "vocabulary")),
        *((name, _P) for name in ("vectors", "positions", "layer")),
        ("last", Norm),
        ("output", Matrix),
    )


class History(ctypes.Structure):
    """As histories.c has it."""

    _fields_ = (
        *((name, _I) for name in ("kind", "width", "hidden", "entries")),
        *((name, _P) for name in ("ids", "bounds", "targets", "cuts")),
        *((name, _P) for name in ("keys", "queries", "bias", "labels", "w", "b", "h")),
        *((name, _P) for name in ("logits", "loss", "dlogits", "dkeys", "dqueries", "dw", "db", "dh")),
        *((name, ctypes.c_double) for name in ("beta", "scale")),
    )


SIGNATURES = {
    "heed_entropy": (_P, _P, _I, _I, _F, _P, _P),
    "heed_agreed": (_P, _P, _P, _I, _I, _F, _F, _P, _P),
    "heed_dropout": (_P, _P, _I, _U, _F, _U),
    "heed_additive": (_P, _P, _P, _P, _P, _P, _P, _I, _P, _I, _I, _I),
    "heed_additive_back": (_P,) * 12 + (_I,) * 4,
    "heed_gru": (_P, _P, _P, _P, _P, _I, _I),
    "heed_gru_back": (_P, _P, _I, _P, _P, _P, _P, _P, _I, _I),
    "heed_lstm": (_P, _P, _P, _P, _P, _I, _I),
    "heed_lstm_back": (_P, _P, _P, _P, _P, _I, _I),
    "heed_pack": (_P, _I, _I, _P),
    "heed_int8": (_P, _P, _P, _P, _I),
    "heed_decoder": (_P,) * 7 + (_I, _P, _P, _I, _I, _P, _P, _P, _I, _I),
    "heed_decoder_alone": (_P, _I, _I, _I) + (_P,) * 5 + (_I, _P, _I, _P, _P, _P, _I, _I),
    "heed_transformer_alone": (_P, _I, _I, _I) + (_P,) * 5 + (_I, _P, _I, _P, _P, _P, _P, _I, _I),
    "heed_dots": (_P, _P, _P, _P, _F, _P, _P) + (_I,) * 6,
    "heed_reader": (_P, _P, _P, _I, _P, _I, _P, _P),
    "heed_gru_read": (_P, _P, _P, _I, _I, _P, _P, _I, _I),
    "heed_transformer": (_P, _I, _P, _P, _I, _I, _P, _P, _P, _P, _I, _P, _P, _P, _I, _I, _P, _P, _P, _I, _I),
    "heed_top": (_P, _I, _I, _I, _P, _P),
    "heed_history": (_P,),
}
TELLING = ("heed_decoder_alone", "heed_transformer_alone", "heed_history")  # those that give a number back


@cache
def library() -> ctypes.CDLL | None:
    """The kernels, or None where they were not built, cannot be loaded or are not wanted."""
    if os.environ.get(OFF) == "0":
        return None
    try:
        _share_threads()
        level = int(ctypes.CDLL(str(HERE / "kernels-0.so")).heed_level())
        found = ctypes.CDLL(str(HERE / f"kernels-{level}.so"))
    except OSError:
        return None
    for name, types in SIGNATURES.items():
        function = getattr(found, name)
        function.argtypes, function.restype = types, _I if name in TELLING else None
    return found


def _share_threads() -> None:
    """Make torch's own OpenMP visible to libraries loaded from now on: one crew of threads for both."""
    maps = Path("/proc/self/maps")
    loaded = sorted(set(re.findall(r"/\S*libgomp\S*", maps.read_text()))) if maps.exists() else []
    for path in loaded or ["libgomp.so.1"]:
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
