"""Every setting of a recipe, its default and its meaning, in one place.

The descriptions are what `heedful check` prints beside the values. Names of mechanisms are Literals, so
that a recipe is checked without torch; a test equates them with the tables of the attention room.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from heedful.config.classifier import (
    BALANCED,
    ClassifierConfig,
    class_weight,
    label_misfits,
    pooling_misfits,
)
from heedful.config.pictures import PicturesConfig, picture_misfits
from heedful.config.reader import ReaderConfig, ReadingConfig, reader_misfits, reading_misfits
from heedful.config.recommender import (
    RatingsConfig,
    RecommenderConfig,
    check_ratings,
    recommender_misfits,
    taste_misfits,
)
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
Files = Annotated[tuple[str, ...], Field(strict=False, max_length=2)]


class TaskConfig(Section):
    kind: Literal[
        "translate", "summarise", "reply", "transduce", "caption", "classify", "recommend", "read"
    ] = Field("translate", description="what the model is for")


class WorldConfig(Section):
    name: Literal["phrases", "scenes", "moods", "tastes"] = Field(
        "phrases", description="which generated world"
    )
    languages: str = Field("en-fr", description="phrases: source-target, two of en, fr, vi")
    train: PositiveInt = Field(20_000, description="pairs, pictures or users to train on")
    valid: PositiveInt = Field(500, description="pairs to validate on")
    test: PositiveInt = Field(500, description="pairs to test on")
    seed: int = Field(1, description="the world's own seed")
    min_words: PositiveInt = Field(3, description="phrases, moods: shortest source sentence (moods: 5)")
    max_words: PositiveInt = Field(14, description="phrases, moods: longest source sentence")
    classes: int = Field(2, ge=2, le=3, description="moods: labels; the third is neutral")
    pixels: PositiveInt = Field(112, description="scenes: side of a picture")
    order: Literal["any", "left"] = Field("any", description="scenes: left: spoken of from left to right")
    items: PositiveInt = Field(300, description="tastes: items to choose from")
    genres: PositiveInt = Field(12, description="tastes: kinds of items")

    @model_validator(mode="after")
    def _held_out(self) -> Self:
        if self.name == "tastes" and self.valid + self.test > self.train:
            raise ValueError(
                f"valid = {self.valid} and test = {self.test}: every user of the tastes has one item held"
                f" out, to validate or to test on, but there are train = {self.train} of them"
            )
        return self


class DataConfig(Section):
    """Either a generated world, or files: one TSV or JSONL, or two parallel files; gz or not."""

    world: WorldConfig | None = Field(None, description="a generated world in place of files")
    pictures: PicturesConfig | None = Field(None, description="captions: train, valid, test list pictures")
    ratings: RatingsConfig | None = Field(None, description="recommend: how the files are read")
    reading: ReadingConfig | None = Field(None, description="read: train, valid, test are plain text")
    train: Files = Field((), description="one TSV or JSONL file, or a source and a target file")
    valid: Files = Field((), description="the same, to validate on")
    test: Files = Field((), description="the same, to test on")
    columns: Annotated[tuple[PositiveInt, PositiveInt], Field(strict=False)] = Field(
        (1, 2), description="TSV: the columns of source and target, counted from 1"
    )
    fields: Annotated[tuple[str, str], Field(strict=False)] = Field(
        ("source", "target"), description="JSONL: the fields of source and target"
    )
    where: Annotated[tuple[str, ...], Field(strict=False)] = Field(
        (), description='TSV, JSONL: only rows with these values, as in ["1=vie"] or ["lang=vie"]'
    )
    split_valid: Share = Field(0.0, description="share of train held out to validate on, chosen by hash")
    split_test: Share = Field(0.0, description="share of train held out to test on, chosen by hash")
    split_by: Literal["source", "target"] = Field(
        "source", description="the side that is hashed: its equal texts never meet across splits"
    )
    broken: Literal["refuse", "skip"] = Field("refuse", description="what is done with a broken line")
    max_source: PositiveInt = Field(500, description="longest source, in tokens")
    max_target: PositiveInt = Field(500, description="longest target, in tokens")
    longer: Literal["refuse", "skip", "cut"] = Field("refuse", description="what is done with longer pairs")
    in_memory: int = Field(
        200_000, ge=0, description="pairs kept in memory; a larger corpus is read from a cache on disk"
    )
    vectors: str = Field("", description="classify: a file of word vectors (GloVe's text, fastText's .vec)")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.ratings is not None:
            check_ratings(self, self.ratings)
        elif self.pictures is not None:
            _check_pictures(self.world, self.pictures)
        elif self.world is None and not (self.train and (self.valid or self.split_valid)):
            raise ValueError("give train and valid files, or a world (section [data.world])")
        if self.world is not None and (self.train or self.valid or self.test):
            raise ValueError("give files or a world, not both")
        for split, files, share in (
            ("valid", self.valid, self.split_valid),
            ("test", self.test, self.split_test),
        ):
            if share and (files or self.world is not None):
                raise ValueError(f"split_{split} = {share}: there are {split} pairs of their own already")
        if self.split_valid + self.split_test >= 1:
            raise ValueError("split_valid + split_test: nothing would be left to train on")
        for text in self.where:
            if not text.partition("=")[0].strip() or "=" not in text:
                raise ValueError(f'where = ["{text}"]: expected "column=value"')
        return self


def _check_pictures(world: WorldConfig | None, pictures: PicturesConfig) -> None:
    if world is None and not (pictures.folder and pictures.captions):
        raise ValueError("pictures: give a folder and a file with captions, or a world")
    if world is not None and (pictures.folder or pictures.captions):
        raise ValueError("give pictures or a world, not both")


class TokenizerConfig(Section):
    kind: Literal["word", "character", "bpe", "unigram"] = Field(
        "word", description="how a line becomes tokens"
    )
    target_kind: Literal["same", "word", "character", "bpe", "unigram"] = Field(
        "same", description="how a target line does, where it differs"
    )
    size: PositiveInt = Field(10_000, description="largest vocabulary of each side")
    min_count: PositiveInt = Field(
        1, description="rarer words and characters become <unk>; bpe: rarer pairs are not joined"
    )
    shared: bool = Field(False, description="one vocabulary for both sides")
    lowercase: bool = Field(False, description="capitals are lost")
    dropout: Share = Field(0.0, description="bpe: in training, joins left out by chance (Provilkov 2020)")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        kinds = {self.kind, self.kind if self.target_kind == "same" else self.target_kind}
        if self.shared and len(kinds) > 1:
            raise ValueError(f'shared = true: needs one kind, not "{self.kind}" and "{self.target_kind}"')
        if kinds & {"bpe", "unigram"} and self.size < 300:
            raise ValueError(f"size = {self.size}: bpe and unigram need 300 or more (256 are single bytes)")
        if self.size < 5:
            raise ValueError(f"size = {self.size}: 4 are special, so at least 5")
        if self.dropout and kinds != {"bpe"}:
            raise ValueError(f'dropout = {self.dropout}: only kind = "bpe" joins pieces')
        return self


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
    bidirectional: bool = Field(True, description="recurrent: read from both ends")
    residual: bool = Field(False, description="recurrent: layers above the first add to their input")
    layer_norm: bool = Field(False, description="recurrent: normalise each layer's output")
    kernel: PositiveInt = Field(3, description="conv: width of a filter, an odd number")
    heads: PositiveInt = Field(4, description="transformer: heads of its self-attention")
    feedforward: PositiveInt = Field(512, description="transformer: inner width of each layer")
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


class TrainingConfig(Section):
    seed: int = Field(1, description="weights, data order and dropout follow from it")
    epochs: PositiveInt = Field(10, description="passes over the training data, at most")
    max_steps: int = Field(0, ge=0, description="updates, at most; 0: as many as the epochs have")
    max_minutes: float = Field(0.0, ge=0.0, description="time, at most; 0: no limit")
    batch_tokens: PositiveInt = Field(
        2_000, description="positions in a batch, padding included, of the longer side"
    )
    negatives: PositiveInt = Field(4, description="recommend: items drawn beside each that was taken")
    accumulate: PositiveInt = Field(1, description="batches (of each process) that make one update")
    optimizer: Literal["adam", "adamw", "sgd", "adadelta", "adagrad"] = Field(
        "adam", description="how gradients become updates; adadelta wants rate = 1"
    )
    rate: float = Field(0.002, gt=0.0, description="the learning rate at its highest")
    betas: Annotated[tuple[Share, Share], Field(strict=False)] = Field(
        (0.9, 0.999), description="adam, adamw: how long they remember; Transformers: 0.9, 0.98"
    )
    momentum: Share = Field(0.0, description="sgd: how much of the last update it keeps")
    weight_decay: float = Field(0.0, ge=0.0, description="how strongly weights are drawn to 0")
    schedule: Literal["constant", "inverse-sqrt", "cosine", "linear", "plateau"] = Field(
        "cosine", description="how the rate goes after its rise"
    )
    warmup: int = Field(100, ge=0, description="steps over which the rate rises")
    decay: float = Field(0.5, gt=0.0, lt=1.0, description="plateau: what the rate is multiplied by")
    decay_after: PositiveInt = Field(2, description="plateau: after so many validations without gain")
    clip: float = Field(1.0, ge=0.0, description="largest norm of the gradient; 0: any")
    smoothing: Share = Field(0.0, description="label smoothing")
    agreement: float = Field(
        0.0, ge=0.0, description="R-Drop: every batch is read twice, and pays where both differ; 0: off"
    )
    unknown: bool = Field(
        True, description="models that write: is <unk> learnt? false: it is hardly ever written"
    )
    sampling: float = Field(
        0.0, ge=0.0, le=1.0, description="scheduled sampling: how often the model reads its own word"
    )
    even: float = Field(
        0.0, ge=0.0, description="price of positions read too little or too much in all (Xu 2015, eq. 14)"
    )
    reinforce: float = Field(1.0, ge=0.0, description="hard attention: strength of what draws are taught")
    entropy: float = Field(0.01, ge=0.0, description="hard attention: pay for weights that stay open")
    expected: float = Field(
        0.5, ge=0.0, le=1.0, description="hard attention: share of sentences that read the expectation"
    )
    reward: Literal["none", "cider"] = Field(
        "none", description="caption: cider: learn from captions drawn from the model itself (Rennie 2017)"
    )
    draws: int = Field(5, ge=2, description="reward: captions drawn for each picture")
    class_weights: Annotated[tuple[str, ...], Field(strict=False)] = Field(
        (), description='classify: what a text counts by its label, as in ["neutral=3"]; or ["balanced"]'
    )
    start_from: str = Field("", description="classify, recommend, caption: a model folder to begin with")
    hold_vectors: bool = Field(False, description="classify: the vectors of data.vectors are not trained")
    ema: Share = Field(0.0, description="use a moving average of the weights with this decay; 0: off")
    average: int = Field(0, ge=0, description="use the mean of the weights of the last validations; 0: off")
    validate_every: int = Field(0, ge=0, description="steps between validations; 0: once an epoch")
    validate_pairs: int = Field(0, ge=0, description="validation pairs used, from the first on; 0: all")
    metric: str = Field("loss", description="the figure that says which weights are best")
    patience: int = Field(0, ge=0, description="validations without gain that end it; 0: never")
    keep_best: bool = Field(False, description="end with the best weights, not the last; so does patience")
    checkpoint_every: PositiveInt = Field(500, description="steps between saved states, to go on from")
    threads: int = Field(0, ge=0, le=1_024, description="of the CPU; 0: torch chooses")
    device: Literal["cpu", "auto", "cuda", "gpu", "mps", "tpu"] = Field(
        "cpu", description="where to compute; tested on the CPU only"
    )
    precision: Literal["32-true", "64-true", "bf16-mixed", "16-mixed", "bf16-true", "16-true"] = Field(
        "32-true", description="of the numbers; all but 32-true are tested little or not at all"
    )
    tensorboard: bool = Field(False, description="write curves for TensorBoard (heedful[tensorboard])")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.ema and self.average:
            raise ValueError("ema and average: both average the weights; take one")
        for text in self.class_weights:
            if class_weight(text) is None and self.class_weights != (BALANCED,):
                raise ValueError(f'class_weights = ["{text}"]: expected "label=weight", or only "{BALANCED}"')
        return self


class DecodingConfig(Section):
    method: Literal["greedy", "beam", "sample"] = Field("greedy", description="how the output is searched")
    beam: PositiveInt = Field(5, description="beam: hypotheses side by side")
    alpha: float = Field(1.0, ge=0.0, description="beam: strength of the length penalty")
    beta: float = Field(0.0, ge=0.0, description="beam: strength of the coverage penalty")
    exact: bool = Field(False, description="beam: go on until nothing could change the result; slower")
    n_best: PositiveInt = Field(1, description="beam, sample: outputs for each input")
    temperature: float = Field(1.0, gt=0.0, description="sample: below 1 is tamer, above wilder")
    top_k: int = Field(0, ge=0, description="sample: only from the likeliest so many words; 0: all")
    top_p: float = Field(1.0, gt=0.0, le=1.0, description="sample: only from this share of the mass")
    seed: int = Field(1, description="sample: the same seed draws the same words")
    max_length: PositiveInt = Field(100, description="longest output, in tokens")
    replace_unknown: bool = Field(False, description="write the source word looked at in place of <unk>")
    batch: PositiveInt = Field(64, description="sentences searched together")


class Recipe(Section):
    task: TaskConfig = TaskConfig()
    data: DataConfig
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.model.tie == "all" and not self.tokenizer.shared:
            raise ValueError(
                'model.tie = "all": needs tokenizer.shared = true, one vocabulary for both sides'
            )
        if self.model.copying and not self.tokenizer.shared:
            raise ValueError(
                "model.copying = true: needs tokenizer.shared = true, one vocabulary for both sides"
            )
        problems = [
            *_agreement_misfits(self),
            *_reward_misfits(self),
            *taste_misfits(self),
            *picture_misfits(self),
            *label_misfits(self),
            *reading_misfits(self),
        ]
        if problems:
            raise ValueError("; ".join(problems))
        return self


def _agreement_misfits(recipe: Recipe) -> Iterator[str]:
    if not recipe.training.agreement:
        return
    model, name = recipe.model, f"training.agreement = {recipe.training.agreement:g}"
    if model.recommender is not None or model.reader is not None:
        yield f"{name}: for models that write or classify only"
    if model.copying:
        yield f"{name}: not with model.copying = true, whose words have no scores of their own"
    if model.attention.placement == "hard":
        yield f'{name}: not with attention.placement = "hard", where two readings differ by their draws'


def _reward_misfits(recipe: Recipe) -> Iterator[str]:
    training = recipe.training
    if training.reward == "none":
        return
    name = f'training.reward = "{training.reward}"'
    if recipe.task.kind != "caption":
        yield f'{name}: only "caption" knows it, not "{recipe.task.kind}"'
        return
    if not training.start_from:
        yield f"{name}: needs training.start_from, a captioner that was trained on given captions first"
    if recipe.model.attention.placement == "hard":
        yield f'{name}: not with attention.placement = "hard", whose looks are drawn, too'
    if recipe.data.pictures is not None and recipe.data.pictures.tuned:
        yield f"{name}: not with data.pictures.tuned = true"
    unread = [key for key in ("agreement", "even", "sampling", "smoothing") if getattr(training, key)]
    if unread:
        yield f"{name}: training.{', training.'.join(unread)} are for given captions; set them to 0"
