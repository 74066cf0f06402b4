"""Build an encoder from its config, and run it."""

from __future__ import annotations

from jaxtyping import Bool, Float
from torch import Tensor

from heedful.attention import Hooks
from heedful.attention.masks import without_last
from heedful.config import ModelConfig
from heedful.layers.abs import EmbeddingEncoder
from heedful.layers.convolution import ConvEncoder
from heedful.layers.dropout import Dropout
from heedful.layers.hierarchical import SentenceEncoder
from heedful.layers.lstmn import LSTMNEncoder
from heedful.layers.recurrent import RecurrentEncoder
from heedful.layers.regions import RegionEncoder
from heedful.layers.state import EncoderOutput
from heedful.layers.transformer import TransformerEncoder
from heedful.trace.schema import Site

Encoder = (
    RecurrentEncoder
    | ConvEncoder
    | TransformerEncoder
    | EmbeddingEncoder
    | RegionEncoder
    | LSTMNEncoder
    | SentenceEncoder
)

WITH_ATTENTION = (TransformerEncoder, LSTMNEncoder, SentenceEncoder)  # they take hooks and have sites


def build_encoder(config: ModelConfig, region_width: int) -> Encoder:
    """Build the encoder that [model.encoder] names; `region_width` is the width of an image's regions."""
    kind = config.encoder.kind
    if config.classifier is not None and config.classifier.sentences:
        return SentenceEncoder(config)
    if config.encoder.recurrent:
        return RecurrentEncoder(config.encoder, config.embedding, config.dropout)
    if kind == "lstmn":
        return LSTMNEncoder(config.encoder, config.embedding, config.dropout)
    if kind == "conv":
        return ConvEncoder(config)
    if kind == "regions":
        return RegionEncoder(config, region_width)
    return TransformerEncoder(config) if kind == "transformer" else EmbeddingEncoder(config)


def run_encoder(
    encoder: Encoder, inputs: Float[Tensor, "batch key input"], keep: Bool[Tensor, "batch key"], hooks: Hooks
) -> EncoderOutput:
    """Encode word embeddings, with hooks if the encoder has attention."""
    if isinstance(encoder, WITH_ATTENTION):
        output: EncoderOutput = encoder(inputs, keep, hooks)
    else:
        output = encoder(inputs, keep)
    return output


def apply_dropout(output: EncoderOutput, dropout: Dropout) -> EncoderOutput:
    """Apply dropout to the keys and values; one mask for both if they are the same tensor."""
    if not dropout.training or dropout.p == 0.0:
        return output
    keys = dropout(output.keys)
    return output._replace(keys=keys, values=keys if output.values is output.keys else dropout(output.values))


def encoder_sites(encoder: Encoder) -> tuple[Site, ...]:
    """Return every attention of an encoder."""
    return encoder.sites if isinstance(encoder, WITH_ATTENTION) else ()


def drop_end_token(keep: Bool[Tensor, "batch key"]) -> Bool[Tensor, "batch key"]:
    """Return the mask of the source without its end token; a source of only that token keeps it."""
    words = without_last(keep)
    return words | (keep & ~words.any(dim=1, keepdim=True))
