"""The section [model]: encoder, decoder and attention, and checks for settings that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from heedful.config.choice import Choice
from heedful.config.presets import PRESETS
from heedful.section import Fraction, Layers, Positions, Section, Width
from heedful.tasks.classify import config as classify
from heedful.tasks.classify.config import ClassifierConfig
from heedful.tasks.language_model import config as language_model
from heedful.tasks.language_model.config import LanguageModelConfig
from heedful.tasks.recommend import config as recommend
from heedful.tasks.recommend.config import RecommenderConfig

RECURRENT = ("rnn", "gru", "lstm")
ScoreName = Annotated[str, Choice("score")]
NormalizerName = Annotated[str, Choice("normalizer")]
PlacementName = Annotated[str, Choice("placement")]
HardModeName = Literal["sample", "argmax", "expectation"]


class AttentionConfig(Section):
    """An attention mechanism: score, normalizer, placement and heads can be combined freely."""

    score: ScoreName = Field("additive", description="score of a query and a key")
    normalizer: NormalizerName = Field("softmax", description="from scores to weights")
    placement: PlacementName = Field("global", description="source positions that may be attended to")
    hidden: Width = Field(128, description="additive, concat, *-relu: width of the hidden layer")
    heads: int = Field(0, ge=0, le=65_536, description="number of heads; 0: one head without projections")
    bias: bool = Field(False, description="additive: add a bias inside the tanh, as in OpenNMT-py")
    coverage: bool = Field(False, description="additive: add the coverage vector to the score (See 2017)")
    read_end: bool = Field(True, description="attend to the source's end token")
    dropout: Fraction = Field(0.0, description="dropout on the weights")
    beta: float = Field(0.5, gt=0.0, le=1.0, description="smoothed-softmax: exponent of the denominator; 1 is softmax")
    window: Positions = Field(10, description="local: positions on each side of the center (D, Luong 2015)")
    renormalize: bool = Field(False, description="local-p: renormalize the weights to sum to 1")
    hard_training: HardModeName = Field("sample", description="hard: how a position is chosen in training")
    hard_inference: HardModeName = Field("expectation", description="hard: how a position is chosen at inference")
    max_source_positions: Positions = Field(64, description="location: maximum source length, in tokens")
    on_too_long: Literal["error", "ignore"] = Field("error", description="location: what to do with longer sources")

    @model_validator(mode="after")
    def _check_conflicts(self) -> Self:
        if self.coverage and self.score != "additive":
            raise ValueError(f'coverage = true: needs score = "additive", not "{self.score}"')
        if self.bias and self.score != "additive":
            raise ValueError(f'bias = true: needs score = "additive", not "{self.score}"')
        if self.placement == "hard" and self.normalizer == "smoothed-softmax":
            raise ValueError(
                'placement = "hard": samples from weights that sum to 1; use another normalizer than smoothed-softmax'
            )
        return self


class LayersConfig(Section):
    """Settings that encoders and decoders share."""

    kind: str
    layers: Layers = Field(1, description="number of layers")
    hidden: Width = Field(128, description="width")
    residual: bool = Field(False, description="recurrent: residual connections around all layers but the first")
    layer_norm: bool = Field(False, description="recurrent: layer norm after each layer")
    kernel_size: Width = Field(3, description="conv: kernel size (encoder: an odd number)")
    heads: Width = Field(4, description="transformer: attention heads")
    feedforward: Width = Field(512, description="transformer: width of the feed-forward layers")
    inner_dropout: float = Field(
        1.0,
        ge=0.0,
        le=1.0,
        description="transformer: dropout inside attention and feed-forward, relative to model.dropout",
    )
    norm: Literal["pre", "post"] = Field("pre", description="transformer: layer norm before or after each sublayer")
    norm_epsilon: float = Field(1e-5, gt=0.0, description="transformer: epsilon of the layer norm")
    positions: Literal["sinusoidal", "learned"] = Field(
        "sinusoidal", description="conv, transformer: position encoding"
    )
    max_positions: Positions = Field(512, description="number of learned positions (encoder: or regions)")


class EncoderConfig(LayersConfig):
    """The encoder of the source."""

    kind: Literal["rnn", "gru", "lstm", "lstmn", "conv", "transformer", "embedding", "regions"] = Field(
        "gru", description="architecture; regions: image features"
    )
    hidden: Width = Field(128, description="width (recurrent: of each direction)")
    read_end: bool = Field(True, description="encode the source's end token")
    dropout: Fraction = Field(0.0, description="dropout on the encoder's output")
    bidirectional: bool = Field(True, description="recurrent: one network in each direction")
    region_embedding: bool = Field(False, description="regions: add a learned embedding of each region's place")

    @property
    def recurrent(self) -> bool:
        return self.kind in RECURRENT


class DecoderConfig(LayersConfig):
    """The decoder of the target."""

    kind: Literal["rnn", "gru", "lstm", "conv", "transformer", "abs"] = Field("gru", description="architecture")
    layers: Layers = Field(1, description="number of layers; the top one is the attention query")
    source: Literal["attention", "init", "every-step"] = Field(
        "attention", description="how the source reaches the decoder: attention, initial state, input of every step"
    )
    state_init: Literal["backward", "bridge", "top", "mean", "zeros"] = Field(
        "backward", description="recurrent: initial state, computed from the encoder"
    )
    step_order: Literal["update-attend-generate", "attend-update-generate", "attend-generate-update", "conditional"] = (
        Field("update-attend-generate", description="recurrent: order of the operations in a step")
    )
    input_feeding: Literal["none", "context", "attentional"] = Field(
        "none", description="update-attend-generate: vector of the last step that enters the next input (Luong 2015)"
    )
    input_feeding_init: Literal["zero", "attend"] = Field(
        "zero", description='input_feeding = "context": the vector of the first step'
    )
    combine: bool = Field(
        False, description="attend-update-generate: project word and context together before the update"
    )
    gate: bool = Field(False, description="attend-update-generate: a gate on the context (Xu 2015)")
    read_out: Literal["linear", "affine", "tanh", "deep", "added", "maxout"] = Field(
        "linear", description="output layer, computed from state, context and previous word"
    )
    start_token: Literal["<s>", "</s>"] = Field("<s>", description="first input token")
    context_words: Width = Field(5, description="abs: number of previous words (C, Rush 2015)")
    smoothing_window: int = Field(
        2, ge=0, le=65_536, description="abs: words averaged on each side of a source word (Q)"
    )

    @property
    def recurrent(self) -> bool:
        return self.kind in RECURRENT


class ModelConfig(Section):
    """The complete model; `preset` provides the settings that the recipe does not set."""

    preset: Annotated[str, Choice("preset", lambda: PRESETS)] = Field(
        "bigru-gru", description="model of the literature that provides all settings not set here"
    )
    embedding: Width = Field(128, description="width of the word vectors")
    dropout: Fraction = Field(0.1, description="dropout on embeddings, layers and output layer")
    tie_embeddings: Literal["none", "output", "all"] = Field(
        "none", description="output: output layer shares the target embeddings; all: source embeddings too"
    )
    copying: bool = Field(False, description="pointer-generator: words can be copied from the source (See 2017)")
    initialization: Literal["torch", "paper"] = Field(
        "torch", description="paper: the small Gaussian weights of Bahdanau 2015; learns slowly at first"
    )
    encoder: EncoderConfig = EncoderConfig()
    decoder: DecoderConfig = DecoderConfig()
    attention: AttentionConfig = AttentionConfig()
    classifier: ClassifierConfig | None = Field(None, description="classify: the classifier, in place of a decoder")
    recommender: RecommenderConfig | None = Field(None, description="recommend: the recommender, in place of a decoder")
    language_model: LanguageModelConfig | None = Field(
        None, description="read: the language model, in place of encoder and decoder"
    )

    @property
    def encoder_width(self) -> int:
        """Width of the encoder's output."""
        if self.encoder.kind == "embedding":
            return self.embedding
        return self.encoder.hidden * (2 if self.encoder.recurrent and self.encoder.bidirectional else 1)

    @property
    def pooled_width(self) -> int:
        """Width of the vector that a classifier pools from the encoder's output."""
        directions_added = self.classifier is not None and self.classifier.form == "zhou"
        return self.encoder_width // 2 if directions_added else self.encoder_width

    @property
    def query_width(self) -> int:
        """Width of the decoder's attention query."""
        return self.decoder.context_words * self.embedding if self.decoder.kind == "abs" else self.decoder.hidden

    @model_validator(mode="after")
    def _check_conflicts(self) -> Self:
        conflicts = list(model_conflicts(self))
        if conflicts:
            raise ValueError("; ".join(conflicts))
        return self


def model_conflicts(model: ModelConfig) -> Iterator[str]:
    """Yield a sentence for each combination of valid settings that contradict each other."""
    yield from _encoder_conflicts(model)
    if model.classifier is not None:
        yield from classify.model_conflicts(model)
    elif model.recommender is not None:
        yield from recommend.model_conflicts(model)
    elif model.language_model is not None:
        yield from language_model.model_conflicts(model)
    else:
        yield from _decoder_conflicts(model)
        yield from _image_conflicts(model)
        yield from _width_conflicts(model)


def _encoder_conflicts(model: ModelConfig) -> Iterator[str]:
    encoder = model.encoder
    if not encoder.read_end and not model.attention.read_end:
        yield "encoder.read_end = false: the encoder has no end token, so attention.read_end must be true"
    if encoder.kernel_size % 2 == 0:
        yield f"encoder.kernel_size = {encoder.kernel_size}: must be odd, so that a kernel has a center"
    if encoder.kind == "transformer" and encoder.hidden % encoder.heads:
        yield f"encoder.heads = {encoder.heads}: does not divide encoder.hidden = {encoder.hidden}"


def _decoder_conflicts(model: ModelConfig) -> Iterator[str]:
    encoder, decoder = model.encoder, model.decoder
    if not decoder.recurrent and decoder.source != "attention":
        yield (
            f'decoder.source = "{decoder.source}": a {decoder.kind} decoder has no initial state;'
            ' use decoder.source = "attention"'
        )
    if decoder.recurrent and not encoder.recurrent and decoder.state_init not in ("mean", "zeros"):
        yield (
            f'decoder.state_init = "{decoder.state_init}": a {encoder.kind} encoder has no final state;'
            ' use "mean" or "zeros"'
        )
    if decoder.recurrent and decoder.state_init == "backward" and not encoder.bidirectional:
        yield 'decoder.state_init = "backward": needs encoder.bidirectional = true'
    if decoder.step_order == "conditional" and decoder.kind != "gru" and decoder.recurrent:
        yield 'decoder.step_order = "conditional": needs decoder.kind = "gru"'
    if decoder.input_feeding != "none" and decoder.step_order != "update-attend-generate":
        yield (
            f'decoder.input_feeding = "{decoder.input_feeding}": needs decoder.step_order = "update-attend-generate"'
        )
    if decoder.input_feeding == "attentional" and decoder.read_out not in ("tanh", "affine"):
        yield (
            'decoder.input_feeding = "attentional": needs decoder.read_out = "tanh" (or "affine"), which computes'
            " the attentional vector"
        )
    if decoder.combine and decoder.step_order != "attend-update-generate":
        yield 'decoder.combine = true: needs decoder.step_order = "attend-update-generate"'
    if decoder.gate and (decoder.step_order != "attend-update-generate" or decoder.source != "attention"):
        yield (
            'decoder.gate = true: needs decoder.step_order = "attend-update-generate" and decoder.source = "attention"'
        )


def _image_conflicts(model: ModelConfig) -> Iterator[str]:
    encoder = model.encoder
    if encoder.kind == "regions" and model.copying:
        yield "copying = true: an image has no words to copy"
    if encoder.kind == "regions" and model.tie_embeddings == "all":
        yield 'tie_embeddings = "all": an image has no word vectors; use "output"'
    if encoder.kind == "regions" and not (encoder.read_end and model.attention.read_end):
        yield "read_end = false: an image has no end token; its last region would be lost"


def _width_conflicts(model: ModelConfig) -> Iterator[str]:
    decoder, attention = model.decoder, model.attention
    if decoder.kind == "transformer" and decoder.hidden % decoder.heads:
        yield f"decoder.heads = {decoder.heads}: does not divide decoder.hidden = {decoder.hidden}"
    if model.tie_embeddings != "none" and decoder.recurrent and decoder.read_out == "linear":
        yield (
            f'tie_embeddings = "{model.tie_embeddings}": a linear read-out has no vector of the embeddings\' width;'
            " use another decoder.read_out"
        )
    if decoder.kind == "transformer" or decoder.source != "attention":
        return
    query, key = model.query_width, model.encoder_width
    if attention.heads and query % attention.heads:
        yield f"attention.heads = {attention.heads}: does not divide the query's width {query}"
    if not attention.heads and attention.score in ("dot", "scaled-dot", "prod-relu") and query != key:
        yield (
            f'attention.score = "{attention.score}": needs queries and keys of one width, but the decoder\'s queries'
            f' have {query} and the encoder\'s keys {key}; use score = "general" for different widths'
        )
