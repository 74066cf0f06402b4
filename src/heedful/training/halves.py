"""Matrix products in bfloat16, everything else in float32, for CPUs that have such products.

Autocast hands out bfloat16 tensors, on which the kernels of this package, made for float32, give way to
slower paths. `Halves` changes products alone: factors and results are rounded, the sums between are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.overrides import TorchFunctionMode

LEAST = 2**18  # multiplications, below which rounding costs more than it saves


def has_halves() -> bool:
    """Does this CPU multiply bfloat16 itself?"""
    found: bool = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return found


class _Linear(Function):
    """`x w' + b`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, b: Tensor | None, half: Tensor) -> Tensor:
        ctx.half, ctx.rows = half, x.flatten(end_dim=-2).bfloat16()
        y = torch.mm(ctx.rows, half.T) if b is None else torch.addmm(b.bfloat16(), ctx.rows, half.T)
        return y.float().view(*x.shape[:-1], len(w))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        into_x, into_w, into_b, _ = ctx.needs_input_grad
        g = grads[0].flatten(end_dim=-2)
        half = g.bfloat16()
        x = torch.mm(half, ctx.half).float().view(*grads[0].shape[:-1], -1) if into_x else None
        w = torch.mm(half.T, ctx.rows).float() if into_w else None
        return x, w, g.sum(dim=0) if into_b else None, None


class Halves(TorchFunctionMode):
    """While entered, products of float32 matrices are computed in bfloat16 and given back in float32.

    The rounded weights of a model are kept until `forget` is called: after each update.
    """

    def __init__(self, weights: Iterable[nn.Parameter]) -> None:
        super().__init__()
        self.homes = {weight.untyped_storage().data_ptr() for weight in weights}
        self.kept: dict[tuple[Any, ...], Tensor] = {}

    def forget(self) -> None:
        self.kept.clear()

    def half(self, x: Tensor) -> Tensor:
        home = x.untyped_storage().data_ptr()
        if home not in self.homes:
            return x.bfloat16()
        place = (home, x.storage_offset(), x.shape, x.stride())
        if place not in self.kept:
            self.kept[place] = x.detach().bfloat16()
        return self.kept[place]

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in (Tensor.backward, torch.autograd.backward):
            with self:  # else it would be left out on the way back
                return _lead_back(args[0] if isinstance(args[0], Tensor) else args[0][0])
        if func is nn.functional.linear:
            x, w, b = (*args, *kwargs.values(), None)[:3]
            if _fit(x, w) and x.numel() * len(w) >= LEAST:
                return _Linear.apply(x, w, b, self.half(w))  # type: ignore[no-untyped-call]
        elif func in _PRODUCTS and kwargs.keys() <= {"out"} and not torch.is_grad_enabled():
            onto, a, b = _PRODUCTS[func](*args)
            if a.dim() == b.dim() == 2 and _fit(a, b) and a.numel() * b.shape[1] >= LEAST:
                return _product(func, self.half(a), self.half(b), onto, kwargs.get("out"))
        return func(*args, **kwargs)


def _lead_back(loss: Tensor) -> None:
    """`loss.backward()` without asking the mode once more."""
    engine = torch.autograd.Variable._execution_engine
    engine.run_backward(
        (loss,), (torch.ones_like(loss),), False, False, (), allow_unreachable=True, accumulate_grad=True
    )


def _fit(*tensors: Tensor) -> bool:
    return all(t.dtype is torch.float32 and t.device.type == "cpu" for t in tensors)


# from a call's arguments: what is added, and the factors
_PRODUCTS: dict[Callable[..., Any], Callable[..., tuple[Tensor | None, Tensor, Tensor]]] = {
    torch.mm: lambda a, b: (None, a, b),
    torch.Tensor.__matmul__: lambda a, b: (None, a, b),
    torch.Tensor.matmul: lambda a, b: (None, a, b),
    torch.addmm: lambda onto, a, b: (onto, a, b),
    torch.Tensor.addmm_: lambda onto, a, b: (onto, a, b),
}


def _product(
    func: Callable[..., Any], a: Tensor, b: Tensor, onto: Tensor | None, out: Tensor | None
) -> Tensor:
    """The product in float32, where the call wanted it."""
    bias = onto is not None and onto.dim() == 1
    found = torch.addmm(onto.bfloat16(), a, b) if onto is not None and bias else torch.mm(a, b)
    if onto is not None and not bias:
        return onto.add_(found) if func is torch.Tensor.addmm_ else torch.add(found, onto, out=out)
    return found.float() if out is None else out.copy_(found)
