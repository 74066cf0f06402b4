"""Every setting of a recipe, its default and its meaning, in one place.

The descriptions are what `heedful check` prints beside the values. Names of mechanisms are Literals, so
that a recipe is checked without torch; a test equates them with the tables of the attention room.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator

ScoreName = Literal[
    "additive", "concat", "dot", "scaled-dot", "general", "location", "prod-relu", "concat-relu"
]
NormaliserName = Literal["softmax", "smoothed-softmax", "sparsemax", "entmax15"]
PlacementName = Literal["global", "local-m", "local-p", "hard", "uniform"]
ReadName = Literal["sample", "argmax", "expectation"]
Share = Annotated[float, Field(ge=0.0, lt=1.0)]
Files = Annotated[tuple[str, ...], Field(strict=False, max_length=2)]


class Section(BaseModel):
    """Base of every section: frozen, strict about types, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class TaskConfig(Section):
    kind: Literal["translate"] = Field("translate", description="what the model is for")


class WorldConfig(Section):
    name: Literal["phrases"] = Field("phrases", description="which generated world")
    languages: str = Field("en-fr", description="source-target: two of en, fr, vi")
    train: PositiveInt = Field(20_000, description="pairs to train on")
    valid: PositiveInt = Field(500, description="pairs to validate on")
    test: PositiveInt = Field(500, description="pairs to test on")
    seed: int = Field(1, description="the world's own seed")
    min_words: PositiveInt = Field(3, description="shortest source sentence")
    max_words: PositiveInt = Field(14, description="longest source sentence")


class DataConfig(Section):
    """Either a generated world, or files: one TSV, or two parallel files; gz or not."""

    world: WorldConfig | None = Field(None, description="a generated world in place of files")
    train: Files = Field((), description="one TSV file, or a source and a target file")
    valid: Files = Field((), description="the same, to validate on")
    test: Files = Field((), description="the same, to test on")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.world is None and not (self.train and self.valid):
            raise ValueError("give train and valid files, or a world (section [data.world])")
        if self.world is not None and (self.train or self.valid or self.test):
            raise ValueError("give files or a world, not both")
        return self


class TokenizerConfig(Section):
    kind: Literal["word"] = Field("word", description="how a line becomes tokens")
    size: PositiveInt = Field(10_000, description="largest vocabulary of each side")
    min_count: PositiveInt = Field(1, description="rarer words become <unk>")


class AttentionConfig(Section):
    score: ScoreName = Field("additive", description="how well a query fits a key")
    normaliser: NormaliserName = Field("softmax", description="from scores to weights")
    placement: PlacementName = Field("global", description="which part of the source is weighed")
    hidden: PositiveInt = Field(128, description="inner width of additive, concat and the relu scores")
    heads: int = Field(0, ge=0, description="0: one look without projections; else multi-head")
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
        if self.placement == "hard" and self.normaliser == "smoothed-softmax":
            raise ValueError('placement = "hard": draws from its weights, so smoothed-softmax cannot serve')
        return self


class EncoderConfig(Section):
    kind: Literal["gru"] = Field("gru", description="the recurrent cell")
    layers: PositiveInt = Field(1, description="stacked layers")
    hidden: PositiveInt = Field(128, description="width of each direction")
    bidirectional: bool = Field(True, description="read from both ends")


class DecoderConfig(Section):
    kind: Literal["gru"] = Field("gru", description="the recurrent cell")
    layers: PositiveInt = Field(1, description="stacked layers; the top one asks")
    hidden: PositiveInt = Field(128, description="width")


class ModelConfig(Section):
    preset: Literal["bigru-gru"] = Field("bigru-gru", description="fills what is not set here")
    embedding: PositiveInt = Field(128, description="width of the word vectors")
    dropout: Share = Field(0.1, description="share dropped from embeddings and read-out")
    encoder: EncoderConfig = EncoderConfig()
    decoder: DecoderConfig = DecoderConfig()
    attention: AttentionConfig = AttentionConfig()

    @model_validator(mode="after")
    def _sizes_fit(self) -> Self:
        query = self.decoder.hidden
        key = self.encoder.hidden * (2 if self.encoder.bidirectional else 1)
        if self.attention.heads:
            if query % self.attention.heads:
                raise ValueError(
                    f"attention.heads = {self.attention.heads}: does not divide decoder.hidden = {query}"
                )
        elif self.attention.score in ("dot", "scaled-dot", "prod-relu") and query != key:
            raise ValueError(
                f'attention.score = "{self.attention.score}": needs queries and keys of one size, but the'
                f" decoder gives {query} and the encoder {key}; general takes any two sizes"
            )
        return self


class TrainingConfig(Section):
    seed: int = Field(1, description="weights, data order and dropout follow from it")
    epochs: PositiveInt = Field(10, description="passes over the training data")
    batch_tokens: PositiveInt = Field(2_000, description="target positions in a batch, padding included")
    rate: float = Field(0.002, gt=0.0, description="Adam's learning rate at its highest")
    warmup: int = Field(100, ge=0, description="steps over which the rate rises")
    clip: float = Field(1.0, gt=0.0, description="largest norm of the gradient")
    smoothing: Share = Field(0.0, description="label smoothing")


class DecodingConfig(Section):
    method: Literal["greedy"] = Field("greedy", description="how the output is searched")
    max_length: PositiveInt = Field(100, description="longest output")


class Recipe(Section):
    task: TaskConfig = TaskConfig()
    data: DataConfig
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()
