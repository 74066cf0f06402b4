"""Record and edit the attention inside any PyTorch model that contains `MultiHeadAttention` modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from torch import nn

from heedful.attention.hooks import Detail, Hooks
from heedful.attention.types import AttentionOutput


@dataclass(frozen=True, slots=True)
class Recording:
    """What to record in a model, the names of its modules, and what was recorded so far."""

    hooks: Hooks
    sites: Mapping[int, str]  # id of a module -> its name in the model
    outputs: dict[str, list[AttentionOutput]]


_current: ContextVar[Recording | None] = ContextVar("recording", default=None)


def current_recording(module: nn.Module) -> Recording | None:
    """Return the recording that a module takes part in; each thread has its own."""
    current = _current.get()
    return current if current is not None and id(module) in current.sites else None


@contextmanager
def record(model: nn.Module, hooks: Hooks | None = None) -> Iterator[dict[str, list[AttentionOutput]]]:
    """Record every call of the `MultiHeadAttention` modules of a model, by default with all details.

    Yields a dict from the name of each module to its outputs, one per call. `hooks` say what to record and may
    replace weights; their sites are the names of the modules. Nothing is stored in the model.

    >>> import torch
    >>> from heedful.attention import MultiHeadAttention
    >>> layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> layer.self_attn = MultiHeadAttention.from_torch(layer.self_attn)
    >>> with record(layer.eval()) as outputs:
    ...     _ = layer(torch.randn(1, 3, 8))
    >>> outputs["self_attn"][0].weights.shape  # batch, query, head, key
    torch.Size([1, 3, 2, 3])
    """
    sites = {id(module): name or "attention" for name, module in model.named_modules()}
    with recording(Recording(Hooks(Detail.FULL) if hooks is None else hooks, sites, {})) as outputs:
        yield outputs


@contextmanager
def recording(current: Recording) -> Iterator[dict[str, list[AttentionOutput]]]:
    """Make a recording that of this thread, and yield its outputs."""
    token = _current.set(current)
    try:
        yield current.outputs
    finally:
        _current.reset(token)
