"""The sections [model.language_model] and [data.lm], and their conflicts with other settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from heedful.section import Fraction, Layers, Positions, Section, Width

if TYPE_CHECKING:
    from heedful.config.model import ModelConfig
    from heedful.config.schema import Recipe

FULL_PRECISION = ("32-true", "64-true")


class ReadingConfig(Section):
    """How a text is divided, and with it what its perplexity means."""

    protocol: Literal["sentences", "contiguous"] = Field(
        "sentences", description="each line by itself, end token included; or one long text in windows"
    )
    window: Positions = Field(64, description="contiguous: window length, in tokens")
    context: int = Field(
        64, ge=0, le=1_000_000, description="contiguous: tokens before a window that only set up the state in training"
    )


class LanguageModelConfig(Section):
    """A model of the probability of each next word."""

    kind: Literal["lstmn", "lstm", "transformer"] = Field("lstmn", description="architecture")
    layers: Layers = Field(1, description="number of layers")
    hidden: Width = Field(300, description="width of each layer")
    recall: bool = Field(True, description="lstmn: the last summary is part of the query (h~ in Cheng 2016, eq. 5)")
    zero_slot: bool = Field(False, description="lstmn: the tape starts with an empty slot, as in the released code")
    recency: bool = Field(
        False, description="lstmn: slots know their distance; attention starts at the last one (not in Cheng 2016)"
    )
    skip: bool = Field(False, description="lstmn: word vectors enter every layer, not only the first (Graves 2013)")
    max_tape: Positions = Field(128, description="lstmn, contiguous: slots carried from window to window, at most")
    variational_dropout: bool = Field(True, description="one dropout mask per sentence or window (Gal 2016)")
    word_dropout: Fraction = Field(0.0, description="fraction of word vectors set to zero in training")
    shortlist: int = Field(
        0,
        ge=0,
        le=1_000_000_000,
        description="two-level softmax: number of frequent words in the first level; 0: one softmax",
    )
    heads: Width = Field(4, description="transformer: attention heads")
    feedforward: Width = Field(1200, description="transformer: width of the feed-forward layers")
    inner_dropout: float = Field(
        1.0,
        ge=0.0,
        le=1.0,
        description="transformer: dropout inside attention and feed-forward, relative to model.dropout",
    )
    norm: Literal["pre", "post"] = Field("pre", description="transformer: layer norm before or after each sublayer")
    norm_epsilon: float = Field(1e-5, gt=0.0, description="transformer: epsilon of the layer norm")
    positions: Literal["sinusoidal", "learned"] = Field("sinusoidal", description="transformer: position encoding")
    max_positions: Positions = Field(512, description="transformer: number of learned positions")


def model_conflicts(model: ModelConfig) -> Iterator[str]:
    """Yield an error message for each conflict between the settings of a language model."""
    language_model = model.language_model
    assert language_model is not None
    for name in ("encoder", "decoder", "attention"):
        part = getattr(model, name)
        if part != type(part)():
            yield f"{name}: a language model has no such section; its settings are in [model.language_model]"
    if model.tie_embeddings == "all":
        yield 'tie_embeddings = "all": a language model has one vocabulary; use "output"'
    if model.copying:
        yield "copying = true: a language model has no source to copy from"
    if model.initialization != "torch":
        yield f'initialization = "{model.initialization}": is for encoder-decoder models'
    if language_model.kind == "transformer" and language_model.hidden % language_model.heads:
        heads, hidden = language_model.heads, language_model.hidden
        yield f"language_model.heads = {heads}: does not divide language_model.hidden = {hidden}"


def recipe_conflicts(recipe: Recipe) -> Iterator[str]:
    """Yield an error message for each setting that only language models have, or that they do not have."""
    kind, data, tokenizer = recipe.task.kind, recipe.data, recipe.tokenizer
    if kind != "read":
        if recipe.model.language_model is not None:
            yield f'task.kind = "{kind}": the section [model.language_model] is for task.kind = "read"'
        if data.lm is not None:
            yield f'task.kind = "{kind}": the section [data.lm] is for task.kind = "read"'
        return
    if recipe.model.language_model is None:
        yield 'task.kind = "read": choose a preset such as read-lstmn, or add a section [model.language_model]'
    yield from _precision_conflicts(recipe)
    for split in ("train", "valid", "test"):
        if len(getattr(data, split)) > 1:
            yield f"data.{split}: a language model needs one text file, one sentence per line, got 2 files"
    if data.where and not data.columns:
        yield "data.where: plain text has no columns to filter by"
    if len(data.columns) > 1:
        yield f"data.columns: a language model reads one column, got {len(data.columns)}"
    if tokenizer.target_kind != "same" or tokenizer.bpe_dropout:
        yield "tokenizer.target_kind, tokenizer.bpe_dropout: have no meaning for a language model"
    if recipe.training.scheduled_sampling or recipe.training.doubly_stochastic:
        yield "training.scheduled_sampling, training.doubly_stochastic: are for models with a decoder"


def _precision_conflicts(recipe: Recipe) -> Iterator[str]:
    language_model, reading, training = recipe.model.language_model, recipe.data.lm, recipe.training
    if language_model is None:
        return
    if training.label_smoothing and language_model.shortlist:
        yield "training.label_smoothing: needs one softmax over all words; set model.language_model.shortlist = 0"
    if language_model.recency and reading is not None and reading.protocol == "contiguous":
        yield 'model.language_model.recency: counts positions within a line; needs data.lm.protocol = "sentences"'
    if language_model.recency and training.precision not in FULL_PRECISION:
        yield f"model.language_model.recency: needs training.precision = {' or '.join(FULL_PRECISION)}"
