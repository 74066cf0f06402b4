"""Word links from the attention of a model while the references are forced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from heedful.attention import Detail, Hooks
from heedful.data.batch import EncodedPair, collate
from heedful.data.pairs import TextPair
from heedful.errors import DataError, ModelError
from heedful.optional import not_none
from heedful.tasks.base import LoadedModel
from heedful.tasks.seq2seq.assets import SIDES, LoadedSeq2Seq, Seq2SeqAssets
from heedful.trace.schema import LinkMethod, word_links
from heedful.trace.schema.links import Link

ROWS = 50  # pairs per batch


def attention_links(
    loaded: LoadedModel[Any, Any], pairs: Sequence[TextPair], method: LinkMethod = "naive"
) -> list[set[Link]]:
    """Link each target word of each pair to the source word with the largest weight.

    The weights are those of the guided site and heads if training was guided, else of the alignment site, mean over
    heads. A model trained with `full_context` sees the whole target (Garg 2019, §4.3).
    """
    if not isinstance(loaded.assets, Seq2SeqAssets):
        raise ModelError(f"{loaded.path}: aligns no words: it is no model of sentence pairs")
    model: LoadedSeq2Seq = loaded
    guided = model.recipe.training.guided
    site = guided.sites[0] if guided is not None and guided.sites else model.model.alignment_site
    if site is None:
        raise ModelError(f"{loaded.path}: has no attention, and so no links")
    heads = list(guided.heads) if guided is not None else []
    full_context = guided is not None and guided.full_context
    source, target = model.assets.source, model.assets.target
    ids = [EncodedPair(source.encode(pair.source), target.encode(pair.target)) for pair in pairs]
    for number, example in enumerate(ids, 1):
        _check_length(number, example, model)
    order = sorted(range(len(ids)), key=lambda row: len(ids[row].source) + len(ids[row].target))
    links: dict[int, set[Link]] = {}
    hooks = Hooks(Detail.WEIGHTS, frozenset({site}))
    with torch.inference_mode():
        for first in range(0, len(order), ROWS):
            rows = order[first : first + ROWS]
            batch = collate([ids[row] for row in rows])
            if full_context:
                output = model.model.full_context_attentions(batch, hooks)[site]
            else:
                output = model.model(batch, hooks).attentions[site]
            weights = not_none(output.weights)
            weights = (weights[:, :, heads] if heads else weights).mean(dim=2)
            for row, matrix in zip(rows, weights.double().numpy(), strict=True):
                words = source.word_ids(ids[row].source), target.word_ids(ids[row].target)
                inside = matrix[: len(words[1]), : len(words[0])]
                links[row] = word_links(inside, *words, method, model.model.alignment_shift)
    return [links[row] for row in range(len(pairs))]


def _check_length(number: int, example: EncodedPair, loaded: LoadedSeq2Seq) -> None:
    data = loaded.recipe.data
    for side, ids, limit in zip(SIDES, example, (data.max_source, data.max_target), strict=True):
        if len(ids) - 1 > limit:
            raise DataError(
                f"pair {number:,}: the {side} has {len(ids) - 1:,} tokens, more than data.max_{side} = {limit:,}"
                f" of {loaded.path}"
            )
