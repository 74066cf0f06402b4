"""Capture: run a model on an input and a given output, and record every step for a trace.

Whatever method decoded the output (greedy, beam search, sampling, forced), the model is run on it again with teacher
forcing, hooks and double precision. Traces of all methods therefore have the same content, and all their numbers come
from one forward pass.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from heedful.attention import AttentionOutput, Detail, Hooks, Memory
from heedful.attention import Edit as EditHook
from heedful.data.batch import Padded, Regions, TextBatch, pad
from heedful.data.tokenizer import PAD, START
from heedful.layers.readout import Output, TwoLevelOutput
from heedful.layers.recurrent_decoder import RecurrentDecoder
from heedful.layers.state import DecoderOutput, EncoderOutput
from heedful.layers.transformer import TransformerEncoder
from heedful.models import Seq2Seq
from heedful.trace.schema import PackedTensor, SideName, Site, SiteRecord, Step, TraceDetail
from heedful.trace.steps import N_CANDIDATES, TokenText, record_step
from heedful.trace.terms import find_attention, largest_unit, output_terms, pack_score_terms, read_out_terms

SOURCE = "source"  # tensor: the encoder's output per position, (S, d)
FEATURES = "features"  # tensor and intermediate: the input of the output layer, (T, d)


class CaptureOutput(NamedTuple):
    """The parts of a trace that come from the model."""

    steps: list[Step]
    sites: list[SiteRecord]
    tensors: dict[str, PackedTensor]
    intermediates: dict[str, str]


class CaptureRequest(NamedTuple):
    """One input, the output tokens, how much to record, and which weights to override."""

    source: Padded | Regions
    tokens: Sequence[int]
    detail: TraceDetail = "steps"
    edit: EditHook | None = None
    n_forced: int = 0  # how many of the first tokens the model did not choose
    candidates: int = N_CANDIDATES  # likely tokens to record per step


def capture_hooks(detail: TraceDetail, edit: EditHook | None) -> Hooks:
    """Return hooks that record everything a trace of this detail contains."""
    return Hooks(Detail.WEIGHTS if detail == "weights" else Detail.FULL, edit=edit)


@torch.inference_mode()
def capture(model: Seq2Seq, request: CaptureRequest, token_text: TokenText) -> CaptureOutput:
    """Run the model on the output tokens in double precision; record every step and site."""
    model = copy.deepcopy(model).double()
    batch = TextBatch(request.source.double(), pad([[START, *request.tokens]]))
    hooks = capture_hooks(request.detail, request.edit)
    output, encoded = model(batch, hooks), model.encode(batch, hooks)
    tensors: dict[str, PackedTensor] = {}
    intermediates: dict[str, str] = {}
    if request.detail != "weights":
        tensors[SOURCE] = PackedTensor.pack(encoded.keys[0].numpy(), "S", "d")
        parts = dict(output.intermediates)
        # The features of a linear read-out are the concatenated state and context, which are recorded already.
        if not (model.config.decoder.recurrent and model.config.decoder.read_out == "linear"):
            parts[FEATURES] = output.features
        if output.pointer is not None:
            parts["copy_gate"] = output.pointer.gate
        for name, tensor in parts.items():
            tensors[name] = PackedTensor.pack(tensor[0].numpy(), *"Td"[: tensor.ndim - 1])
            intermediates[name] = name
    sites = [
        _record_site(model, site, output, encoded, request.detail, tensors)
        for site in model.sites
        if output.attentions[site.id].weights is not None
    ]
    logits = _masked_logits(output)
    if request.detail != "weights":
        tensors |= _pack_output_terms(model, output, batch, request.tokens, logits)
    return CaptureOutput(_record_steps(model, logits, request, token_text), sites, tensors, intermediates)


def _record_site(
    model: Seq2Seq,
    site: Site,
    output: DecoderOutput,
    encoded: EncoderOutput,
    detail: TraceDetail,
    tensors: dict[str, PackedTensor],
) -> SiteRecord:
    attention = output.attentions[site.id]
    query_side: SideName = "source" if site.id.startswith("enc.") else "target"
    key_side: SideName = "target" if site.kind == "self" and query_side == "target" else "source"
    keys = None
    if detail == "full" or (detail == "steps" and site.id == model.alignment_site):
        memory = output.state.memory.get(site.id, output.state.cache.get(site.id))
        if memory is not None:
            keys = SiteKeys(memory.values, memory.keep[0])
        else:
            keys = SiteKeys(encoder_values(model.encoder, site, attention, encoded), encoded.keep[0])
        add_score_terms(model, site, attention, memory, tensors)
    return pack_site(site, attention, (query_side, key_side), tensors, keys)


def add_score_terms(
    model: nn.Module, site: Site, attention: AttentionOutput, memory: Memory | None, tensors: dict[str, PackedTensor]
) -> None:
    """Add what the scores of a site are made of to `tensors`, where its memory is known."""
    module = find_attention(model, site.id)
    if memory is not None and module is not None and attention.query is not None:
        tensors |= pack_score_terms(module, attention.query, memory)


class SiteKeys(NamedTuple):
    """The keys of a site: their values (1, key, head, width), and which of them are not masked (key,)."""

    values: Tensor
    keep: Tensor


def pack_site(
    site: Site,
    attention: AttentionOutput,
    sides: tuple[SideName, SideName],
    tensors: dict[str, PackedTensor],
    keys: SiteKeys | None,
) -> SiteRecord:
    """Return the record of a site of a single input and add its arrays to `tensors`.

    `sides` are the sides of the queries and of the keys. Without `keys` only the weights are recorded.
    """
    assert attention.weights is not None
    query_axis, key_axis = (side[0].upper() for side in sides)

    def pack(name: str, tensor: Tensor, *dims: str) -> str:
        packed = PackedTensor.pack(tensor.numpy(), *dims)
        for other, known in tensors.items():  # store equal arrays once
            is_term = "/score_" in other  # has an axis of heads
            if not is_term and known.data == packed.data and _shape_without_ones(known) == _shape_without_ones(packed):
                return other
        tensors[f"{site.id}/{name}"] = packed
        return f"{site.id}/{name}"

    names = {"weights": pack("weights", attention.weights[0], query_axis, "H", key_axis)}
    extras: dict[str, str] = {}
    if keys is not None:
        assert attention.scores is not None
        assert attention.query is not None
        assert attention.head_contexts is not None
        names["scores"] = pack("scores", attention.scores[0], query_axis, "H", key_axis)
        names["query"] = pack("query", attention.query[0], query_axis, "d")
        names["context"] = pack("context", attention.head_contexts[0], query_axis, "H", "d")
        names["values"] = pack("values", keys.values[0], key_axis, "H", "d")
        for name in ("center", "sample"):
            if name in attention.extras:
                extras[name] = pack(name, attention.extras[name][0].float(), query_axis, "H")
        if not bool(keys.keep.all()):
            names["keep"] = pack("keep", keys.keep, key_axis)
    return SiteRecord.from_site(site, query_side=sides[0], key_side=sides[1], extras=extras, **names)


def _shape_without_ones(packed: PackedTensor) -> list[int]:
    return [size for size in packed.shape if size != 1]


def encoder_values(encoder: nn.Module, site: Site, attention: AttentionOutput, encoded: EncoderOutput) -> Tensor:
    """Return the values (1, key, head, width) of a site in an encoder: an LSTMN's tape or a Transformer layer."""
    if site.id in encoded.tapes:
        return encoded.tapes[site.id].values
    assert isinstance(encoder, TransformerEncoder)
    layer = next(layer for layer in encoder.layers if layer.self_site == site.id)
    inputs = attention.query  # self-attention: keys and values are made from the queries' inputs
    assert inputs is not None
    return layer.self_attention.prepare(inputs, torch.ones(inputs.shape[:2], dtype=torch.bool)).values


def _masked_logits(output: DecoderOutput) -> Tensor:
    """Return the logits (step, vocab) in double precision; padding and start are never generated."""
    logits = output.logits[0].double().clone()
    logits[:, PAD] = logits[:, START] = float("-inf")
    return logits


def _pack_output_terms(
    model: Seq2Seq, output: DecoderOutput, batch: TextBatch, tokens: Sequence[int], logits: Tensor
) -> dict[str, PackedTensor]:
    """Return the largest terms of logits and read-outs; none where the logits are those of a mixture."""
    if output.pointer is not None or not isinstance(output.output, Output) or isinstance(output.output, TwoLevelOutput):
        return {}
    tensors = output_terms(output.output, output.features[0], tokens, logits)
    decoder = model.decoder
    if isinstance(decoder, RecurrentDecoder) and batch.target is not None:
        inputs = batch.target.ids[0, : len(tokens)].clone()
        inputs[0] = model.start_token
        parts = [output.intermediates[name][0] for name in ("state", "context") if name in output.intermediates]
        words = decoder.embedding(inputs)
        tensors |= read_out_terms(decoder.read_out, torch.cat(parts, dim=-1), words, largest_unit(tensors))
    return tensors


def _record_steps(model: Seq2Seq, logits: Tensor, request: CaptureRequest, token_text: TokenText) -> list[Step]:
    logp = logits.log_softmax(dim=-1)
    inputs = [model.start_token, *request.tokens]
    return [
        record_step(
            logp[t],
            token,
            token_text,
            input=inputs[t],
            forced=t < request.n_forced,
            candidates=request.candidates,
        )
        for t, token in enumerate(request.tokens)
    ]
