"""Capture of a classifier: what it made of one text, as the arrays of a trace of a single step."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.attention import Detail, Look, Override, Watch
from heedful.attention import Edit as Change
from heedful.data.batch import Padded
from heedful.data.labels import LabelBatch
from heedful.models import Classifier
from heedful.models.classifier import Judged
from heedful.record import Looks, Site, Step, Top, WhatIf
from heedful.record import Tensor as Packed
from heedful.record.trace import Level
from heedful.trace.capture import LIKELY, SOURCE, Captured, More, Side, encoder_values, packed_site
from heedful.trace.check import ENDS
from heedful.trace.whatif import without

VALUES = "values"  # what is read of each position, where it is not what is compared
SHOWN = 5  # labels of each answer to a what-if


@torch.inference_mode()
def capture_label(
    model: Classifier,
    source: Padded,
    names: Sequence[str],
    detail: Level = "steps",
    change: Change | None = None,
    label: int | None = None,
) -> tuple[int, Captured]:
    """Judge one text, in double precision, and record it. `label`: taken whatever the model would say."""
    model = copy.deepcopy(model).double()
    level = Detail.WEIGHTS if detail == "weights" else Detail.FULL
    said = model.judge(LabelBatch(source), Watch(level, edit=change))
    tensors: dict[str, Packed] = {}
    combine: dict[str, str] = {}
    if model.sentences:
        tensors[ENDS] = Packed.of(said.read.keep[0].numpy(), "S")
    if detail != "weights":
        read = said.read
        tensors[SOURCE] = Packed.of(read.keys[0].numpy(), "S", "d")
        if read.values is not read.keys:
            tensors[VALUES] = Packed.of(read.values[0].numpy(), "S", "d")
        tensors["said"] = Packed.of(said.said.numpy(), "T", "d")
        combine["said"] = "said"
    sites = [_site(model, site, said, detail, tensors) for site in model.sites]
    logp = said.logits[0].log_softmax(dim=-1)
    chosen = int(logp.argmax()) if label is None else label
    step = Step(
        logp=float(logp[chosen]),
        forced=label is not None,
        rank=int((logp > logp[chosen]).sum()),
        entropy=float(torch.special.entr(logp.exp()).sum()),
        top=_likeliest(logp, names, LIKELY),
    )
    return chosen, Captured([step], sites, tensors, combine)


def _likeliest(logp: Tensor, names: Sequence[str], count: int) -> list[Top]:
    best = logp.topk(min(count, len(logp)))
    rows = zip(best.values.tolist(), best.indices.tolist(), strict=True)
    return [Top(id=i, text=names[i], logp=value) for value, i in rows if value > float("-inf")]


def _site(model: Classifier, site: Site, said: Judged, detail: Level, tensors: dict[str, Packed]) -> Looks:
    look, pooling = said.looks[site.id], site.id == model.alignment
    sides: tuple[Side, Side] = ("target", "source") if pooling else ("source", "source")
    more = None
    if detail == "full" or (detail == "steps" and pooling):
        if pooling:
            assert said.asked is not None
            more = More(said.asked.memory.values, said.asked.memory.keep[0])
        else:
            keep = said.read.tapes[site.id].keep if site.kind == "pool" else said.read.keep
            more = More(encoder_values(model.encoder, site, look, said.read), keep[0])
    made = packed_site(site, look, sides, tensors, more)
    inside = [other.id for other in model.sites if other.kind == "pool" and other.id != model.alignment]
    return made.model_copy(update={"through": inside[0]}) if pooling and inside else made


@torch.inference_mode()
def label_lattice(model: Classifier, source: Padded, names: Sequence[str]) -> list[WhatIf]:
    """For every position: what if it had all the weight, or none? Nothing for a model that weighs nothing."""
    said = model.judge(LabelBatch(source), Watch(Detail.WEIGHTS))
    if said.asked is None:
        return []
    places = said.asked.memory.keep[0].nonzero().squeeze(1)
    own = said.logits.softmax(dim=-1)
    found = []
    for op, changed in (("onehot", _alone), ("zero", _gone)):
        watch = Watch(Detail.NONE, edit=_each(places, changed))
        scores = model.again(said.asked.times(len(places)), watch)[0].log_softmax(dim=-1)
        apart = (scores.exp() - own).abs().sum(dim=-1) / 2
        for row, place in enumerate(places.tolist()):
            top = [
                t.model_copy(update={"logp": round(t.logp, 5)}) for t in _likeliest(scores[row], names, SHOWN)
            ]
            tvd = round(float(apart[row]), 6)
            found.append(
                WhatIf.model_validate({"op": op, "step": 0, "position": place, "tvd": tvd, "top": top})
            )
    return found


def _alone(weights: Tensor, here: Tensor) -> Tensor:
    return here.expand_as(weights).to(weights)


def _gone(weights: Tensor, here: Tensor) -> Tensor:
    return without(weights, here)


def _each(places: Tensor, changed: Callable[[Tensor, Tensor], Tensor]) -> Change:
    """Query q gets its weights changed at place q."""

    def change(_: str, look: Look, __: Tensor) -> Override:
        assert look.weights is not None
        here = F.one_hot(places, look.weights.shape[-1]).bool()[None, :, None]  # (1, query, 1, key)
        return Override(changed(look.weights, here))

    return change
