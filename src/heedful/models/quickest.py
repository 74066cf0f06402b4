"""The quickest that can be made of a model."""

from __future__ import annotations

from heedful import native
from heedful.models.engine import Engine
from heedful.models.gru_engine import GruEngine, mode_of
from heedful.models.int8 import to_int8
from heedful.models.seq2seq import Seq2Seq
from heedful.models.transformer_engine import TransformerEngine, knows


def quickest(model: Seq2Seq) -> Engine | Seq2Seq:
    """An engine for it, else the model in bytes."""
    if native.library() is None:
        return to_int8(model)
    if mode_of(model) is not None:
        return GruEngine(model)
    return TransformerEngine(model) if knows(model) else to_int8(model)
