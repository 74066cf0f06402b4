"""What reads, for every model that reads texts or pictures."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.attention import Watch
from heedful.attention.types import without_last
from heedful.config import ModelConfig
from heedful.config.model import RECURRENT
from heedful.layers.abs import EmbeddingEncoder
from heedful.layers.convolution import ConvEncoder
from heedful.layers.dropout import Dropout
from heedful.layers.hierarchy import SentenceEncoder
from heedful.layers.lstmn import LSTMNEncoder
from heedful.layers.recurrent import RecurrentEncoder
from heedful.layers.regions import RegionEncoder
from heedful.layers.state import Read
from heedful.layers.transformer import TransformerEncoder
from heedful.record import Site

Encoder = (
    RecurrentEncoder
    | ConvEncoder
    | TransformerEncoder
    | EmbeddingEncoder
    | RegionEncoder
    | LSTMNEncoder
    | SentenceEncoder
)

LOOKING = (TransformerEncoder, LSTMNEncoder, SentenceEncoder)


def build_encoder(config: ModelConfig, given: int) -> Encoder:
    """`given`: of pictures, the width of a region's vector."""
    kind = config.encoder.kind
    if config.classifier is not None and config.classifier.sentences:
        return SentenceEncoder(config)
    if kind in RECURRENT:
        return RecurrentEncoder(config.encoder, config.embedding, config.dropout)
    if kind == "lstmn":
        return LSTMNEncoder(config.encoder, config.embedding, config.dropout)
    if kind == "conv":
        return ConvEncoder(config)
    if kind == "regions":
        return RegionEncoder(config, given)
    return TransformerEncoder(config) if kind == "transformer" else EmbeddingEncoder(config)


def read_words(
    encoder: Encoder, words: Float[Tensor, "batch key input"], keep: Bool[Tensor, "batch key"], watch: Watch
) -> Read:
    """What an encoder makes of word vectors; Transformers and LSTMNs tell where they look meanwhile."""
    read: Read = encoder(words, keep, watch) if isinstance(encoder, LOOKING) else encoder(words, keep)
    return read


def dropped(read: Read, dropout: Dropout) -> Read:
    """Before anything looks: what is compared and what is read lose the same places where both are one."""
    if not dropout.training or dropout.p == 0.0:
        return read
    keys = dropout(read.keys)
    return read._replace(keys=keys, values=keys if read.values is read.keys else dropout(read.values))


def own_sites(encoder: Encoder) -> tuple[Site, ...]:
    return encoder.sites if isinstance(encoder, LOOKING) else ()


def without_end(keep: Bool[Tensor, "batch key"]) -> Bool[Tensor, "batch key"]:
    """The source without its end token; one that has nothing else keeps it."""
    inner = without_last(keep)
    return torch.where(inner.any(dim=1, keepdim=True), inner, keep)
