"""The modules that are exported: a classifier, or an encoder and one step of a decoder, with named tensors.

A decoder's `State` becomes named tensors: `memory.*` is what depends on the source alone and stays the same in every
step, `state.*` goes in and comes out as `next.*`. Attention weights are `weights.SITE`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from heedful.attention import AttentionOutput, Detail, Hooks, Memory
from heedful.data.batch import Padded, Regions, TextBatch
from heedful.data.labels import LabelBatch
from heedful.data.tokenizer import PAD, START
from heedful.layers.state import State
from heedful.models import Classifier, Seq2Seq

RECORD = Hooks(Detail.WEIGHTS)
MEMORY, STATE, NEXT, WEIGHTS = "memory.", "state.", "next.", "weights."
TOKEN, POSITION, LOGITS, LOG_PROBABILITIES = "token", "position", "logits", "log_probabilities"
Tensors = dict[str, Tensor]


class ClassifierGraph(nn.Module):
    """A classifier: ids (batch, source) to logits (batch, label) and weights (batch, query, head, key)."""

    def __init__(self, model: Classifier) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: Tensor) -> Tensors:
        output = self.model(LabelBatch(Padded(source, source != PAD)), RECORD)
        return {LOGITS: output.logits, **name_weights(output.attentions)}


class EncoderGraph(nn.Module):
    """The encoder: the source to `memory.*`, the first `state.*`, and weights (batch, query, head, key)."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: Tensor) -> Tensors:
        state, attentions = self.model.initial_state(make_batch(source), RECORD)
        state = replace(state, cache={site: _empty_cache(cache, source) for site, cache in state.cache.items()})
        return {**name_memory(state), **name_state(state), **name_weights(attentions)}


class DecoderGraph(nn.Module):
    """One step: each row's last token and a state to log-probabilities (row, token) and weights (row, head, key).

    `<pad>` and `<s>` have the log-probability -inf: they are never generated.
    """

    def __init__(self, model: Seq2Seq, template: State) -> None:
        super().__init__()
        self.model = model
        self.template = template
        self.skips_first_update = skips_first_update(model)

    def forward(self, tensors: Tensors) -> Tensors:
        state = fill_state(self.template, tensors)
        if POSITION in tensors:
            position: Any = tensors[POSITION]
            if self.skips_first_update:
                rnn: Any = self.model.decoder.rnn
                rnn.started, position = position > 0, 1
            state = replace(state, position=position)
        output = self.model.step(state, tensors[TOKEN], RECORD)
        logits = output.logits[:, -1]
        vocabulary = torch.arange(logits.shape[-1])
        is_generated = (vocabulary != PAD) & (vocabulary != START)
        log_probabilities = logits.masked_fill(~is_generated, float("-inf")).log_softmax(dim=-1)
        following = {NEXT + name.removeprefix(STATE): t for name, t in name_state(output.state).items()}
        return {
            LOG_PROBABILITIES: log_probabilities,
            **{name: t[:, 0] for name, t in name_weights(output.attentions).items()},
            **following,
        }


def make_batch(source: Tensor) -> TextBatch:
    """Return a batch of ids (batch, source), or of the features of images (batch, region, width)."""
    if source.is_floating_point():
        return TextBatch(Regions(source, torch.ones_like(source[..., 0], dtype=torch.bool)))
    return TextBatch(Padded(source, source != PAD))


def needs_position(model: Seq2Seq) -> bool:
    """Return whether a step depends on the number of the step, apart from the keys of earlier tokens."""
    return skips_first_update(model) or model.config.attention.placement == "local-m"


def skips_first_update(model: Seq2Seq) -> bool:
    """Return whether the first step of the decoder does not update its state (Bahdanau's released code)."""
    return getattr(model.decoder, "order", "") == "attend-generate-update"


def name_weights(attentions: Mapping[str, AttentionOutput]) -> Tensors:
    """Return the weights of every site by the name of their output."""
    return {WEIGHTS + site: output.weights for site, output in attentions.items() if output.weights is not None}


def name_memory(state: State) -> Tensors:
    """Return what depends on the source alone; masks that several sites share once."""
    tensors: Tensors = {}
    for site, memory in state.memory.items():
        tensors |= {f"{MEMORY}{site}.keys": memory.keys, f"{MEMORY}{site}.values": memory.values}
        if not any(memory.keep is tensor for tensor in tensors.values()):
            tensors[f"{MEMORY}{site}.keep"] = memory.keep
    return tensors | {f"{MEMORY}{name}".replace(" ", "_"): t for name, t in state.per_sentence.items()}


def name_state(state: State) -> Tensors:
    """Return what changes from step to step."""
    tensors: Tensors = {f"{STATE}hidden.{i}": t for i, t in enumerate(state.hidden)}
    if state.input_feed is not None:
        tensors[f"{STATE}input_feed"] = state.input_feed
    for site, carry in state.carry.items():
        tensors |= {f"{STATE}{site}.{name}": t for name, t in carry.items()}
    for site, cache in state.cache.items():
        tensors |= {f"{STATE}{site}.keys": cache.keys, f"{STATE}{site}.values": cache.values}
    return tensors


def fill_state(template: State, tensors: Mapping[str, Tensor]) -> State:
    """Return the state whose tensors are these; `template` says which there are."""
    memory: dict[str, Memory] = {}
    keep_of: dict[int, Tensor] = {}  # by mask of the template: the tensor that stands for it
    for site, m in template.memory.items():
        name = f"{MEMORY}{site}."
        keep = keep_of.setdefault(id(m.keep), tensors.get(name + "keep", m.keep))
        memory[site] = Memory(tensors[name + "keys"], tensors[name + "values"], keep)
    cache = {site: _fill_cache(tensors, f"{STATE}{site}.") for site in template.cache}
    position = next((m.keys.shape[1] for m in cache.values()), template.position)
    return State(
        memory,
        cache,
        tuple(tensors[f"{STATE}hidden.{i}"] for i in range(len(template.hidden))),
        tensors.get(f"{STATE}input_feed"),
        {site: {name: tensors[f"{STATE}{site}.{name}"] for name in carry} for site, carry in template.carry.items()},
        {name: tensors[f"{MEMORY}{name}".replace(" ", "_")] for name in template.per_sentence},
        position,
    )


def _empty_cache(cache: Memory, source: Tensor) -> Memory:
    """Return the cache before the first token; computed as in the model, it is a product that ONNX does not accept."""
    empty = torch.zeros(source.shape[0], 0, *cache.keys.shape[2:])
    return Memory(empty, empty.clone(), empty[:, :, 0, 0].bool())


def _fill_cache(tensors: Mapping[str, Tensor], name: str) -> Memory:
    keys = tensors[name + "keys"]
    return Memory(keys, tensors[name + "values"], torch.ones_like(keys[:, :, 0, 0], dtype=torch.bool))
