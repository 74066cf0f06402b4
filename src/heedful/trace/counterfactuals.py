"""Counterfactual outputs: for each step and source position, what if it had all of the weight, or none?

The edits of one step are computed as batches: the query axis repeats one state, and each row has its own weights.
Between two batches a time limit is checked.
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
from heedful.decoding import NEVER, StopCondition
from heedful.models import AutoregressiveModel, Classifier, LanguageModel, Recommender
from heedful.models.autoregressive import next_token_logits
from heedful.trace.edits import remove_weights
from heedful.trace.schema import Candidate, Counterfactual
from heedful.trace.steps import TokenText, check_log_probabilities, top_candidates

N_CANDIDATES = 5  # per counterfactual
N_REGION_CANDIDATES = 3  # the same for images, which have many regions
MAX_CELLS = 65_536  # attention weights per batch of edits: their scores can take some kilobytes each


class PositionEdit(NamedTuple):
    """One edit: a source position gets all of the weight, or none."""

    op: Literal["onehot", "zero"]
    position: int


@torch.inference_mode()
def seq2seq_counterfactuals(
    model: AutoregressiveModel,
    source: Padded | Regions,
    tokens: Sequence[int],
    token_text: TokenText,
    stop: StopCondition = NEVER,
) -> list[Counterfactual]:
    """Return the counterfactuals of every step of an output; none for a model without attention."""
    site = model.alignment_site
    if site is None:
        return []
    state, _ = model.initial_state(TextBatch(source))
    edits = _all_edits(state.memory[site])
    last = torch.tensor([model.start_token])
    n_candidates = N_REGION_CANDIDATES if isinstance(source, Regions) else N_CANDIDATES
    records: list[Counterfactual] = []
    for step, token in enumerate(tokens):
        original = model.step(state, last)
        probabilities = next_token_logits(original).softmax(dim=-1)
        for part in _batches(edits, state.memory[site].keep.shape[1]):
            stop.check(step, len(tokens))
            hooks = Hooks(Detail.NONE, edit=_edit_rows(site, part))
            output = model.step(state.expand_to_beam(len(part)), last.repeat(len(part)), hooks)
            edited = next_token_logits(output).softmax(dim=-1)
            records += counterfactual_records(part, step, edited, probabilities, token_text, n_candidates)
        state, last = original.state, torch.tensor([token])
    return records


@torch.inference_mode()
def classifier_counterfactuals(
    model: Classifier, source: Padded, labels: Sequence[str], stop: StopCondition = NEVER
) -> list[Counterfactual]:
    """Return the counterfactuals of a classification; none for a model that does not pool by attention."""
    output = model(LabelBatch(source), Hooks(Detail.WEIGHTS))
    if output.pooling_query is None or model.alignment_site is None:
        return []
    memory, original = output.pooling_query.memory, output.logits.softmax(dim=-1)
    records: list[Counterfactual] = []
    for part in _batches(_all_edits(memory), memory.keep.shape[1]):
        stop.check(0, 1)
        hooks = Hooks(Detail.NONE, edit=_edit_rows(model.alignment_site, part))
        edited = model.reattend(output.pooling_query.repeat(len(part)), hooks)[0].softmax(dim=-1)
        records += counterfactual_records(part, 0, edited, original, labels.__getitem__)
    return records


@torch.inference_mode()
def language_model_counterfactuals(
    model: LanguageModel, inputs: Int[Tensor, "1 step"], token_text: TokenText, stop: StopCondition = NEVER
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
        n_positions = step if is_tape else step + 1  # a tape holds the steps before this one
        edits = position_edits(range(n_positions))
        original = _next_word_probabilities(model, prefix, Hooks(Detail.NONE))
        for part in _batches(edits, (step + 1) ** 2):
            stop.check(step, inputs.shape[1])
            hooks = Hooks(Detail.NONE, edit=_edit_rows_at(site, part, step, n_positions))
            edited = _next_word_probabilities(model, prefix.expand(len(part), -1), hooks)
            records += counterfactual_records(part, step, edited, original, token_text)
    return records


def _next_word_probabilities(model: LanguageModel, ids: Tensor, hooks: Hooks) -> Float[Tensor, "row vocab"]:
    features = model(ids, torch.ones_like(ids, dtype=torch.bool), hooks=hooks).features[:, -1]
    probabilities: Tensor = model.output(features).softmax(dim=-1)
    return probabilities


def _edit_rows_at(site: str, edits: Sequence[PositionEdit], step: int, n_positions: int) -> EditHook:
    """Return a hook that gives row r the weights of edit r, at one step."""
    positions = torch.tensor([edit.position for edit in edits])
    is_onehot = torch.tensor([edit.op == "onehot" for edit in edits])[:, None, None, None]

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
    for edit in position_edits(range(len(history))):
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


def _edit_other_rows(site: str, edit: PositionEdit, is_own: Bool[Tensor, " target"]) -> EditHook:
    """Return a hook that gives the weights of one edit to all targets but those that `is_own` marks."""

    def hook(hook_site: str, output: AttentionOutput, _: Tensor) -> Override | None:
        if hook_site != site:
            return None
        assert output.weights is not None
        chosen = F.one_hot(torch.tensor(edit.position), output.weights.shape[-1]).bool()
        edited = chosen.to(output.weights) if edit.op == "onehot" else remove_weights(output.weights, chosen)
        return Override(torch.where(is_own[None, :, None, None], output.weights, edited))

    return hook


def _batches(edits: Sequence[PositionEdit], n_cells: int) -> Iterator[Sequence[PositionEdit]]:
    """Yield the edits in batches of at most `MAX_CELLS` weights, of which each edit has `n_cells`."""
    size = max(1, MAX_CELLS // n_cells)
    return (edits[first : first + size] for first in range(0, len(edits), size))


def _all_edits(memory: Memory) -> list[PositionEdit]:
    return position_edits(memory.keep[0].nonzero().squeeze(1).tolist())


def position_edits(positions: Sequence[int]) -> list[PositionEdit]:
    """Return both edits of every position."""
    ops: tuple[Literal["onehot", "zero"], ...] = ("onehot", "zero")
    return [PositionEdit(op, position) for op in ops for position in positions]


def counterfactual_records(
    edits: Sequence[PositionEdit],
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


def _edit_rows(site: str, edits: Sequence[PositionEdit]) -> EditHook:
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
