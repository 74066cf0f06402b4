"""Models with int8 matrices, for inference only.

A product with int8 weights reads a quarter of the memory and uses the processor's int8 instructions. The loss of
precision is measured: the tests bound it for single products, `heedful evaluate --int8` measures it on your data.
"""

from __future__ import annotations

import copy

from torch import Tensor, nn

from heedful.attention import Concat
from heedful.kernels import Int8Product
from heedful.layers.readout import Output
from heedful.layers.recurrent import RecurrentEncoder, RecurrentStack
from heedful.models.seq2seq import Seq2Seq

MIN_ENTRIES = 4_096  # smaller matrices stay in float32: int8 would not be faster


class Int8Linear(nn.Module):
    """`x W' + b` with W in int8, for x of any shape."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.product = Int8Product(weight, bias)
        self.out_features, self.in_features = weight.shape

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(x.shape[:-1].numel(), self.in_features)
        return self.product(rows).view(*x.shape[:-1], self.out_features)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}"


def quantize(model: Seq2Seq) -> Seq2Seq:
    """Return a copy of a model whose large matrices are int8; embeddings stay as they are."""
    quantized = copy.deepcopy(model).eval()
    for module in list(quantized.modules()):
        if isinstance(module, RecurrentStack | RecurrentEncoder):
            module.quantize()
        if isinstance(module, Concat):  # it uses the two halves of its matrix separately
            continue
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear | Output) and child.weight.numel() >= MIN_ENTRIES:
                setattr(module, name, Int8Linear(child.weight, child.bias))
    return quantized
