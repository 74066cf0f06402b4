"""Kernels in C for what torch does slowly on a CPU, each with the same thing said in torch."""

from heedful.native.dropout import drawing, dropout
from heedful.native.kernels import (
    Chance,
    Int8,
    additive,
    additive_back,
    agreed,
    dots,
    entropy,
    fits,
    gru,
    gru_back,
    gru_read,
    lstm,
    lstm_back,
    top,
)
from heedful.native.loader import library

__all__ = [
    "Chance",
    "Int8",
    "additive",
    "additive_back",
    "dots",
    "drawing",
    "dropout",
    "agreed",
    "entropy",
    "fits",
    "gru",
    "gru_back",
    "gru_read",
    "library",
    "lstm",
    "lstm_back",
    "top",
]
