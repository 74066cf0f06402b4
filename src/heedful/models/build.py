"""The only place where a config becomes a model."""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from heedful.config import ModelConfig
from heedful.models.classifier import Classifier
from heedful.models.language_model import LanguageModel
from heedful.models.recommender import Popularity, Recommender
from heedful.models.seq2seq import Seq2Seq
from heedful.optional import not_none


def build_seq2seq(config: ModelConfig, source_size: int, target_size: int) -> Seq2Seq:
    """Build an encoder-decoder for vocabularies of these sizes; torch's seed determines the initial weights.

    For images `source_size` is the width of a region's vector.
    """
    return Seq2Seq(config, source_size, target_size)


def build_classifier(
    config: ModelConfig, vocabulary: int, labels: int, sentence_ends: Sequence[int] = ()
) -> Classifier:
    """Build a classifier of texts; `sentence_ends` are the tokens that end a sentence."""
    return Classifier(config, vocabulary, labels, sentence_ends)


def build_recommender(config: ModelConfig, counts: Float[Tensor, "item"]) -> Recommender | Popularity:
    """Build a recommender; `counts` is the number of interactions of each item."""
    if not_none(config.recommender).kind == "popularity":
        return Popularity(counts)
    return Recommender(config, len(counts))


def build_language_model(config: ModelConfig, vocabulary: int) -> LanguageModel:
    """Build a language model."""
    return LanguageModel(config, vocabulary)
