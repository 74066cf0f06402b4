"""What there is to learn from, and how lines become tokens."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from heedful.config.pictures import PicturesConfig
from heedful.config.reader import ReadingConfig
from heedful.config.recommender import RatingsConfig, check_ratings
from heedful.config.section import Section, Share

Files = Annotated[tuple[str, ...], Field(strict=False, max_length=2)]


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
    also: Files = Field((), description="the same, read behind train, and never held out")
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
        if self.also and not self.train:
            raise ValueError("also: read behind the files of train, and there are none")
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
    decompose: bool = Field(
        False, description="source: é becomes e and its accent, a Korean syllable its letters (Unicode's NFD)"
    )
    dropout: Share = Field(0.0, description="bpe: in training, joins left out by chance (Provilkov 2020)")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        kinds = {self.kind, self.kind if self.target_kind == "same" else self.target_kind}
        if self.shared and len(kinds) > 1:
            raise ValueError(f'shared = true: needs one kind, not "{self.kind}" and "{self.target_kind}"')
        if self.shared and self.decompose:
            raise ValueError("decompose = true: only sources are taken apart, so shared must be false")
        if kinds & {"bpe", "unigram"} and self.size < 300:
            raise ValueError(f"size = {self.size}: bpe and unigram need 300 or more (256 are single bytes)")
        if self.size < 5:
            raise ValueError(f"size = {self.size}: 4 are special, so at least 5")
        if self.dropout and kinds != {"bpe"}:
            raise ValueError(f'dropout = {self.dropout}: only kind = "bpe" joins pieces')
        return self
