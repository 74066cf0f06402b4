"""The section [model.classifier], and what does not fit it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from heedful.config.section import RECURRENT, Section, Share

if TYPE_CHECKING:
    from heedful.config.model import ModelConfig
    from heedful.config.schema import Recipe

BALANCED = "balanced"


class ClassifierConfig(Section):
    """From the states of all words to one vector, and from that to a label."""

    pooling: Literal["attention", "mean", "max", "last"] = Field(
        "attention", description="how the words' states become one; attention: see [model.attention]"
    )
    query: Literal["final", "learned"] = Field(
        "learned", description="attention: what asks, the reader's final state or a learned vector"
    )
    form: Literal["plain", "zhou"] = Field(
        "plain", description="zhou: directions are added, keys and what was read pass a tanh (Zhou 2016)"
    )
    sentences: list[str] = Field(
        [],
        description="marks that end a sentence: words are read within theirs, then sentences (Yang 2016)",
    )
    dropout: Share = Field(0.3, description="share dropped of the one vector")
    word_dropout: Share = Field(0.0, description="share of words that training reads as unknown")
    neighbours: float = Field(
        0.0,
        ge=0.0,
        description="price of guessing each word from its neighbours in training (Rei 2017); 0: off",
    )


def class_weight(text: str) -> tuple[str, float] | None:
    """A label and its weight from "label=weight"; None if it is none.

    >>> class_weight("a=b=2.5"), class_weight("neutral"), class_weight("neutral=-1")
    (('a=b', 2.5), None, None)
    """
    label, _, number = text.rpartition("=")
    try:
        weight = float(number)
    except ValueError:
        return None
    return (" ".join(label.split()), weight) if label.strip() and 0 < weight < float("inf") else None


def pooling_misfits(model: ModelConfig) -> Iterator[str]:
    """Settings of a classifier that are right by themselves and have no meaning together."""
    classifier, encoder = model.classifier, model.encoder
    assert classifier is not None
    if model.decoder != type(model.decoder)():
        yield "decoder: a classifier writes nothing, so it has no such section"
    if model.tie != "none" or model.copying:
        yield "tie, copying: a classifier writes no words"
    if classifier.neighbours and not (encoder.kind in RECURRENT and encoder.bidirectional):
        yield "classifier.neighbours: needs a recurrent encoder that reads from both ends"
    if classifier.sentences:
        yield from _sentence_misfits(model)
    if classifier.pooling != "attention":
        if classifier.form == "zhou":
            yield 'classifier.form = "zhou": needs classifier.pooling = "attention"'
        return
    if classifier.query == "final" and encoder.kind not in RECURRENT:
        yield (
            f'classifier.query = "final": a {encoder.kind} encoder has no final state; take query = "learned"'
        )
    yield from _look_misfits(model)
    if classifier.form == "zhou":
        both = encoder.kind in RECURRENT and encoder.bidirectional
        if not both or classifier.query != "learned" or model.attention.heads:
            yield (
                'classifier.form = "zhou": needs a recurrent encoder that reads from both ends, '
                'classifier.query = "learned" and attention.heads = 0'
            )


def _sentence_misfits(model: ModelConfig) -> Iterator[str]:
    classifier, encoder, attention = model.classifier, model.encoder, model.attention
    assert classifier is not None
    if not all(mark.strip() for mark in classifier.sentences):
        yield "classifier.sentences: a mark is empty"
    if encoder.kind not in RECURRENT:
        yield f'classifier.sentences: words and sentences are read by recurrence, not by "{encoder.kind}"'
    if classifier.pooling == "last" or (classifier.pooling == "attention" and classifier.query == "final"):
        yield 'classifier.sentences: take classifier.query = "learned", or the mean or the maximum'
    if classifier.form == "zhou" or classifier.neighbours:
        yield 'classifier.sentences: not with classifier.form = "zhou", nor with classifier.neighbours'
    if attention.heads or attention.score == "location" or not attention.read_end:
        yield (
            "classifier.sentences: not with attention.heads, a score by location or"
            " attention.read_end = false"
        )
    if classifier.pooling != "attention":  # else it is asked for all looks
        yield from _look_misfits(model)


def _look_misfits(model: ModelConfig) -> Iterator[str]:
    from heedful.config.model import encoder_width

    attention, width = model.attention, encoder_width(model)
    if attention.placement not in ("global", "uniform"):
        yield (
            f'attention.placement = "{attention.placement}": a classifier looks once, at all words;'
            ' take "global" or "uniform"'
        )
    if attention.coverage:
        yield "attention.coverage = true: a classifier looks once, so there is nothing to remember"
    if attention.heads and width % attention.heads:
        yield f"attention.heads = {attention.heads}: does not divide the encoder's width {width}"


def label_misfits(recipe: Recipe) -> Iterator[str]:
    """Settings of a whole recipe that only classifiers have, or that they cannot have."""
    return _of_classifiers(recipe) if recipe.task.kind == "classify" else _of_others(recipe)


def _moods(recipe: Recipe) -> bool:
    return recipe.data.world is not None and recipe.data.world.name == "moods"


def _of_others(recipe: Recipe) -> Iterator[str]:
    kind, data, training = recipe.task.kind, recipe.data, recipe.training
    if recipe.model.classifier is not None:
        yield f'task.kind = "{kind}": has no section [model.classifier]; that is for "classify"'
    if _moods(recipe):
        yield f'task.kind = "{kind}": the world "moods" has labels; it is for "classify"'
    own = {
        "data.vectors": data.vectors,
        "training.class_weights": training.class_weights,
        "training.hold_vectors": training.hold_vectors,
        "training.teachers": training.teachers,
    }
    for name in (name for name, value in own.items() if value):
        yield f'{name}: only task.kind = "classify" knows it, not "{kind}"'


def _of_classifiers(recipe: Recipe) -> Iterator[str]:
    data, training = recipe.data, recipe.training
    if recipe.model.classifier is None:
        yield (
            'task.kind = "classify": give a preset such as classify-learned, or a section [model.classifier]'
        )
    if data.world is not None and not _moods(recipe):
        yield f'task.kind = "classify": the world "{data.world.name}" has no labels; take "moods"'
    if recipe.tokenizer.shared or recipe.tokenizer.target_kind != "same":
        yield "tokenizer.shared, target_kind: labels are taken as they are, never cut"
    if data.split_by == "target":
        yield 'data.split_by = "target": that is the label, and each label would be in one split only'
    if training.metric == "exact":
        yield 'training.metric = "exact": of labels that is "accuracy"'
    if training.sampling or training.even:
        yield "training.sampling, training.even: a classifier writes no words"
    if training.teachers and training.agreement:
        yield "training.teachers, training.agreement: take one"
    if data.vectors and recipe.tokenizer.kind != "word":
        yield f'data.vectors: are of words, so tokenizer.kind = "word", not "{recipe.tokenizer.kind}"'
    if training.hold_vectors and not data.vectors:
        yield "training.hold_vectors = true: needs data.vectors, a file with word vectors"
