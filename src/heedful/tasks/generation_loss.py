"""The training loss of models that generate text: cross-entropy and its regularizers."""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.attention import NO_HOOKS, AttentionOutput, Detail, Hooks
from heedful.config import Recipe
from heedful.data.batch import TextBatch
from heedful.data.tokenizer import PAD, UNK
from heedful.layers.copying import pointer_cross_entropy
from heedful.layers.readout import Output
from heedful.models import DecoderOutput, Seq2Seq
from heedful.optional import not_none
from heedful.tasks.guided import guided_loss, guided_sites
from heedful.tasks.reinforce import reinforce_loss, samples_positions, soft_attention_hooks
from heedful.training import Loss


def generation_loss(model: Seq2Seq, batch: TextBatch, recipe: Recipe) -> Loss:
    """Return the summed cross-entropy of the target tokens.

    In training, label smoothing, R-Drop, coverage, the doubly stochastic penalty, guided attention and REINFORCE add
    their terms.
    """
    assert batch.target is not None
    training = recipe.training
    gold = batch.target.ids[:, 1:]
    real = gold != PAD
    counted = real if training.train_unk else real & (gold != UNK)
    sampled = model.training and samples_positions(recipe)
    soft = torch.rand(len(gold), device=gold.device) < training.soft_fraction if sampled else None
    hooks = NO_HOOKS if soft is None else soft_attention_hooks(soft)
    penalty = training.doubly_stochastic if model.training and model.alignment_site is not None else 0.0
    guide, guided = batch.guide if model.training else None, training.guided
    sites = frozenset[str]() if guide is None else guided_sites(model, not_none(guided), "cross")
    recorded = frozenset[str]() if guided is not None and guided.full_context else sites
    if penalty:
        recorded |= {str(model.alignment_site)}
    if recorded:
        hooks = Hooks(Detail.WEIGHTS, recorded, hooks.edit)
    output = model(batch, hooks, scheduled_sampling=training.scheduled_sampling if model.training else 0.0)
    outputs: tuple[DecoderOutput, ...] = (output,)
    if model.training and training.rdrop:
        second = model(batch, hooks, scheduled_sampling=training.scheduled_sampling)
        total, surprisal = _rdrop(output, second, gold, counted, recipe)
        outputs = (output, second)
    else:
        smoothing = training.label_smoothing if model.training else 0.0
        total, surprisal = _cross_entropy(output, gold, counted, smoothing)
    if model.training:
        total = total + _coverage_loss(output, real)
    if guide is not None and guided is not None:
        if guided.full_context:
            passes = [model.full_context_attentions(batch, Hooks(Detail.WEIGHTS, sites, hooks.edit))]
        else:
            passes = [each.attentions for each in outputs]
        total = total + torch.stack([guided_loss(each, sites, guide, guided) for each in passes]).mean()
    if penalty:
        total = total + penalty * doubly_stochastic_penalty(output.attentions[str(model.alignment_site)], real)
    if soft is not None:
        logp = torch.zeros(gold.shape, device=gold.device).masked_scatter(counted, -surprisal.float())
        total = total + reinforce_loss(output.attentions, logp, counted, soft, model.baseline, training)
    return Loss(total, int(counted.sum()))


def split_text_batch(batch: TextBatch, n_parts: int, recipe: Recipe) -> list[TextBatch]:
    """Split a batch by rows, unless it is small or draws more random numbers than dropout masks."""
    if batch.size < 2 * n_parts or samples_positions(recipe) or recipe.training.scheduled_sampling > 0:
        return [batch]
    return [batch.rows(start, n_parts) for start in range(n_parts)]


def _cross_entropy(output: DecoderOutput, gold: Tensor, counted: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Return the summed cross-entropy at the counted positions, and -log p of each of their tokens."""
    features, pointer = output.features[counted], output.pointer
    assert isinstance(output.output, Output)
    if pointer is None:
        return output.output.cross_entropy(features, gold[counted], smoothing)
    ids = pointer.ids[:, None].expand_as(pointer.weights)[counted]
    weights, gate = pointer.weights[counted], pointer.gate[counted]
    return pointer_cross_entropy(output.output(features), weights, gate, ids, gold[counted], smoothing)


def _rdrop(
    first: DecoderOutput, second: DecoderOutput, gold: Tensor, counted: Tensor, recipe: Recipe
) -> tuple[Tensor, Tensor]:
    """Return the same for two forward passes and their divergence (R-Drop, Wu 2021)."""
    training = recipe.training
    assert isinstance(first.output, Output)
    features = first.features[counted], second.features[counted]
    return first.output.rdrop_loss(*features, gold[counted], training.label_smoothing, training.rdrop)


def _coverage_loss(output: DecoderOutput, real: Tensor) -> Tensor:
    """Return the coverage loss of See 2017, eq. 13, summed over real steps."""
    losses = [a.extras["coverage_loss"] for a in output.attentions.values() if "coverage_loss" in a.extras]
    return sum(((loss.mean(dim=-1) * real).sum() for loss in losses), start=output.features.new_zeros(()))


def doubly_stochastic_penalty(attention: AttentionOutput, real: Tensor) -> Tensor:
    """Return `sum_i (1 - sum_t a_ti)^2` (Xu 2015, eq. 14), summed over captions, mean over heads.

    Hard attention uses its expectation instead of its sampled position.
    """
    weights = attention.extras.get("alpha", attention.weights)
    assert weights is not None
    mass = (weights * real[:, :, None, None]).sum(dim=1)  # (row, head, key)
    return ((1 - mass) ** 2).sum(dim=-1).mean(dim=-1).sum()
