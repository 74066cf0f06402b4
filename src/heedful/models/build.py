"""The only place where a config becomes a model."""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from heedful.config import ModelConfig
from heedful.models.classifier import Classifier
from heedful.models.reader import Reader
from heedful.models.recommender import Popularity, Recommender
from heedful.models.seq2seq import Seq2Seq


def build(config: ModelConfig, source_size: int, target_size: int) -> Seq2Seq:
    """A freshly initialised model for vocabularies of these sizes; torch's seed decides the weights."""
    return Seq2Seq(config, source_size, target_size)


def build_classifier(config: ModelConfig, words: int, labels: int, marks: Sequence[int] = ()) -> Classifier:
    """The same for texts and labels; `marks` are the words that end a sentence."""
    return Classifier(config, words, labels, marks)


def build_recommender(config: ModelConfig, counts: Float[Tensor, "item"]) -> Recommender | Popularity:
    """The same for items, of which `counts` says how often each was taken."""
    assert config.recommender is not None
    if config.recommender.kind == "popularity":
        return Popularity(counts)
    return Recommender(config, len(counts))


def build_reader(config: ModelConfig, vocabulary: int) -> Reader:
    """The same of a model that reads a text."""
    return Reader(config, vocabulary)
