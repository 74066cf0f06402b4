"""Capture: what a model did while it wrote given tokens, as the arrays of a trace.

Whatever way an output was found (greedy, beam, drawn, forced), it is written once more with everything
watched: so every way of decoding has the same record, and its numbers belong together.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from heedful.attention import Detail, Look, Watch
from heedful.attention import Edit as Change
from heedful.data.batch import Padded, Regions, TextBatch, pad
from heedful.data.tokenizer import PAD, START
from heedful.layers.state import Read, Stepped
from heedful.layers.transformer import TransformerEncoder
from heedful.models import Seq2Seq
from heedful.record import Looks, Site, Step, Top, site_looks
from heedful.record import Tensor as Packed
from heedful.record.trace import Level

LIKELY = 8  # words shown for each step
SOURCE = "source"  # what the encoder made of each position
Side = Literal["target", "source"]


class Captured(NamedTuple):
    """The parts of a trace that come from the model."""

    steps: list[Step]
    sites: list[Looks]
    tensors: dict[str, Packed]
    combine: dict[str, str]


class Asked(NamedTuple):
    """What is captured: what was read and written, how much of it, and what is changed on the way."""

    source: Padded | Regions  # of one item
    written: Sequence[int]
    detail: Level = "steps"
    change: Change | None = None
    forced: int = 0  # so many first tokens were not the model's choice


@torch.inference_mode()
def capture(model: Seq2Seq, asked: Asked, name_of: Callable[[int], str]) -> Captured:
    """Write the tokens once more, in double precision, and record it."""
    model = copy.deepcopy(model).double()
    batch = TextBatch(asked.source.double(), pad([[START, *asked.written]]))
    level = Detail.WEIGHTS if asked.detail == "weights" else Detail.FULL
    watch = Watch(level, edit=asked.change)
    stepped, read = model.score(batch, watch), model.read(batch, watch)
    tensors: dict[str, Packed] = {}
    combine: dict[str, str] = {}
    if asked.detail != "weights":
        tensors[SOURCE] = Packed.of(read.keys[0].numpy(), "S", "d")
        given = dict(stepped.inner)
        if not (model.config.decoder.recurrent and model.config.decoder.read_out == "linear"):
            given["said"] = stepped.said
        if stepped.copied is not None:
            given["gate"] = stepped.copied.gate
        for name, tensor in given.items():
            tensors[name] = Packed.of(tensor[0].numpy(), *"Td"[: tensor.ndim - 1])
            combine[name] = name
    sites = [
        _site(model, site, stepped, read, asked.detail, tensors)
        for site in model.sites
        if stepped.looks[site.id].weights is not None
    ]
    return Captured(_steps(model, stepped, asked, name_of), sites, tensors, combine)


def _site(
    model: Seq2Seq,
    site: Site,
    stepped: Stepped,
    read: Read,
    detail: Level,
    tensors: dict[str, Packed],
) -> Looks:
    look = stepped.looks[site.id]
    asks: Side = "source" if site.id.startswith("enc.") else "target"
    reads: Side = "target" if site.kind == "self" and asks == "target" else "source"
    more = None
    if detail == "full" or (detail == "steps" and site.id == model.alignment):
        more = More(_values(model, site, look, stepped, read), _mask(site, stepped, read))
    return packed_site(site, look, (asks, reads), tensors, more)


class More(NamedTuple):
    """What is kept of a site beside its weights: what was mixed, (1, key, head, width), and may be read."""

    values: Tensor
    mask: Tensor


def packed_site(
    site: Site, look: Look, sides: tuple[Side, Side], tensors: dict[str, Packed], more: More | None
) -> Looks:
    """One site of a single item, its arrays put into `tensors`. `sides`: what asks, and what is read."""
    assert look.weights is not None
    asks, reads = sides
    query, key = asks[0].upper(), reads[0].upper()

    def keep(name: str, tensor: Tensor, *dims: str) -> str:
        packed = Packed.of(tensor.numpy(), *dims)
        for other, known in tensors.items():  # one array, one place
            if known.data == packed.data and _squeezed(known) == _squeezed(packed):
                return other
        tensors[f"{site.id}/{name}"] = packed
        return f"{site.id}/{name}"

    named = {"weight": keep("weight", look.weights[0], query, "H", key)}
    extra: dict[str, str] = {}
    if more is not None:
        assert look.scores is not None
        assert look.query is not None
        assert look.context is not None
        named["score"] = keep("score", look.scores[0], query, "H", key)
        named["query"] = keep("query", look.query[0], query, "d")
        named["context"] = keep("context", look.context[0], query, "H", "d")
        named["value"] = keep("value", more.values[0], key, "H", "d")
        for name in ("centre", "sample"):
            if name in look.extra:
                extra[name] = keep(name, look.extra[name][0].float(), query, "H")
        if not bool(more.mask.all()):
            named["mask"] = keep("mask", more.mask, key)
    return site_looks(site, asks=asks, reads=reads, extra=extra, **named)


def _squeezed(packed: Packed) -> list[int]:
    return [size for size in packed.shape if size != 1]


def _values(model: Seq2Seq, site: Site, look: Look, stepped: Stepped, read: Read) -> Tensor:
    """What is mixed: (1, key, head, width)."""
    if site.id in stepped.state.memory:
        return stepped.state.memory[site.id].values
    if site.id in stepped.state.cache:
        return stepped.state.cache[site.id].values
    return encoder_values(model.encoder, site, look, read)


def encoder_values(encoder: nn.Module, site: Site, look: Look, read: Read) -> Tensor:
    """The same of a site of what reads: an LSTMN's tape, or a Transformer's layer."""
    if site.id in read.tapes:
        return read.tapes[site.id].values
    assert isinstance(encoder, TransformerEncoder)
    layer = next(layer for layer in encoder.layers if layer.self_site == site.id)
    given = look.query  # a layer reads what it asks with
    assert given is not None
    return layer.self_attention.prepare(given, torch.ones(given.shape[:2], dtype=torch.bool)).values


def _mask(site: Site, stepped: Stepped, read: Read) -> Tensor:
    memory = stepped.state.memory.get(site.id, stepped.state.cache.get(site.id))
    return read.keep[0] if memory is None else memory.keep[0]


def _steps(model: Seq2Seq, stepped: Stepped, asked: Asked, name_of: Callable[[int], str]) -> list[Step]:
    scores = stepped.logits[0].clone()
    scores[:, PAD] = scores[:, START] = float("-inf")
    logp = scores.double().log_softmax(dim=-1)
    entropy = torch.special.entr(logp.exp()).sum(dim=-1).tolist()
    best = logp.topk(min(LIKELY, logp.shape[-1]), dim=-1)
    found = []
    before = [model.first, *asked.written]
    for t, word in enumerate(asked.written):
        mine = float(logp[t, word])
        top = [
            Top(id=i, text=name_of(i), logp=value)
            for value, i in zip(best.values[t].tolist(), best.indices[t].tolist(), strict=True)
            if value > float("-inf")
        ]
        found.append(
            Step(
                logp=mine,
                input=before[t],
                forced=t < asked.forced,
                rank=int((logp[t] > mine).sum()),
                entropy=entropy[t],
                top=top,
            )
        )
    return found
