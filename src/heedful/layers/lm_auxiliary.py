"""The auxiliary language-model loss of a bidirectional encoder (Rei 2017)."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.layers.readout import Output


class LMAuxiliary(nn.Module):
    """Predict the next token from each forward state, and the previous token from each backward state.

    The states are those of `RecurrentEncoder`, directions concatenated.
    """

    def __init__(self, hidden: int, embedding: nn.Embedding) -> None:
        super().__init__()
        width = embedding.embedding_dim
        self.next_token, self.previous_token = nn.Linear(hidden, width), nn.Linear(hidden, width)
        self.output = Output(width, embedding.num_embeddings, embedding)

    def forward(
        self,
        states: Float[Tensor, "batch key both"],
        keep: Bool[Tensor, "batch key"],
        ids: Int[Tensor, "batch key"],
    ) -> Float[Tensor, ""]:
        """Return the mean cross-entropy per predicted token."""
        pairs = keep[:, 1:]  # of neighboring tokens
        forward, backward = states.chunk(2, dim=-1)
        hidden = torch.cat([self.next_token(forward[:, :-1][pairs]), self.previous_token(backward[:, 1:][pairs])])
        targets = torch.cat([ids[:, 1:][pairs], ids[:, :-1][pairs]])
        total, _ = self.output.cross_entropy(torch.tanh(hidden), targets)
        return total / max(1, len(targets))
