"""Counterfactual outputs: for each step and source position, what if it had all of the weight, or none?

All edits of one step are computed as a batch: the query axis repeats one state, and each row has its own weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.attention import AttentionOutput, Detail, Hooks, Memory, Override
from heedful.attention import Edit as EditHook
from heedful.data.batch import Padded, Regions, TextBatch
from heedful.data.labels import LabelBatch
from heedful.models import Classifier, LanguageModel, Recommender, Seq2Seq
from heedful.models.autoregressive import next_token_logits
from heedful.trace.edits import remove_weights
from heedful.trace.schema import Candidate, Counterfactual
from heedful.trace.steps import TokenText, check_log_probabilities, top_candidates

N_CANDIDATES = 5  # per counterfactual
N_REGION_CANDIDATES = 3  # the same for images, which have many regions


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
    n_candidates = N_REGION_CANDIDATES if isinstance(source, Regions) else N_CANDIDATES
    hooks = Hooks(Detail.NONE, edit=_edit_rows(site, edits))
    records: list[Counterfactual] = []
    for step, token in enumerate(tokens):
        original = next_token_logits(model.step(state, last)).softmax(dim=-1)
        edited = next_token_logits(
            model.step(state.expand_to_beam(len(edits)), last.repeat(len(edits)), hooks)
        ).softmax(dim=-1)
        records += _records(edits, step, edited, original, token_text, n_candidates)
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


@torch.inference_mode()
def language_model_counterfactuals(
    model: LanguageModel, inputs: Int[Tensor, "1 step"], token_text: TokenText
) -> list[Counterfactual]:
    """Return the counterfactuals of every next word of a text; none for a model without attention.

    An edit changes the weights of one step; the steps before it stay as they are.
    """
    site = model.alignment_site
    if site is None:
        return []
    is_tape = next(record.kind for record in model.sites if record.id == site) == "tape"
    records: list[Counterfactual] = []
    for step in range(inputs.shape[1]):
        prefix = inputs[:, : step + 1]
        edits = _position_edits(range(step if is_tape else step + 1))  # a tape holds the steps before this one
        original = _next_word_probabilities(model, prefix, Hooks(Detail.NONE))
        if edits:
            hooks = Hooks(Detail.NONE, edit=_edit_rows_at(site, edits, step))
            edited = _next_word_probabilities(model, prefix.expand(len(edits), -1), hooks)
            records += _records(edits, step, edited, original, token_text)
    return records


def _next_word_probabilities(model: LanguageModel, ids: Tensor, hooks: Hooks) -> Float[Tensor, "row vocab"]:
    features = model(ids, torch.ones_like(ids, dtype=torch.bool), hooks=hooks).features[:, -1]
    probabilities: Tensor = model.output(features).softmax(dim=-1)
    return probabilities


def _edit_rows_at(site: str, edits: Sequence[_PositionEdit], step: int) -> EditHook:
    """Return a hook that gives row r the weights of edit r, at one step."""
    positions = torch.tensor([edit.position for edit in edits])
    is_onehot = torch.tensor([edit.op == "onehot" for edit in edits])[:, None, None, None]
    n_positions = int(positions.max()) + 1

    def hook(hook_site: str, output: AttentionOutput, steps: Tensor) -> Override | None:
        is_step = steps == step
        if hook_site != site or not bool(is_step.any()):
            return None
        assert output.weights is not None
        n_slots = output.weights.shape[-1] - n_positions  # the empty slot of a tape comes first
        chosen = F.one_hot(positions + n_slots, output.weights.shape[-1]).bool()[:, None, None]  # (edit, 1, 1, key)
        edited = torch.where(is_onehot, chosen.to(output.weights), remove_weights(output.weights, chosen))
        return Override(torch.where(is_step[..., None, None], edited, output.weights))

    return hook


@torch.inference_mode()
def recommender_counterfactuals(
    model: Recommender, history: Int[Tensor, " key"], targets: Int[Tensor, " target"], item_name: TokenText
) -> list[Counterfactual]:
    """Return the counterfactual probabilities of each target; none for a model without attention.

    The outputs are independent, so the distance is that of the target's own probability.
    """
    if model.attention is None:
        return []
    original = model.score_items(history, targets).scores.sigmoid()
    records: list[Counterfactual] = []
    for edit in _position_edits(range(len(history))):
        is_own = targets == history[edit.position]  # an item does not attend to itself
        hooks = Hooks(Detail.NONE, edit=_edit_other_rows(model.alignment_site, edit, is_own))
        scores = model.score_items(history, targets, hooks).scores
        check_log_probabilities(scores, scores)
        distances, logp = (scores.sigmoid() - original).abs(), F.logsigmoid(scores)
        for step, item in enumerate(targets.tolist()):
            if bool(is_own[step]):
                continue
            top = [Candidate(id=item, text=item_name(item), logp=round(float(logp[step]), 5))]
            tvd = round(float(distances[step]), 6)
            records.append(Counterfactual(op=edit.op, step=step, position=edit.position, tvd=tvd, top=top))
    return records


def _edit_other_rows(site: str, edit: _PositionEdit, is_own: Bool[Tensor, " target"]) -> EditHook:
    """Return a hook that gives the weights of one edit to all targets but those that `is_own` marks."""

    def hook(hook_site: str, output: AttentionOutput, _: Tensor) -> Override | None:
        if hook_site != site:
            return None
        assert output.weights is not None
        chosen = F.one_hot(torch.tensor(edit.position), output.weights.shape[-1]).bool()
        edited = chosen.to(output.weights) if edit.op == "onehot" else remove_weights(output.weights, chosen)
        return Override(torch.where(is_own[None, :, None, None], output.weights, edited))

    return hook


def _all_edits(memory: Memory) -> list[_PositionEdit]:
    return _position_edits(memory.keep[0].nonzero().squeeze(1).tolist())


def _position_edits(positions: Sequence[int]) -> list[_PositionEdit]:
    ops: tuple[Literal["onehot", "zero"], ...] = ("onehot", "zero")
    return [_PositionEdit(op, position) for op in ops for position in positions]


def _records(
    edits: Sequence[_PositionEdit],
    step: int,
    edited: Float[Tensor, "edit vocab"],
    original: Float[Tensor, "1 vocab"],
    token_text: TokenText,
    n_candidates: int = N_CANDIDATES,
) -> Iterator[Counterfactual]:
    """Yield a record per edit, given the output distributions with and without it."""
    check_log_probabilities(edited, original)
    tvd = (edited - original).abs().sum(dim=-1) / 2
    for row, (op, position) in enumerate(edits):
        candidates = top_candidates(edited[row].log(), n_candidates, token_text)
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
