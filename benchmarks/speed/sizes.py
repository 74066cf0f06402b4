"""The two models that everybody trains, in numbers, and what a target token costs in each.

R: embeddings 256, a bidirectional GRU of 256 each way, a GRU decoder of 512 whose attentional vector is fed
back, additive attention of 512, an output matrix of its own. T: a Transformer of 3 + 3 layers.
"""

from __future__ import annotations

from dataclasses import dataclass

PAIRS = 29_000  # to train on
PIECES = 8_000
SENTENCES = 100  # in a training batch
CLIP = 1.0
RATE = 1e-3
LONGEST = 100  # tokens of an output
BATCH = 64  # sentences searched together


@dataclass(frozen=True)
class Recurrent:
    embedding: int = 256
    encoder: int = 256  # of each direction
    decoder: int = 512
    attention: int = 512
    dropout: float = 0.2


@dataclass(frozen=True)
class Transformer:
    width: int = 256
    layers: int = 3  # on each side
    heads: int = 4
    feedforward: int = 1024
    dropout: float = 0.1


R, T = Recurrent(), Transformer()


def flops(model: str, source: float, target: float, vocabulary: int = PIECES) -> float:
    """Of one target token, forward and backward: 2 for each product forward, twice that backward.

    `source` and `target` are mean lengths; what happens once a source token is shared by the target's.

    >>> round(flops("R", 14, 15) / 1e6), round(flops("T", 14, 15) / 1e6)
    (47, 45)
    """
    share = source / target
    products = _of_r(source, share, vocabulary) if model == "R" else _of_t(source, target, share, vocabulary)
    return 6 * products


def _of_r(source: float, share: float, vocabulary: int) -> float:
    both = 2 * R.encoder
    gates = 3 * R.decoder * (R.embedding + R.decoder + R.decoder)
    look = R.attention * R.decoder + source * (R.attention + both)
    reading = 2 * 3 * R.encoder * (R.embedding + R.encoder) + R.attention * both
    return gates + look + R.decoder * (R.decoder + both) + R.decoder * vocabulary + share * reading


def _of_t(source: float, target: float, share: float, vocabulary: int) -> float:
    square, inner = T.width**2, 2 * T.width * T.feedforward
    writing = T.layers * (6 * square + inner + 2 * T.width * (target / 2 + source))
    reading = T.layers * (
        4 * square + inner + 2 * T.width * source + 2 * square
    )  # keys, values for the looks
    return writing + share * reading + T.width * vocabulary
