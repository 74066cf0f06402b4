"""Matrix products in bfloat16 and everything else in float32, for CPUs with bfloat16 instructions.

Autocast produces bfloat16 tensors, for which this package's float32 kernels fall back to slower paths.
`Bf16Products` changes matrix products only: factors and results are rounded to bfloat16, sums are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.overrides import TorchFunctionMode

MIN_MULTIPLICATIONS = 2**18  # below this, rounding the factors costs more than the product saves


def has_bf16_products() -> bool:
    """Return True if this CPU has bfloat16 matrix instructions."""
    supported: bool = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return supported


class _Linear(Function):
    """`x w' + b` with the product in bfloat16; `w_bf16` is `w` already rounded."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, b: Tensor | None, w_bf16: Tensor) -> Tensor:
        ctx.w_bf16, ctx.rows = w_bf16, x.flatten(end_dim=-2).bfloat16()
        y = torch.mm(ctx.rows, w_bf16.T) if b is None else torch.addmm(b.bfloat16(), ctx.rows, w_bf16.T)
        return y.float().view(*x.shape[:-1], len(w))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        needs_x, needs_w, needs_b, _ = ctx.needs_input_grad
        grad = grads[0].flatten(end_dim=-2)
        grad_bf16 = grad.bfloat16()
        grad_x = torch.mm(grad_bf16, ctx.w_bf16).float().view(*grads[0].shape[:-1], -1) if needs_x else None
        grad_w = torch.mm(grad_bf16.T, ctx.rows).float() if needs_w else None
        return grad_x, grad_w, grad.sum(dim=0) if needs_b else None, None


class Bf16Products(TorchFunctionMode):
    """Context manager in which products of float32 matrices run in bfloat16 and return float32.

    The rounded weights of the model are cached: call `clear_cache` after each update.
    """

    def __init__(self, weights: Iterable[nn.Parameter]) -> None:
        super().__init__()
        self.weight_storages = {weight.untyped_storage().data_ptr() for weight in weights}
        self.cache: dict[tuple[Any, ...], Tensor] = {}

    def clear_cache(self) -> None:
        """Forget the rounded weights."""
        self.cache.clear()

    def to_bf16(self, x: Tensor) -> Tensor:
        """Round a tensor; weights, and views of them, are rounded once per update."""
        storage = x.untyped_storage().data_ptr()
        if storage not in self.weight_storages:
            return x.bfloat16()
        key = (storage, x.storage_offset(), x.shape, x.stride())
        if key not in self.cache:
            self.cache[key] = x.detach().bfloat16()
        return self.cache[key]

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in (Tensor.backward, torch.autograd.backward):
            with self:  # torch disables the mode during this call: the backward pass needs it too
                return _run_backward(args[0] if isinstance(args[0], Tensor) else args[0][0])
        if func is nn.functional.linear:
            x, w, b = (*args, *kwargs.values(), None)[:3]
            if _is_cpu_float32(x, w) and x.numel() * len(w) >= MIN_MULTIPLICATIONS:
                return _Linear.apply(x, w, b, self.to_bf16(w))  # type: ignore[no-untyped-call]
        elif func in _PRODUCTS and kwargs.keys() <= {"out"} and not torch.is_grad_enabled():
            addend, a, b = _PRODUCTS[func](*args)
            large = a.dim() == b.dim() == 2 and a.numel() * b.shape[1] >= MIN_MULTIPLICATIONS
            if large and _is_cpu_float32(a, b):
                return _multiply(func, self.to_bf16(a), self.to_bf16(b), addend, kwargs.get("out"))
        return func(*args, **kwargs)


def _run_backward(loss: Tensor) -> None:
    """Do what `loss.backward()` does, without entering `__torch_function__` again."""
    engine = torch.autograd.Variable._execution_engine
    engine.run_backward(
        (loss,), (torch.ones_like(loss),), False, False, (), allow_unreachable=True, accumulate_grad=True
    )


def _is_cpu_float32(*tensors: Tensor) -> bool:
    return all(t.dtype is torch.float32 and t.device.type == "cpu" for t in tensors)


# each function's arguments as (addend or None, left factor, right factor)
_PRODUCTS: dict[Callable[..., Any], Callable[..., tuple[Tensor | None, Tensor, Tensor]]] = {
    torch.mm: lambda a, b: (None, a, b),
    torch.Tensor.__matmul__: lambda a, b: (None, a, b),
    torch.Tensor.matmul: lambda a, b: (None, a, b),
    torch.addmm: lambda addend, a, b: (addend, a, b),
    torch.Tensor.addmm_: lambda addend, a, b: (addend, a, b),
}


def _multiply(func: Callable[..., Any], a: Tensor, b: Tensor, addend: Tensor | None, out: Tensor | None) -> Tensor:
    """Return the float32 result of `func`, in `out` or in place where the call asks for it."""
    is_bias = addend is not None and addend.dim() == 1
    product = torch.addmm(addend.bfloat16(), a, b) if addend is not None and is_bias else torch.mm(a, b)
    if addend is not None and not is_bias:
        return addend.add_(product) if func is torch.Tensor.addmm_ else torch.add(product, addend, out=out)
    return product.float() if out is None else out.copy_(product)
