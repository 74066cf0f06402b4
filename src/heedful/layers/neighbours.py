"""Guessing words from those before and behind them: what a reader of both ends can learn from texts alone."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.layers.entropy import linear_entropy
from heedful.layers.readout import Output


class Neighbours(nn.Module):
    """Rei 2017: the state that has read up to a word guesses the next one, and from behind the one before.

    The states of both directions stand side by side, as `RecurrentEncoder` gives them.
    """

    def __init__(self, hidden: int, embedding: nn.Embedding) -> None:
        super().__init__()
        width = embedding.embedding_dim
        self.after, self.before = nn.Linear(hidden, width), nn.Linear(hidden, width)
        self.output = Output(width, embedding.num_embeddings, embedding)

    def forward(
        self,
        states: Float[Tensor, "batch key both"],
        keep: Bool[Tensor, "batch key"],
        ids: Int[Tensor, "batch key"],
    ) -> Float[Tensor, ""]:
        """The mean surprise of a word."""
        pairs = keep[:, 1:]
        forth, back = states.chunk(2, dim=-1)
        said = torch.cat([self.after(forth[:, :-1][pairs]), self.before(back[:, 1:][pairs])])
        gold = torch.cat([ids[:, 1:][pairs], ids[:, :-1][pairs]])
        total, _ = linear_entropy(torch.tanh(said), self.output, gold)
        return total / max(1, len(gold))
