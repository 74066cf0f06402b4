"""The section [training.guided]: known alignments or rationales as targets of the attention weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from heedful.section import Section, Texts

if TYPE_CHECKING:
    from heedful.config.schema import Recipe

GOLD, ALIGN = "gold", "align"
TASKS = ("translate", "summarize", "reply", "transduce", "classify")
Heads = Annotated[tuple[Annotated[int, Field(ge=0, lt=1_000)], ...], Field(strict=False)]


class GuidedConfig(Section):
    """Guided attention: a loss between the attention weights and known links (Chen 2016; Liu 2016; Bao 2018)."""

    links: str = Field(
        "",
        description="links of the training pairs: gold (of a generated world), align (heedful aligns them), or a file"
        " with a line per row of data.train: 0-0 1-2 (Pharaoh); classify: numbers of the decisive words, from 0: 3 4",
    )
    column: str = Field("", description="column of the training table with the links, instead of a file")
    loss: Literal["cross-entropy", "squared"] = Field(
        "cross-entropy", description="loss between the weights and the links of a word, which share a weight of 1"
    )
    weight: float = Field(0.1, gt=0.0, le=1_000.0, description="weight of this loss; that of the outputs has 1")
    decay_steps: int = Field(
        0, ge=0, le=1_000_000_000, description="steps in which the weight falls linearly to 0; 0: it is constant"
    )
    sites: Texts = Field(
        (), description="guided sites, see `heedful trace`; empty: the site that alignments are read from"
    )
    heads: Heads = Field((), description="heads whose mean weights are guided, from 0; empty: all")
    full_context: bool = Field(
        False,
        description="Transformer: guide the weights of a second pass whose decoder sees the whole target (Garg 2019)",
    )


def guided_conflicts(recipe: Recipe) -> Iterator[str]:
    """Yield an error message for each conflict of [training.guided] with other settings."""
    guided = recipe.training.guided
    if guided is None:
        return
    if recipe.task.kind not in TASKS:
        yield f'training.guided: is not for task.kind = "{recipe.task.kind}"; it is for {", ".join(TASKS)}'
        return
    yield from _source_conflicts(recipe)
    attention = recipe.model.attention
    if not _attends(recipe):
        yield "training.guided: this model has no attention that could be guided"
    elif attention.placement == "uniform":
        yield 'training.guided: attention.placement = "uniform" has the same weights whatever is learned'
    if any(head >= max(1, attention.heads) for head in guided.heads):
        yield f"training.guided: heads = {list(guided.heads)}: the attention has {max(1, attention.heads)}, from 0"
    if recipe.model.classifier is not None and recipe.model.classifier.sentences:
        yield "training.guided: cannot be combined with classifier.sentences, which attends to words by sentence"
    if guided.full_context and (recipe.model.classifier is not None or recipe.model.decoder.kind != "transformer"):
        yield 'training.guided: full_context = true needs model.decoder.kind = "transformer", which can see all words'


def _attends(recipe: Recipe) -> bool:
    classifier = recipe.model.classifier
    return recipe.model.decoder.source == "attention" if classifier is None else classifier.pooling == "attention"


def _source_conflicts(recipe: Recipe) -> Iterator[str]:
    guided, data = recipe.training.guided, recipe.data
    assert guided is not None
    if bool(guided.links) == bool(guided.column):
        yield 'training.guided: set either links ("gold", "align" or a file) or column'
    if guided.links == GOLD and data.world is None:
        yield 'training.guided: links = "gold" needs a generated world (data.world), whose links are known'
    elif guided.links == ALIGN and recipe.task.kind == "classify":
        yield 'training.guided: links = "align" needs pairs of sentences; rationales of a classifier come from a file'
    elif guided.links not in ("", GOLD, ALIGN) and data.world is not None:
        yield 'training.guided: links: a generated world has no lines; use "gold" or "align"'
    if guided.column and len(data.train) != 1:
        yield "training.guided: column needs data.train to be one table"
