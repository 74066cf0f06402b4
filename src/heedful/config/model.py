"""The model: its parts, and which of them fit together.

Names of mechanisms are Literals, so that a recipe is checked without torch; a test equates them with the
tables of the attention room.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import Field, PositiveInt, model_validator

from heedful.config.classifier import ClassifierConfig, pooling_misfits
from heedful.config.reader import ReaderConfig, reader_misfits
from heedful.config.recommender import RecommenderConfig, recommender_misfits
from heedful.config.section import RECURRENT as RECURRENT
from heedful.config.section import Section, Share

ScoreName = Literal[
    "additive", "concat", "dot", "scaled-dot", "general", "location", "prod-relu", "concat-relu"
]
NormaliserName = Literal["softmax", "smoothed-softmax", "sparsemax", "entmax15"]
PlacementName = Literal["global", "local-m", "local-p", "hard", "uniform"]
ReadName = Literal["sample", "argmax", "expectation"]
PresetName = Literal[
    "seq2seq",
    "seq2seq-every-step",
    "rnnsearch",
    "rnnsearch-paper",
    "cgru",
    "bigru-gru",
    "five-steps",
    "stacked-lstm",
    "luong",
    "luong-local",
    "conv-rnn",
    "conv-conv",
    "abs",
    "transformer",
    "caption-static",
    "caption-static-every-step",
    "caption-soft",
    "caption-soft-plain",
    "caption-hard",
    "caption-transformer",
    "classify-final",
    "classify-learned",
    "classify-heads",
    "classify-zhou",
    "classify-sentences",
    "classify-transformer",
    "classify-lstmn",
    "classify-mean",
    "classify-max",
    "classify-last",
    "nais-prod",
    "nais-concat",
    "fism",
    "popularity",
    "self-attention",
    "read-lstm",
    "read-lstmn",
    "read-transformer",
]


class AttentionConfig(Section):
    score: ScoreName = Field("additive", description="how well a query fits a key")
    normaliser: NormaliserName = Field("softmax", description="from scores to weights")
    placement: PlacementName = Field("global", description="which part of the source is weighed")
    hidden: PositiveInt = Field(128, description="inner width of additive, concat and the relu scores")
    heads: int = Field(0, ge=0, description="0: one look without projections; else multi-head")
    bias: bool = Field(False, description="additive only: a bias inside the tanh, as in OpenNMT-py")
    coverage: bool = Field(False, description="additive only: remember what was read")
    read_end: bool = Field(True, description="may the source's end token be read?")
    dropout: Share = Field(0.0, description="share of the weights dropped in training")
    beta: float = Field(0.5, gt=0.0, le=1.0, description="smoothed-softmax: 1 is softmax")
    window: PositiveInt = Field(10, description="local: positions to each side (D)")
    renormalise: bool = Field(False, description="local-p: make the weights sum to 1 again")
    read: ReadName = Field("sample", description="hard: how to read while training")
    generate: ReadName = Field("expectation", description="hard: how to read while generating")
    table: PositiveInt = Field(64, description="location: rows of its table, the longest source")
    longer: Literal["error", "ignore"] = Field("error", description="location: a source beyond the table")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.coverage and self.score != "additive":
            raise ValueError(f'coverage = true: needs score = "additive", not "{self.score}"')
        if self.bias and self.score != "additive":
            raise ValueError(f'bias = true: needs score = "additive", not "{self.score}"')
        if self.placement == "hard" and self.normaliser == "smoothed-softmax":
            raise ValueError('placement = "hard": draws from its weights, so smoothed-softmax cannot serve')
        return self


class EncoderConfig(Section):
    kind: Literal["rnn", "gru", "lstm", "lstmn", "conv", "transformer", "embedding", "regions"] = Field(
        "gru", description="what reads the source; regions: pictures"
    )
    layers: PositiveInt = Field(1, description="stacked layers")
    hidden: PositiveInt = Field(128, description="width (recurrent: of each direction)")
    read_end: bool = Field(True, description="is the source's end token read at all?")
    dropout: Share = Field(0.0, description="share dropped of its states, before anything looks at them")
    bidirectional: bool = Field(True, description="recurrent: read from both ends")
    residual: bool = Field(False, description="recurrent: layers above the first add to their input")
    layer_norm: bool = Field(False, description="recurrent: normalise each layer's output")
    kernel: PositiveInt = Field(3, description="conv: width of a filter, an odd number")
    heads: PositiveInt = Field(4, description="transformer: heads of its self-attention")
    feedforward: PositiveInt = Field(512, description="transformer: inner width of each layer")
    inner_dropout: float = Field(
        1.0,
        ge=0.0,
        le=1.0,
        description="transformer: part of model.dropout that holds inside attention and feed-forward too",
    )
    norm: Literal["pre", "post"] = Field("pre", description="transformer: where layers are normalised")
    epsilon: float = Field(1e-5, gt=0.0, description="transformer: what a norm adds to the variance")
    positions: Literal["sinusoidal", "learned"] = Field("sinusoidal", description="conv, transformer")
    max_positions: PositiveInt = Field(512, description="learned positions, places: rows of the table")
    places: bool = Field(False, description="regions: a learned vector tells where in the picture each is")


class DecoderConfig(Section):
    kind: Literal["rnn", "gru", "lstm", "conv", "transformer", "abs"] = Field(
        "gru", description="what writes the target"
    )
    layers: PositiveInt = Field(1, description="stacked layers; the top one asks")
    hidden: PositiveInt = Field(128, description="width")
    residual: bool = Field(False, description="recurrent: layers above the first add to their input")
    layer_norm: bool = Field(False, description="recurrent: normalise each layer's output")
    kernel: PositiveInt = Field(3, description="conv: width of a filter")
    heads: PositiveInt = Field(4, description="transformer: heads of every attention")
    feedforward: PositiveInt = Field(512, description="transformer: inner width of each layer")
    inner_dropout: float = Field(
        1.0,
        ge=0.0,
        le=1.0,
        description="transformer: part of model.dropout that holds inside attention and feed-forward too",
    )
    norm: Literal["pre", "post"] = Field("pre", description="transformer: where layers are normalised")
    epsilon: float = Field(1e-5, gt=0.0, description="transformer: what a norm adds to the variance")
    positions: Literal["sinusoidal", "learned"] = Field("sinusoidal", description="conv, transformer")
    max_positions: PositiveInt = Field(512, description="learned positions: rows of the table")
    source: Literal["attention", "init", "every-step"] = Field(
        "attention", description="how the source reaches the decoder"
    )
    start: Literal["backward", "bridge", "top", "mean", "zeros"] = Field(
        "backward", description="recurrent: the first state"
    )
    order: Literal["update-look-generate", "look-update-generate", "look-generate-update", "conditional"] = (
        Field("update-look-generate", description="recurrent: what happens when in a step")
    )
    feed: Literal["none", "context", "attentional"] = Field(
        "none", description="update-look-generate: what of the last look enters the next input"
    )
    feed_start: Literal["zero", "look"] = Field("zero", description="feed = context: the first one")
    combine: bool = Field(False, description="look-update-generate: merge word and context first")
    gate: bool = Field(False, description="look-update-generate: a gate on what was read (Xu 2015)")
    read_out: Literal["linear", "affine", "tanh", "deep", "added", "maxout"] = Field(
        "linear", description="from state, context and last word to the next word"
    )
    first: Literal["<s>", "</s>"] = Field("<s>", description="the token that begins an output")
    words: PositiveInt = Field(5, description="abs: how many last words it sees (C)")
    window: int = Field(2, ge=0, description="abs: words averaged on each side of a source word (Q)")

    @property
    def recurrent(self) -> bool:
        return self.kind in RECURRENT


class ModelConfig(Section):
    preset: PresetName = Field("bigru-gru", description="fills what is not set here")
    embedding: PositiveInt = Field(128, description="width of the word vectors")
    dropout: Share = Field(0.1, description="share dropped from embeddings, layers and read-out")
    tie: Literal["none", "output", "all"] = Field(
        "none", description="output: target vectors serve the output too; all: the source as well"
    )
    copying: bool = Field(False, description="words can be copied from the source (See 2017)")
    initialise: Literal["torch", "paper"] = Field(
        "torch", description="paper: the small Gaussians of Bahdanau 2015; slow to start"
    )
    encoder: EncoderConfig = EncoderConfig()
    decoder: DecoderConfig = DecoderConfig()
    attention: AttentionConfig = AttentionConfig()
    classifier: ClassifierConfig | None = Field(None, description="classify: in place of a decoder")
    recommender: RecommenderConfig | None = Field(None, description="recommend: what reads a history")
    reader: ReaderConfig | None = Field(None, description="read: in place of encoder and decoder")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        problems = list(misfits(self))
        if problems:
            raise ValueError("; ".join(problems))
        return self


def encoder_width(model: ModelConfig) -> int:
    """The width of what the encoder gives for each position."""
    encoder = model.encoder
    if encoder.kind == "embedding":
        return model.embedding
    if encoder.kind in RECURRENT:
        return encoder.hidden * (2 if encoder.bidirectional else 1)
    return encoder.hidden


def pooled_width(model: ModelConfig) -> int:
    """The width of the one vector that a classifier makes of a text."""
    added = model.classifier is not None and model.classifier.form == "zhou"
    return encoder_width(model) // 2 if added else encoder_width(model)


def query_width(model: ModelConfig) -> int:
    """The width of what asks."""
    return model.decoder.words * model.embedding if model.decoder.kind == "abs" else model.decoder.hidden


def misfits(model: ModelConfig) -> Iterator[str]:
    """Settings that are right by themselves and have no meaning together."""
    yield from _encoder_misfits(model)
    if model.classifier is not None:
        yield from pooling_misfits(model)
        return
    if model.recommender is not None:
        yield from recommender_misfits(model)
        return
    if model.reader is not None:
        yield from reader_misfits(model)
        return
    yield from _decoder_misfits(model)
    yield from _picture_misfits(model)
    yield from _size_misfits(model)


def _encoder_misfits(model: ModelConfig) -> Iterator[str]:
    encoder = model.encoder
    if not encoder.read_end and not model.attention.read_end:
        yield "encoder.read_end = false: no end is left for attention.read_end = false to close"
    if encoder.kernel % 2 == 0:
        yield f"encoder.kernel = {encoder.kernel}: must be odd, so that a filter has a middle"
    if encoder.kind == "transformer" and encoder.hidden % encoder.heads:
        yield f"encoder.heads = {encoder.heads}: does not divide encoder.hidden = {encoder.hidden}"


def _decoder_misfits(model: ModelConfig) -> Iterator[str]:
    encoder, decoder = model.encoder, model.decoder
    if not decoder.recurrent and decoder.source != "attention":
        yield (
            f'decoder.source = "{decoder.source}": a {decoder.kind} decoder has no state to start from;'
            " it needs attention"
        )
    if decoder.recurrent and encoder.kind not in RECURRENT and decoder.start not in ("mean", "zeros"):
        yield (
            f'decoder.start = "{decoder.start}": a {encoder.kind} encoder has no final state;'
            ' take "mean" or "zeros"'
        )
    if decoder.recurrent and decoder.start == "backward" and not encoder.bidirectional:
        yield 'decoder.start = "backward": needs encoder.bidirectional = true'
    if decoder.order == "conditional" and decoder.kind != "gru" and decoder.recurrent:
        yield 'decoder.order = "conditional": is made of GRUs; take decoder.kind = "gru"'
    if decoder.feed != "none" and decoder.order != "update-look-generate":
        yield f'decoder.feed = "{decoder.feed}": belongs to decoder.order = "update-look-generate"'
    if decoder.feed == "attentional" and decoder.read_out not in ("tanh", "affine"):
        yield (
            'decoder.feed = "attentional": needs decoder.read_out = "tanh" (or "affine"), which makes'
            " that vector"
        )
    if decoder.combine and decoder.order != "look-update-generate":
        yield 'decoder.combine = true: belongs to decoder.order = "look-update-generate"'


def _picture_misfits(model: ModelConfig) -> Iterator[str]:
    encoder, decoder = model.encoder, model.decoder
    if decoder.gate and (decoder.order != "look-update-generate" or decoder.source != "attention"):
        yield 'decoder.gate = true: belongs to decoder.order = "look-update-generate" with attention'
    if encoder.kind == "regions" and model.copying:
        yield "copying = true: a picture has no words to copy"
    if encoder.kind == "regions" and model.tie == "all":
        yield 'tie = "all": a picture has no word vectors; take "output"'
    if encoder.kind == "regions" and not (encoder.read_end and model.attention.read_end):
        yield "read_end = false: a picture has no end token; its last region would be lost"


def _size_misfits(model: ModelConfig) -> Iterator[str]:
    decoder, attention = model.decoder, model.attention
    if decoder.kind == "transformer" and decoder.hidden % decoder.heads:
        yield f"decoder.heads = {decoder.heads}: does not divide decoder.hidden = {decoder.hidden}"
    if model.tie != "none" and decoder.recurrent and decoder.read_out == "linear":
        yield f'tie = "{model.tie}": a linear read-out has no vector of a word\'s width; take another'
    if decoder.kind == "transformer" or decoder.source != "attention":
        return
    query, key = query_width(model), encoder_width(model)
    if attention.heads and query % attention.heads:
        yield f"attention.heads = {attention.heads}: does not divide the query's width {query}"
    if not attention.heads and attention.score in ("dot", "scaled-dot", "prod-relu") and query != key:
        yield (
            f'attention.score = "{attention.score}": needs queries and keys of one size, but the'
            f" decoder gives {query} and the encoder {key}; general takes any two sizes"
        )
