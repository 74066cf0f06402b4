"""Counterfactual outputs of transformers models: each position with all of the weight, or none, at each step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.attention import AttentionOutput, Detail, Hooks, Override
from heedful.attention import Edit as EditHook
from heedful.attention.hooks import ALLOWED
from heedful.data.batch import TextBatch
from heedful.decoding import StopCondition
from heedful.integrations.transformers.decoder import DecoderAdapter
from heedful.integrations.transformers.encoder import POOL, EncoderAdapter
from heedful.integrations.transformers.inputs import Source
from heedful.integrations.transformers.loaded import LoadedTransformers
from heedful.integrations.transformers.seq2seq import Seq2SeqAdapter
from heedful.trace.counterfactuals import (
    N_CANDIDATES,
    PositionEdit,
    counterfactual_records,
    position_edits,
    seq2seq_counterfactuals,
)
from heedful.trace.edits import remove_weights
from heedful.trace.schema import Counterfactual

MAX_ROWS = 64  # edits per forward pass


def seq2seq_what_if(
    loaded: LoadedTransformers,
    model: Seq2SeqAdapter,
    source: Source,
    batch: TextBatch,
    tokens: Sequence[int],
    stop: StopCondition,
) -> list[Counterfactual]:
    """Return the counterfactuals of every step of an output, at the alignment site."""
    if model.alignment_site not in model.cross_sites or model.without_cache:
        return []
    table = model.ids.table.tolist()
    text = loaded.text

    def token_text(i: int) -> str:
        return text.piece(table[i])

    ours = model.ids.to_ours(tokens)
    found = seq2seq_counterfactuals(model, batch.source, ours, token_text, stop)
    first = 0 if source.shown is None else source.shown.start
    shown = range(first, first + len(source.side.tokens))
    return [
        record.model_copy(
            update={
                "position": record.position - first,
                "top": [c.model_copy(update={"id": None if c.id is None else table[c.id]}) for c in record.top],
            }
        )
        for record in found
        if record.position in shown
    ]


def classifier_what_if(
    loaded: LoadedTransformers, model: EncoderAdapter, source: Source, stop: StopCondition
) -> list[Counterfactual]:
    """Return the counterfactuals of a label: what the head reads attends to one position only, or not to it."""
    first = 0 if source.shown is None else source.shown.start
    edits = position_edits(range(len(source.side.tokens)))

    def run(rows: int, hooks: Hooks) -> Tensor:
        stop.check(0, 1)
        tensors = {name: x.expand(rows, *x.shape[1:]) for name, x in source.tensors.items()}
        logits = model.run(tensors, hooks).logits
        assert logits is not None
        return logits[:, 0].float()

    original = run(1, Hooks()).softmax(dim=-1)
    names = loaded.labels
    return [
        record
        for part in _parts(edits)
        for record in counterfactual_records(
            part,
            0,
            run(len(part), Hooks(edit=_edit_rows(POOL, part, None, first))).softmax(dim=-1),
            original,
            names.__getitem__,
            N_CANDIDATES,
        )
    ]


def decoder_what_if(
    loaded: LoadedTransformers, model: DecoderAdapter, ids: Sequence[int], stop: StopCondition
) -> list[Counterfactual]:
    """Return the counterfactuals of every next token, at the alignment site."""
    site = model.alignment_site
    assert site is not None
    result = model.run(torch.tensor([ids[:-1]]), Hooks(Detail.FULL, frozenset({site})))
    logits = result.logits[0].float()
    allowed = result.attentions[site].extras.get(ALLOWED)  # with a sliding window, not every earlier position
    records: list[Counterfactual] = []
    for step in range(len(ids) - 1):
        prefix = torch.tensor([ids[: step + 1]])
        original = logits[step : step + 1].softmax(dim=-1)
        positions = [i for i in range(step + 1) if allowed is None or bool(allowed[0, step, 0, i])]
        for part in _parts(position_edits(positions)):
            stop.check(step, len(ids) - 1)
            hooks = Hooks(edit=_edit_rows(site, part, step, 0))
            edited = model.run(prefix.expand(len(part), -1), hooks).logits[:, -1].float().softmax(dim=-1)
            records += counterfactual_records(part, step, edited, original, loaded.text.piece, N_CANDIDATES)
    return records


def _parts(edits: Sequence[PositionEdit]) -> Iterator[Sequence[PositionEdit]]:
    for start in range(0, len(edits), MAX_ROWS):
        yield edits[start : start + MAX_ROWS]


def _edit_rows(site: str, edits: Sequence[PositionEdit], step: int | None, first: int) -> EditHook:
    """Return a hook that gives row r the weights of edit r, at one step (None: at every step)."""
    positions = torch.tensor([edit.position + first for edit in edits])
    is_onehot = torch.tensor([edit.op == "onehot" for edit in edits])[:, None, None, None]

    def hook(hook_site: str, output: AttentionOutput, steps: Tensor) -> Override | None:
        if hook_site != site:
            return None
        assert output.weights is not None
        chosen = F.one_hot(positions, output.weights.shape[-1]).bool()[:, None, None]
        edited = torch.where(is_onehot, chosen.to(output.weights), remove_weights(output.weights, chosen))
        if step is None:
            return Override(edited)
        return Override(torch.where((steps == step)[..., None, None], edited, output.weights))

    return hook
