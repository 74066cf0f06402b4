"""A model whose big matrices are bytes: for using it, not for training it.

Products with such weights move a quarter of the memory and run on the processor's byte instructions. What is
lost is measured, not assumed: the tests bound it on single products, `heedful evaluate --int8` on your data.
"""

from __future__ import annotations

import copy

from torch import Tensor, nn

from heedful.attention.scores import Concat
from heedful.layers.readout import Output
from heedful.layers.recurrent import RecurrentEncoder, Stack
from heedful.models.seq2seq import Seq2Seq
from heedful.native import Int8

SMALLEST = 4_096  # entries: a smaller matrix gains nothing


class Int8Linear(nn.Module):
    """`x W' + b` with W in bytes, for x of any shape."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.product = Int8(weight, bias)
        self.out_features, self.in_features = weight.shape

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(x.shape[:-1].numel(), self.in_features)
        return self.product(rows).view(*x.shape[:-1], self.out_features)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}"


def to_int8(model: Seq2Seq) -> Seq2Seq:
    """A copy of the model that multiplies in bytes where a matrix is large; word vectors stay as they are."""
    quick = copy.deepcopy(model).eval()
    for part in list(quick.modules()):
        if isinstance(part, Stack | RecurrentEncoder):
            part.to_bytes()
        if isinstance(part, Concat):  # its matrix is used in two halves
            continue
        for name, child in list(part.named_children()):
            if isinstance(child, nn.Linear | Output) and child.weight.numel() >= SMALLEST:
                setattr(part, name, Int8Linear(child.weight, child.bias))
    return quick
