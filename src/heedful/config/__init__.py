"""The recipe: its settings, presets, loading and migration. Imports no torch."""

from heedful.config.data import DataConfig, TokenizerConfig, WorldConfig
from heedful.config.decoding import DecodingOptions
from heedful.config.load import LoadedRecipe, decoding_options, load_recipe
from heedful.config.model import AttentionConfig, DecoderConfig, EncoderConfig, ModelConfig
from heedful.config.render import differences, recipe_toml
from heedful.config.schema import Recipe, TaskConfig
from heedful.config.training import TrainingConfig
from heedful.tasks.caption.config import ImagesConfig
from heedful.tasks.classify.config import BALANCED, ClassifierConfig, parse_class_weight
from heedful.tasks.language_model.config import LanguageModelConfig, ReadingConfig
from heedful.tasks.recommend.config import RatingsConfig, RecommenderConfig

__all__ = [
    "BALANCED",
    "AttentionConfig",
    "ClassifierConfig",
    "DataConfig",
    "DecoderConfig",
    "DecodingOptions",
    "EncoderConfig",
    "LoadedRecipe",
    "ModelConfig",
    "ImagesConfig",
    "RatingsConfig",
    "LanguageModelConfig",
    "ReadingConfig",
    "Recipe",
    "RecommenderConfig",
    "TaskConfig",
    "TokenizerConfig",
    "TrainingConfig",
    "WorldConfig",
    "decoding_options",
    "differences",
    "load_recipe",
    "parse_class_weight",
    "recipe_toml",
]
