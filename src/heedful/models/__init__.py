"""Complete models, one file per kind; `build.py` is the only place where a config becomes a model."""

from heedful.layers.state import DecoderOutput, State
from heedful.models.autoregressive import AutoregressiveModel, GreedyOutput, NextTokens, next_token_logits
from heedful.models.build import build_classifier, build_language_model, build_recommender, build_seq2seq
from heedful.models.classifier import Classifier
from heedful.models.language_model import LanguageModel
from heedful.models.recommender import Popularity, Recommender, RecommenderOutput, ScoringModel
from heedful.models.seq2seq import Seq2Seq

__all__ = [
    "Classifier",
    "ScoringModel",
    "RecommenderOutput",
    "GreedyOutput",
    "NextTokens",
    "Popularity",
    "LanguageModel",
    "Recommender",
    "Seq2Seq",
    "State",
    "DecoderOutput",
    "AutoregressiveModel",
    "build_seq2seq",
    "build_classifier",
    "build_language_model",
    "build_recommender",
    "next_token_logits",
]
