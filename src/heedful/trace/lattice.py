"""For every step and source position: what if it had all the weight, or none?

One batch a step: every question is a row of the same state, with weights of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.attention import Detail, Look, Override, Watch
from heedful.data.batch import Padded, Regions, TextBatch
from heedful.decoding.words import banned
from heedful.models import Seq2Seq
from heedful.record import Top, WhatIf
from heedful.trace.whatif import without

SHOWN = 5  # words of each answer


@torch.inference_mode()
def lattice(
    model: Seq2Seq, source: Padded | Regions, written: Sequence[int], name_of: Callable[[int], str]
) -> list[WhatIf]:
    """All answers, step by step; none for a model that never looks back."""
    site = model.alignment
    if site is None:
        return []
    state, _ = model.encode(TextBatch(source))
    memory = state.memory[site]
    places = memory.keep[0].nonzero().squeeze(1).tolist()
    asked = [(op, place) for op in ("onehot", "zero") for place in places]
    last = torch.tensor([model.first])
    found = []
    for t, word in enumerate(written):
        own = banned(model.step(state, last)).softmax(dim=-1)
        watch = Watch(Detail.NONE, edit=_questions(site, asked))
        changed = banned(model.step(state.widened(len(asked)), last.repeat(len(asked)), watch)).softmax(
            dim=-1
        )
        apart = (changed - own).abs().sum(dim=-1) / 2
        best = changed.log().topk(min(SHOWN, changed.shape[-1]), dim=-1)
        for row, (op, place) in enumerate(asked):
            top = [
                Top(id=i, text=name_of(i), logp=round(value, 5))
                for value, i in zip(best.values[row].tolist(), best.indices[row].tolist(), strict=True)
                if value > float("-inf")
            ]
            tvd = round(float(apart[row]), 6)
            found.append(WhatIf(op=op, step=t, position=place, tvd=tvd, top=top))
        state, last = model.step(state, last).state, torch.tensor([word])
    return found


def _questions(site: str, asked: Sequence[tuple[str, int]]) -> Callable[[str, Look, Tensor], Override | None]:
    """Row r of the one sentence gets the weights that question r asks for."""
    places = torch.tensor([place for _, place in asked])
    all_of_it = torch.tensor([op == "onehot" for op, _ in asked])[None, :, None, None]

    def change(where: str, look: Look, _: Tensor) -> Override | None:
        if where != site:
            return None
        assert look.weights is not None
        here = F.one_hot(places, look.weights.shape[-1]).bool()[None, :, None]  # (1, question, 1, key)
        weights = torch.where(all_of_it, here.to(look.weights), without(look.weights, here))
        return Override(weights)

    return change
