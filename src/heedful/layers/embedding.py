"""Token and position embeddings."""

from __future__ import annotations

import math
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.data.tokenizer import PAD
from heedful.errors import ShapeError
from heedful.kernels import out_of_range

MAX_ROWS = 4_096  # of sinusoids that a model keeps; those of longer sentences are computed when they are needed


def sinusoids(count: int, width: int) -> Float[Tensor, "position width"]:
    """Return the position encodings of Vaswani 2017, §3.5: `sin(p / 10000^(2i/d))` at 2i, the cosine at 2i + 1.

    >>> sinusoids(2, 4)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 0.9999]])
    """
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    angles = torch.arange(count)[:, None] * rates
    table = torch.zeros(count, width)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()[:, : width // 2]
    return table


class Positions(nn.Module):
    """Add position embeddings: learned up to `max_positions`, or sinusoidal of any length."""

    def __init__(self, kind: Literal["sinusoidal", "learned"], width: int, max_positions: int) -> None:
        super().__init__()
        self.kind = kind
        self.max_positions = max_positions
        if kind == "learned":
            self.table = nn.Parameter(torch.randn(max_positions, width) * width**-0.5)
        else:
            self.register_buffer("rows", sinusoids(min(max_positions, MAX_ROWS), width), persistent=False)

    def forward(self, x: Float[Tensor, "row query width"], start: int = 0) -> Float[Tensor, "row query width"]:
        end = start + x.shape[1]
        if self.kind == "learned":
            if end > self.max_positions:
                raise ShapeError(
                    f"a sentence has {end} positions, but the embedding has {self.max_positions}; raise max_positions"
                )
            return x + self.table[start:end]
        rows = self.get_buffer("rows")
        if end > len(rows):  # sinusoids have no limit
            rows = sinusoids(end, x.shape[-1]).to(rows)
        return x + rows[start:end].to(x.dtype)

    def first(self, count: int) -> Float[Tensor, "position width"]:
        """Return the embeddings of the first `count` positions; of a learned table, at most its length."""
        if self.kind == "learned":
            return self.table[:count].detach().contiguous()
        return sinusoids(count, self.get_buffer("rows").shape[1])


class TokenEmbedding(nn.Embedding):
    """An embedding that names the id which is not in the vocabulary."""

    def forward(self, ids: Int[Tensor, "..."]) -> Float[Tensor, "... width"]:
        try:
            return super().forward(ids)
        except IndexError:
            wrong = ids[(ids < 0) | (ids >= self.num_embeddings)]
            if not len(wrong):
                raise
            raise out_of_range("token", int(wrong[0]), self.num_embeddings) from None


def token_embedding(count: int, width: int) -> nn.Embedding:
    """Return an embedding with vectors of about unit length, so that tied output layers start with small logits."""
    embedding = TokenEmbedding(count, width, padding_idx=PAD)
    nn.init.normal_(embedding.weight, std=width**-0.5)
    with torch.no_grad():
        embedding.weight[PAD].zero_()
    return embedding


def token_windows(ids: Int[Tensor, "row query"], before: Int[Tensor, "row words"]) -> Int[Tensor, "row query words"]:
    """Return for each step a window of the last tokens up to and including it; `before` are those before the first."""
    return torch.cat([before[:, 1:], ids], dim=1).unfold(1, before.shape[1], 1)
