"""The recipe: what can be set, how it is read, and what is said when it is wrong. No torch here."""

from heedful.config.classifier import BALANCED, ClassifierConfig, class_weight
from heedful.config.data import DataConfig, TokenizerConfig, WorldConfig
from heedful.config.load import Loaded, check_decoding, load_recipe
from heedful.config.model import AttentionConfig, DecoderConfig, EncoderConfig, ModelConfig
from heedful.config.pictures import PicturesConfig
from heedful.config.reader import ReaderConfig, ReadingConfig
from heedful.config.recommender import RatingsConfig, RecommenderConfig
from heedful.config.schema import Recipe, TaskConfig
from heedful.config.show import differences, recipe_toml
from heedful.config.training import DecodingConfig, TrainingConfig

__all__ = [
    "BALANCED",
    "AttentionConfig",
    "ClassifierConfig",
    "DataConfig",
    "DecoderConfig",
    "DecodingConfig",
    "EncoderConfig",
    "Loaded",
    "ModelConfig",
    "PicturesConfig",
    "RatingsConfig",
    "ReaderConfig",
    "ReadingConfig",
    "Recipe",
    "RecommenderConfig",
    "TaskConfig",
    "TokenizerConfig",
    "TrainingConfig",
    "WorldConfig",
    "check_decoding",
    "class_weight",
    "differences",
    "load_recipe",
    "recipe_toml",
]
