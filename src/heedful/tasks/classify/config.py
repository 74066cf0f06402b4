"""The section [model.classifier], and its conflicts with other settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from heedful.section import Fraction, Section

if TYPE_CHECKING:
    from heedful.config.model import ModelConfig
    from heedful.config.schema import Recipe

BALANCED = "balanced"


class ClassifierConfig(Section):
    """Pooling of the encoder states to one vector, and the output layer over it."""

    pooling: Literal["attention", "mean", "max", "last"] = Field(
        "attention", description="how the word states become one vector; attention: see [model.attention]"
    )
    query: Literal["final", "learned"] = Field(
        "learned", description="attention: the query, the encoder's final state or a learned vector"
    )
    form: Literal["plain", "zhou"] = Field(
        "plain", description="zhou: directions are added; keys and the pooled vector pass a tanh (Zhou 2016)"
    )
    sentences: list[str] = Field(
        [],
        description="tokens that end a sentence: attention over words, then over sentences (Yang 2016)",
    )
    dropout: Fraction = Field(0.3, description="dropout on the pooled vector")
    word_dropout: Fraction = Field(0.0, description="fraction of training words replaced by <unk>")
    lm_auxiliary: float = Field(
        0.0,
        ge=0.0,
        description="weight of the auxiliary language-model loss (Rei 2017); 0 disables it",
    )


def parse_class_weight(text: str) -> tuple[str, float] | None:
    """Return the label and the weight in "label=weight", or None if the text has another form.

    >>> parse_class_weight("a=b=2.5"), parse_class_weight("neutral"), parse_class_weight("neutral=-1")
    (('a=b', 2.5), None, None)
    """
    label, _, number = text.rpartition("=")
    try:
        weight = float(number)
    except ValueError:
        return None
    return (" ".join(label.split()), weight) if label.strip() and 0 < weight < float("inf") else None


def model_conflicts(model: ModelConfig) -> Iterator[str]:
    """Yield an error message for each conflict between the settings of a classifier."""
    classifier, encoder = model.classifier, model.encoder
    assert classifier is not None
    if model.decoder != type(model.decoder)():
        yield "decoder: a classifier has no decoder; remove this section"
    if model.tie_embeddings != "none" or model.copying:
        yield "tie_embeddings, copying: a classifier generates no words"
    if classifier.lm_auxiliary and not (encoder.recurrent and encoder.bidirectional):
        yield "classifier.lm_auxiliary: needs a bidirectional recurrent encoder"
    if classifier.sentences:
        yield from _sentence_conflicts(model)
    if classifier.pooling != "attention":
        if classifier.form == "zhou":
            yield 'classifier.form = "zhou": needs classifier.pooling = "attention"'
        return
    if classifier.query == "final" and not encoder.recurrent:
        yield f'classifier.query = "final": a {encoder.kind} encoder has no final state; use query = "learned"'
    yield from _attention_conflicts(model)
    if classifier.form == "zhou":
        bidirectional = encoder.recurrent and encoder.bidirectional
        if not bidirectional or classifier.query != "learned" or model.attention.heads:
            yield (
                'classifier.form = "zhou": needs a bidirectional recurrent encoder,'
                ' classifier.query = "learned" and attention.heads = 0'
            )


def _sentence_conflicts(model: ModelConfig) -> Iterator[str]:
    classifier, encoder, attention = model.classifier, model.encoder, model.attention
    assert classifier is not None
    if not all(token.strip() for token in classifier.sentences):
        yield "classifier.sentences: contains an empty token"
    if not encoder.recurrent:
        yield f'classifier.sentences: needs a recurrent encoder, not "{encoder.kind}"'
    if classifier.pooling == "last" or (classifier.pooling == "attention" and classifier.query == "final"):
        yield 'classifier.sentences: needs classifier.query = "learned", or pooling = "mean" or "max"'
    if classifier.form == "zhou" or classifier.lm_auxiliary:
        yield 'classifier.sentences: cannot be combined with classifier.form = "zhou" or classifier.lm_auxiliary'
    if attention.heads or attention.score == "location" or not attention.read_end:
        yield (
            "classifier.sentences: cannot be combined with attention.heads,"
            ' attention.score = "location" or attention.read_end = false'
        )
    if classifier.pooling != "attention":  # with attention pooling they are reported anyway
        yield from _attention_conflicts(model)


def _attention_conflicts(model: ModelConfig) -> Iterator[str]:
    attention, width = model.attention, model.encoder_width
    if attention.placement not in ("global", "uniform"):
        yield (
            f'attention.placement = "{attention.placement}": a classifier attends once, to all words;'
            ' use "global" or "uniform"'
        )
    if attention.coverage:
        yield "attention.coverage = true: a classifier attends only once, so there is nothing to cover"
    if attention.heads and width % attention.heads:
        yield f"attention.heads = {attention.heads}: does not divide the encoder's width {width}"


def recipe_conflicts(recipe: Recipe) -> Iterator[str]:
    """Yield an error message for each setting that only classifiers have, or that they do not have."""
    return _if_classifier(recipe) if recipe.task.kind == "classify" else _if_other_task(recipe)


def _has_labeled_world(recipe: Recipe) -> bool:
    return recipe.data.world is not None and recipe.data.world.name == "moods"


def _if_other_task(recipe: Recipe) -> Iterator[str]:
    kind, data, training = recipe.task.kind, recipe.data, recipe.training
    if recipe.model.classifier is not None:
        yield f'task.kind = "{kind}": the section [model.classifier] is for task.kind = "classify"'
    if _has_labeled_world(recipe):
        yield f'task.kind = "{kind}": the world "moods" has labels; it is for task.kind = "classify"'
    classifier_only = {
        "data.vectors": data.vectors,
        "training.class_weights": training.class_weights,
        "training.freeze_embeddings": training.freeze_embeddings,
        "training.teachers": training.teachers,
    }
    for name in (name for name, value in classifier_only.items() if value):
        yield f'{name}: is for task.kind = "classify", not "{kind}"'


def _if_classifier(recipe: Recipe) -> Iterator[str]:
    data, training = recipe.data, recipe.training
    if recipe.model.classifier is None:
        yield 'task.kind = "classify": choose a preset such as classify-learned, or add a section [model.classifier]'
    if data.world is not None and not _has_labeled_world(recipe):
        yield f'task.kind = "classify": the world "{data.world.name}" has no labels; use "moods"'
    if recipe.tokenizer.shared or recipe.tokenizer.target_kind != "same":
        yield "tokenizer.shared, tokenizer.target_kind: labels are not tokenized"
    if data.split_by == "target":
        yield 'data.split_by = "target": would put every label into a single split; use "source"'
    if training.metric == "exact":
        yield 'training.metric = "exact": use "accuracy" for labels'
    if training.scheduled_sampling or training.doubly_stochastic:
        yield "training.scheduled_sampling, training.doubly_stochastic: a classifier generates no words"
    if training.teachers and training.rdrop:
        yield "training.teachers, training.rdrop: cannot be combined"
    if data.vectors and recipe.tokenizer.kind != "word":
        yield f'data.vectors: word vectors need tokenizer.kind = "word", not "{recipe.tokenizer.kind}"'
    if training.freeze_embeddings and not data.vectors:
        yield "training.freeze_embeddings = true: needs data.vectors, a file of word vectors"
