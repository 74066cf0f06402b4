"""The sections [data] and [tokenizer]: training data, and how it is tokenized."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from heedful.section import Columns, Count, Fraction, Positions, Section, Texts
from heedful.tasks.caption.config import ImagesConfig, image_problems
from heedful.tasks.language_model.config import ReadingConfig
from heedful.tasks.recommend.config import RatingsConfig, ratings_problems

Files = Annotated[Texts, Field(max_length=2)]
MAX_COLUMNS = 3  # user, item and time


class WorldConfig(Section):
    """A world: generated data for which the gold attention is known."""

    name: Literal["phrases", "scenes", "moods", "tastes"] = Field("phrases", description="name of the generated world")
    languages: str = Field("en-fr", description="phrases: source and target language, two of en, fr, vi")
    train: int = Field(20_000, gt=0, le=10_000_000, description="training examples (tastes: users)")
    valid: int = Field(500, gt=0, le=10_000_000, description="validation examples")
    test: int = Field(500, gt=0, le=10_000_000, description="test examples")
    seed: int = Field(1, ge=-(2**63), lt=2**63, description="random seed of the world")
    min_words: int = Field(
        3, gt=0, le=1_000, description="phrases, moods: minimum source length, in words (moods: at least 5)"
    )
    max_words: int = Field(14, gt=0, le=1_000, description="phrases, moods: maximum source length, in words")
    classes: int = Field(2, ge=2, le=3, description="moods: number of labels; 3: with neutral")
    pixels: int = Field(112, gt=0, le=2_048, description="scenes: side of an image, in pixels")
    order: Literal["any", "left"] = Field(
        "any", description="scenes: object that a caption begins with; left: the leftmost"
    )
    items: int = Field(300, gt=0, le=1_000_000, description="tastes: number of items")
    genres: int = Field(12, gt=0, le=1_000, description="tastes: number of genres")

    @model_validator(mode="after")
    def _check_held_out(self) -> Self:
        if self.name == "tastes" and self.valid + self.test > self.train:
            raise ValueError(
                f"valid = {self.valid}, test = {self.test}: each user has one item held out, for validation or for"
                f" testing, and there are only train = {self.train} users"
            )
        return self


class DataConfig(Section):
    """A generated world, or files: one table (CSV, TSV, JSONL, JSON, Parquet), or two parallel text files."""

    world: WorldConfig | None = Field(None, description="a generated world instead of files")
    images: ImagesConfig | None = Field(None, description="caption: train, valid, test list image names")
    ratings: RatingsConfig | None = Field(None, description="recommend: format of the files")
    lm: ReadingConfig | None = Field(None, description="read: train, valid, test are plain text")
    train: Files = Field(
        (), description="training data: one table (CSV, TSV, JSONL, JSON, Parquet), or a source and a target file"
    )
    valid: Files = Field((), description="validation data, like train")
    test: Files = Field((), description="test data, like train")
    extra_train: Files = Field((), description="extra training files, excluded from the splits")
    columns: Columns = Field(
        (),
        description="names or numbers, counted from 1, of source and target; text and label; user, item and time; image"
        " and caption; nested JSON: translation.en; empty: found by their names, else the first ones",
    )
    header: Literal["auto", "yes", "no"] = Field("auto", description="CSV, TSV: the first line names the columns")
    separator: str = Field("", max_length=10, description="CSV, TSV: column separator; empty: found by itself")
    where: Texts = Field((), description='tables: keep only rows with these values, e.g. ["1=vie"] or ["lang=vie"]')
    split_valid: Fraction = Field(0.0, description="fraction of train used for validation, chosen by hash")
    split_test: Fraction = Field(0.0, description="fraction of train used for testing, chosen by hash")
    split_by: Literal["source", "target"] = Field(
        "source", description="side that is hashed; equal texts of that side stay in one split"
    )
    split_seed: int = Field(0, ge=0, lt=2**31, description="another seed chooses other rows for the splits")
    on_error: Literal["error", "skip"] = Field("error", description="what to do with a malformed line")
    max_source: Positions = Field(500, description="maximum source length, in tokens")
    max_target: Positions = Field(500, description="maximum target length, in tokens")
    on_too_long: Literal["error", "skip", "cut"] = Field("error", description="what to do with longer pairs")
    in_memory: int = Field(
        200_000, ge=0, le=1_000_000_000, description="number of pairs kept in memory; a larger corpus is cached on disk"
    )
    vectors: str = Field("", description="classify: file of word vectors (GloVe text, fastText .vec)")

    @model_validator(mode="after")
    def _check_sources(self) -> Self:
        problems = [*self._source_problems(), *self._split_problems()]
        if len(self.columns) > MAX_COLUMNS:
            problems.append(f"columns: at most {MAX_COLUMNS} can be used, got {len(self.columns)}")
        for text in self.where:
            if not text.partition("=")[0].strip() or "=" not in text:
                problems.append(f'where = ["{text}"]: expected "column=value"')
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _source_problems(self) -> Iterator[str]:
        if self.ratings is not None:
            yield from ratings_problems(self, self.ratings)
        elif self.images is not None:
            yield from image_problems(self.world, self.images)
        elif self.world is None and not (self.train and (self.valid or self.split_valid)):
            yield "train, valid: name the files, or use a world (section [data.world])"
        if self.world is not None and (self.train or self.valid or self.test):
            yield "train, valid, test, world: use files or a world, not both"
        if self.extra_train and not self.train:
            yield "extra_train: needs train"

    def _split_problems(self) -> Iterator[str]:
        for split, files, fraction in (
            ("valid", self.valid, self.split_valid),
            ("test", self.test, self.split_test),
        ):
            if fraction and (files or self.world is not None):
                yield f"split_{split} = {fraction}: there is {split} data already; remove one of them"
        if self.split_valid + self.split_test >= 1:
            yield "split_valid + split_test: must be less than 1, or no training data is left"


class TokenizerConfig(Section):
    """How lines are tokenized."""

    kind: Literal["word", "character", "bpe", "unigram"] = Field("word", description="tokenizer")
    target_kind: Literal["same", "word", "character", "bpe", "unigram"] = Field(
        "same", description="tokenizer of the target side"
    )
    vocab_size: int = Field(10_000, gt=0, le=10_000_000, description="maximum vocabulary size of each side")
    min_count: Count = Field(
        1,
        description="minimum count of a word or character, others become <unk>; bpe: minimum count of a merged pair",
    )
    shared: bool = Field(False, description="one vocabulary for both sides")
    lowercase: bool = Field(False, description="convert to lower case")
    decompose: bool = Field(
        False, description="decompose the source by Unicode NFD, into letters and accents (Korean: into letters)"
    )
    bpe_dropout: Fraction = Field(0.0, description="bpe: fraction of merges dropped in training (Provilkov 2020)")

    @model_validator(mode="after")
    def _check_conflicts(self) -> Self:
        kinds = {self.kind, self.kind if self.target_kind == "same" else self.target_kind}
        if self.shared and len(kinds) > 1:
            raise ValueError(f'shared = true: needs one tokenizer kind, not "{self.kind}" and "{self.target_kind}"')
        if self.shared and self.decompose:
            raise ValueError("decompose = true: applies to the source only, so shared must be false")
        if kinds & {"bpe", "unigram"} and self.vocab_size < 300:
            raise ValueError(f"vocab_size = {self.vocab_size}: bpe and unigram need at least 300 (256 are bytes)")
        if self.vocab_size < 5:
            raise ValueError(f"vocab_size = {self.vocab_size}: must be at least 5 (4 are special tokens)")
        if self.bpe_dropout and kinds != {"bpe"}:
            raise ValueError(f'bpe_dropout = {self.bpe_dropout}: needs kind = "bpe"')
        return self
