"""Sizes of the two models that every system trains, and their cost per target token.

R: embeddings of 256, a bidirectional GRU encoder of 256 per direction, a GRU decoder of 512 with input feeding,
additive attention of 512, an untied output matrix. T: a Transformer of 3 + 3 layers.
"""

from __future__ import annotations

from dataclasses import dataclass

TRAINING_PAIRS = 29_000
VOCABULARY_SIZE = 8_000
BATCH_SENTENCES = 100  # per training batch
GRAD_CLIP = 1.0
LEARNING_RATE = 1e-3
MAX_LENGTH = 100  # tokens per output
DECODING_BATCH = 64  # sentences


@dataclass(frozen=True)
class Recurrent:
    embedding: int = 256
    encoder: int = 256  # per direction
    decoder: int = 512
    attention: int = 512
    dropout: float = 0.2


@dataclass(frozen=True)
class Transformer:
    width: int = 256
    layers: int = 3  # per side
    heads: int = 4
    feedforward: int = 1024
    dropout: float = 0.1


R, T = Recurrent(), Transformer()


def flops(model: str, source: float, target: float, vocabulary: int = VOCABULARY_SIZE) -> float:
    """Return the operations per target token: 2 per product in the forward pass, twice that in the backward pass.

    `source` and `target` are mean lengths; the encoder's cost is distributed over the target tokens.

    >>> round(flops("R", 14, 15) / 1e6), round(flops("T", 14, 15) / 1e6)
    (47, 45)
    """
    share = source / target
    if model == "R":
        return 6 * _recurrent_products(source, share, vocabulary)
    return 6 * _transformer_products(source, target, share, vocabulary)


def _recurrent_products(source: float, share: float, vocabulary: int) -> float:
    both = 2 * R.encoder
    gates = 3 * R.decoder * (R.embedding + R.decoder + R.decoder)
    attention = R.attention * R.decoder + source * (R.attention + both)
    encoder = 2 * 3 * R.encoder * (R.embedding + R.encoder) + R.attention * both
    return gates + attention + R.decoder * (R.decoder + both) + R.decoder * vocabulary + share * encoder


def _transformer_products(source: float, target: float, share: float, vocabulary: int) -> float:
    square, inner = T.width**2, 2 * T.width * T.feedforward
    decoder = T.layers * (6 * square + inner + 2 * T.width * (target / 2 + source))
    encoder = T.layers * (4 * square + inner + 2 * T.width * source + 2 * square)  # and keys, values of cross-attention
    return decoder + share * encoder + T.width * vocabulary
