"""Greedy search, with the weights of every step where they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.attention import PLAIN, Watch
from heedful.data.batch import TextBatch
from heedful.data.tokenizer import END, PAD, START
from heedful.models import Writer


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One output: its tokens (the end token included if it was reached), and where each step looked."""

    tokens: tuple[int, ...]
    logp: float
    token_logp: tuple[float, ...]
    finished: bool
    looks: Mapping[str, Float[Tensor, "query head key"]]  # unpadded: keys are the source's tokens


@torch.inference_mode()
def search(model: Writer, batch: TextBatch, max_length: int, watch: Watch = PLAIN) -> list[Hypothesis]:
    """Take the likeliest word at every step until `</s>`; finished sentences leave the batch."""
    state = model.encode(batch, watch)
    device = batch.source.ids.device
    last = torch.full((batch.size,), START, device=device)
    alive = torch.arange(batch.size, device=device)
    tokens: list[list[int]] = [[] for _ in range(batch.size)]
    logps: list[list[float]] = [[] for _ in range(batch.size)]
    looks: list[dict[str, list[Tensor]]] = [{} for _ in range(batch.size)]
    for _ in range(max_length):
        stepped = model.step(state, last, watch)
        state = stepped.state
        scores = stepped.logits[:, -1]
        scores[:, [PAD, START]] = float("-inf")  # neither is ever written
        best, last = scores.log_softmax(dim=-1).max(dim=-1)
        for row, sentence in enumerate(alive.tolist()):
            tokens[sentence].append(int(last[row]))
            logps[sentence].append(float(best[row]))
            for site, look in stepped.looks.items():
                if look.weights is not None:
                    looks[sentence].setdefault(site, []).append(look.weights[row])
        going = (last != END).nonzero().squeeze(1)
        if len(going) == 0:
            break
        if len(going) < len(alive):
            state, last, alive = state.select(going), last[going], alive[going]
    lengths = batch.source.lengths.tolist()
    return [
        Hypothesis(
            tuple(tokens[i]),
            sum(logps[i]),
            tuple(logps[i]),
            tokens[i][-1] == END,
            {site: torch.cat(steps)[..., : lengths[i]] for site, steps in looks[i].items()},
        )
        for i in range(batch.size)
    ]
