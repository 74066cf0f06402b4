"""Record `nn.MultiheadAttention` inside any PyTorch model, such as `nn.Transformer`, as traces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from torch import nn

from heedful.attention import AttentionOutput, Detail, Hooks
from heedful.attention.multi_head import MultiHeadAttention
from heedful.attention.recording import Recording, recording
from heedful.errors import TraceError
from heedful.trace.schema import ModelInfo, SideName, SiteKind, Trace
from heedful.trace.schema.given import GivenSite, given_fields

Tokens = Sequence[str] | None


@contextmanager
def record(
    model: nn.Module,
    *,
    tokens: Tokens = None,
    target_tokens: Tokens = None,
    name: str | None = None,
    hooks: Hooks | None = None,
) -> Iterator[list[Trace]]:
    """Record every call of a model that contains `nn.MultiheadAttention`: one trace per row of a batch.

    `tokens` and `target_tokens` are the texts of the positions (default: their numbers). `hooks` may edit weights;
    their sites are the names of the modules. The model is as before afterwards.

    >>> from torch import randn
    >>> layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
    >>> with record(layers.eval(), tokens=["a", "cat", "sleeps"]) as traces:
    ...     _ = layers(randn(1, 3, 8))
    >>> traces[0].weights("layers.1.self_attn").shape  # query, head, key
    (3, 2, 3)
    """
    modules = {path or "attention": m for path, m in model.named_modules() if isinstance(m, nn.MultiheadAttention)}
    if not modules:
        raise TraceError(f"{type(model).__name__} contains no nn.MultiheadAttention, so there is nothing to record")
    traces: list[Trace] = []
    current = Recording(Hooks(Detail.WEIGHTS) if hooks is None else hooks, {}, {})
    sites: dict[int, str] = {}
    title = name or type(model).__name__

    def finish(*_: Any) -> None:
        outputs = {site: list(calls) for site, calls in current.outputs.items()}
        current.outputs.clear()
        traces.extend(_make_traces(outputs, tokens, target_tokens, title))

    with ExitStack() as stack:
        for path, module in modules.items():
            sites[id(stack.enter_context(_replaced_forward(module)))] = path
        stack.callback(model.register_forward_hook(finish).remove)
        stack.enter_context(recording(Recording(current.hooks, sites, current.outputs)))
        yield traces


@contextmanager
def _replaced_forward(module: nn.MultiheadAttention) -> Iterator[nn.Module]:
    """Let a module compute by ours, which can be recorded; it shares the parameters."""
    if isinstance(module, MultiHeadAttention):
        yield module
        return
    ours = MultiHeadAttention.from_torch(module)
    same_size = module._qkv_same_embed_dim
    module.forward = ours.forward  # type: ignore[method-assign]
    module._qkv_same_embed_dim = False  # torch's layers would compute attention past the module
    try:
        yield ours
    finally:
        del module.forward
        module._qkv_same_embed_dim = same_size


def _make_traces(
    outputs: dict[str, list[AttentionOutput]], tokens: Tokens, target_tokens: Tokens, name: str
) -> list[Trace]:
    """Return a trace per row of the batch of one call of the model."""
    weights = {
        site if len(calls) == 1 else f"{site}.{number}": call.weights
        for site, calls in outputs.items()
        for number, call in enumerate(calls)
        if call.weights is not None
    }
    if not weights:
        return []
    arrays = {site: tensor.detach().cpu().float().numpy() for site, tensor in weights.items()}
    crossing = [site for site, a in arrays.items() if "multihead_attn" in site or a.shape[1] != a.shape[3]]
    n_target, n_source = arrays[crossing[0]].shape[1:4:2] if crossing else (next(iter(arrays.values())).shape[1],) * 2
    source = _labels(tokens, n_source, "tokens")
    target = _labels(target_tokens, n_target, "target_tokens") if crossing else source
    traces = []
    for row in range(len(next(iter(arrays.values())))):
        sites = [_site(site, a[row], site in crossing, bool(crossing), n_source) for site, a in arrays.items()]
        alignment = crossing[-1] if crossing else sites[-1].name
        fields = given_fields(sites, source, target, alignment, ModelInfo(name=name, task="given"))
        traces.append(Trace.build(**fields).with_id())
    return traces


def _site(name: str, weights: np.ndarray, crosses: bool, has_target: bool, n_source: int) -> GivenSite:
    kind: SiteKind = "cross" if crosses else "self"
    sides: tuple[SideName, SideName] = ("target", "source") if crosses else ("source", "source")
    if not crosses and has_target and ("decoder" in name or weights.shape[0] != n_source):
        sides = ("target", "target")
    return GivenSite(name, kind, weights, sides)


def _labels(tokens: Tokens, count: int, argument: str) -> list[str]:
    if tokens is None:
        return [str(position) for position in range(count)]
    if len(tokens) != count:
        raise TraceError(f"{argument}: {len(tokens)} texts, but the model attended to {count} positions")
    return list(tokens)
