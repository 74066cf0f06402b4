"""Word vectors, with positions where a model has no other sense of order."""

from __future__ import annotations

import math
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.data.tokenizer import PAD
from heedful.errors import ShapeError


def sinusoids(count: int, width: int) -> Float[Tensor, "position width"]:
    """Vaswani 2017, §3.5: `sin(p / 10000^(2i/d))` in even places, the cosine in odd ones.

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
    """Adds to each vector one that tells its position."""

    def __init__(self, kind: Literal["sinusoidal", "learned"], width: int, limit: int) -> None:
        super().__init__()
        self.kind = kind
        self.limit = limit
        if kind == "learned":
            self.table = nn.Parameter(torch.randn(limit, width) * width**-0.5)
        else:
            self.register_buffer("rows", sinusoids(limit, width), persistent=False)

    def forward(self, x: Float[Tensor, "row query width"], at: int = 0) -> Float[Tensor, "row query width"]:
        last = at + x.shape[1]
        if self.kind == "learned":
            if last > self.limit:
                raise ShapeError(
                    f"a sentence of {last} positions is longer than the table of {self.limit};"
                    " raise max_positions"
                )
            return x + self.table[at:last]
        rows = self.get_buffer("rows")
        if last > len(rows):  # the formula goes on for ever
            rows = sinusoids(last, x.shape[-1]).to(rows)
        return x + rows[at:last].to(x.dtype)

    def first(self, count: int) -> Float[Tensor, "position width"]:
        """What the first positions add; of a learned table, no more than it has."""
        if self.kind == "learned":
            return self.table[:count].detach().contiguous()
        return sinusoids(count, self.get_buffer("rows").shape[1])


def word_vectors(count: int, width: int) -> nn.Embedding:
    """Vectors of about unit length, so that tied outputs begin with modest scores."""
    embedding = nn.Embedding(count, width, padding_idx=PAD)
    nn.init.normal_(embedding.weight, std=width**-0.5)
    with torch.no_grad():
        embedding.weight[PAD].zero_()
    return embedding


def last_words(
    ids: Int[Tensor, "row query"], before: Int[Tensor, "row words"]
) -> Int[Tensor, "row query words"]:
    """For each step the last words up to and including it: a sliding window over what was written."""
    return torch.cat([before[:, 1:], ids], dim=1).unfold(1, before.shape[1], 1)
