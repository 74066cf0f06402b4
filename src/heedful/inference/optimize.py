"""The fastest form of a model for inference."""

from __future__ import annotations

from heedful import kernels
from heedful.inference import gru_engine, transformer_engine
from heedful.inference.engine import Engine
from heedful.inference.gru_engine import GruEngine
from heedful.inference.int8 import quantize
from heedful.inference.transformer_engine import TransformerEngine
from heedful.models.seq2seq import Seq2Seq


def optimize_for_inference(model: Seq2Seq) -> Engine | Seq2Seq:
    """Return an engine if one supports the model, else the model with int8 matrices."""
    if kernels.library() is None:
        return quantize(model)
    if gru_engine.supports(model):
        return GruEngine(model)
    return TransformerEngine(model) if transformer_engine.supports(model) else quantize(model)
