"""Counterfactual outputs: for each step and source position, what if it had all of the weight, or none?

All edits of one step are computed as a batch: the query axis repeats one state, and each row has its own weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from heedful.attention import AttentionOutput, Detail, Hooks, Memory, Override
from heedful.attention import Edit as EditHook
from heedful.data.batch import Padded, Regions, TextBatch
from heedful.data.labels import LabelBatch
from heedful.models import Classifier, Seq2Seq
from heedful.models.autoregressive import next_token_logits
from heedful.trace.edits import remove_weights
from heedful.trace.schema import Candidate, Counterfactual
from heedful.trace.steps import TokenText, check_log_probabilities, top_candidates

N_CANDIDATES = 5  # per counterfactual


class _PositionEdit(NamedTuple):
    """One edit: a source position gets all of the weight, or none."""

    op: Literal["onehot", "zero"]
    position: int


@torch.inference_mode()
def seq2seq_counterfactuals(
    model: Seq2Seq, source: Padded | Regions, tokens: Sequence[int], token_text: TokenText
) -> list[Counterfactual]:
    """Return the counterfactuals of every step of an output; none for a model without attention."""
    site = model.alignment_site
    if site is None:
        return []
    state, _ = model.initial_state(TextBatch(source))
    edits = _all_edits(state.memory[site])
    last = torch.tensor([model.start_token])
    hooks = Hooks(Detail.NONE, edit=_edit_rows(site, edits))
    records: list[Counterfactual] = []
    for step, token in enumerate(tokens):
        original = next_token_logits(model.step(state, last)).softmax(dim=-1)
        edited = next_token_logits(
            model.step(state.expand_to_beam(len(edits)), last.repeat(len(edits)), hooks)
        ).softmax(dim=-1)
        records += _records(edits, step, edited, original, token_text)
        state, last = model.step(state, last).state, torch.tensor([token])
    return records


@torch.inference_mode()
def classifier_counterfactuals(model: Classifier, source: Padded, labels: Sequence[str]) -> list[Counterfactual]:
    """Return the counterfactuals of a classification; none for a model that does not pool by attention."""
    output = model(LabelBatch(source), Hooks(Detail.WEIGHTS))
    if output.pooling_query is None or model.alignment_site is None:
        return []
    edits = _all_edits(output.pooling_query.memory)
    hooks = Hooks(Detail.NONE, edit=_edit_rows(model.alignment_site, edits))
    edited = model.reattend(output.pooling_query.repeat(len(edits)), hooks)[0].softmax(dim=-1)
    return list(_records(edits, 0, edited, output.logits.softmax(dim=-1), labels.__getitem__))


def _all_edits(memory: Memory) -> list[_PositionEdit]:
    positions = memory.keep[0].nonzero().squeeze(1).tolist()
    return [_PositionEdit(op, position) for op in ("onehot", "zero") for position in positions]


def _records(
    edits: Sequence[_PositionEdit],
    step: int,
    edited: Float[Tensor, "edit vocab"],
    original: Float[Tensor, "1 vocab"],
    token_text: TokenText,
) -> Iterator[Counterfactual]:
    """Yield a record per edit, given the output distributions with and without it."""
    check_log_probabilities(edited, original)
    tvd = (edited - original).abs().sum(dim=-1) / 2
    for row, (op, position) in enumerate(edits):
        candidates = top_candidates(edited[row].log(), N_CANDIDATES, token_text)
        top = [Candidate(id=c.id, text=c.text, logp=round(c.logp, 5)) for c in candidates]
        yield Counterfactual(op=op, step=step, position=position, tvd=round(float(tvd[row]), 6), top=top)


def _edit_rows(site: str, edits: Sequence[_PositionEdit]) -> EditHook:
    """Return a hook that gives row r of the one sentence the weights of edit r."""
    positions = torch.tensor([edit.position for edit in edits])
    is_onehot = torch.tensor([edit.op == "onehot" for edit in edits])[None, :, None, None]

    def hook(hook_site: str, output: AttentionOutput, _: Tensor) -> Override | None:
        if hook_site != site:
            return None
        assert output.weights is not None
        chosen = F.one_hot(positions, output.weights.shape[-1]).bool()[None, :, None]  # (1, edit, 1, key)
        removed = remove_weights(output.weights, chosen)
        return Override(torch.where(is_onehot, chosen.to(output.weights), removed))

    return hook
