"""The sections [model.reader] and [data.reading], and what does not fit them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from heedful.config.section import Section, Share

if TYPE_CHECKING:
    from heedful.config.model import ModelConfig
    from heedful.config.schema import Recipe


WIDE = ("32-true", "64-true")


class ReadingConfig(Section):
    """How a text is read, and so what its perplexity means."""

    protocol: Literal["sentences", "contiguous"] = Field(
        "sentences", description="every line by itself, its end counted; or one long text in windows"
    )
    window: PositiveInt = Field(64, description="contiguous: tokens read, and learnt from, at a time")
    lead: int = Field(
        64, ge=0, description="contiguous: tokens before a window that training reads first, for the state"
    )


class ReaderConfig(Section):
    """A model that reads a text word by word and says how likely the next one is."""

    kind: Literal["lstmn", "lstm", "transformer"] = Field("lstmn", description="what reads")
    layers: PositiveInt = Field(1, description="stacked layers")
    hidden: PositiveInt = Field(300, description="width of each")
    recall: bool = Field(
        True, description="lstmn: what was read last has a part in the question (h~ in Cheng 2016, eq. 5)"
    )
    zero_slot: bool = Field(
        False, description="lstmn: the tape begins with an empty slot, as in the released code"
    )
    recency: bool = Field(
        False,
        description="lstmn: slots know their place, and looks begin at the last one (not in Cheng 2016)",
    )
    skip: bool = Field(False, description="lstmn: words enter every layer, not only the lowest (Graves 2013)")
    tape: PositiveInt = Field(
        128, description="lstmn, contiguous: slots that go from window to window, at most"
    )
    locked: bool = Field(
        True, description="dropout chooses once for all words of a sentence or window (Gal 2016)"
    )
    word_dropout: Share = Field(0.0, description="share of words whose vectors are dropped whole in training")
    common: NonNegativeInt = Field(
        0,
        description="foresee in two steps: one of so many most common words, or which of the rest; 0: in one",
    )
    heads: PositiveInt = Field(4, description="transformer: heads of its self-attention")
    feedforward: PositiveInt = Field(1200, description="transformer: inner width of each layer")
    inner_dropout: float = Field(
        1.0,
        ge=0.0,
        le=1.0,
        description="transformer: part of model.dropout that holds inside attention and feed-forward too",
    )
    norm: Literal["pre", "post"] = Field("pre", description="transformer: where layers are normalised")
    epsilon: float = Field(1e-5, gt=0.0, description="transformer: what a norm adds to the variance")
    positions: Literal["sinusoidal", "learned"] = Field("sinusoidal", description="transformer")
    max_positions: PositiveInt = Field(512, description="transformer: learned positions, rows of the table")


def reader_misfits(model: ModelConfig) -> Iterator[str]:
    """Settings of a reader that are right by themselves and have no meaning together."""
    reader = model.reader
    assert reader is not None
    for name in ("encoder", "decoder", "attention"):
        part = getattr(model, name)
        if part != type(part)():
            yield f"{name}: a reader has no such part; its settings are in [model.reader]"
    if model.tie == "all":
        yield 'tie = "all": a reader has one vocabulary; take "output"'
    if model.copying:
        yield "copying = true: a reader has no source to copy from"
    if model.initialise != "torch":
        yield f'initialise = "{model.initialise}": is for encoder-decoders'
    if reader.kind == "transformer" and reader.hidden % reader.heads:
        yield f"reader.heads = {reader.heads}: does not divide reader.hidden = {reader.hidden}"


def reading_misfits(recipe: Recipe) -> Iterator[str]:
    """Settings of a whole recipe that only readers have, or that they cannot have."""
    kind, data, tokenizer = recipe.task.kind, recipe.data, recipe.tokenizer
    if kind != "read":
        if recipe.model.reader is not None:
            yield f'task.kind = "{kind}": has no section [model.reader]; that is for "read"'
        if data.reading is not None:
            yield f'task.kind = "{kind}": has no section [data.reading]; that is for "read"'
        return
    if recipe.model.reader is None:
        yield 'task.kind = "read": give a preset such as read-lstmn, or a section [model.reader]'
    yield from _place_misfits(recipe)
    for split in ("train", "valid", "test"):
        if len(getattr(data, split)) > 1:
            yield f"data.{split}: a reader reads one file of text, a sentence a line; two were given"
    if data.where:
        yield "data.where: plain text has no columns to choose rows by"
    if tokenizer.target_kind != "same" or tokenizer.dropout:
        yield "tokenizer.target_kind, dropout: a reader has one text, and cuts it always alike"
    if recipe.training.sampling or recipe.training.even:
        yield "training.sampling, training.even: a reader writes no words"


def _place_misfits(recipe: Recipe) -> Iterator[str]:
    reader, reading, training = recipe.model.reader, recipe.data.reading, recipe.training
    if reader is None:
        return
    if training.smoothing and reader.common:
        yield "training.smoothing: is over all words at once; not with model.reader.common"
    if reader.recency and reading is not None and reading.protocol == "contiguous":
        yield "model.reader.recency: places are counted from the beginning of a line; not in one long text"
    if reader.recency and training.precision not in WIDE:
        yield f"model.reader.recency: places need training.precision = {' or '.join(WIDE)}"
