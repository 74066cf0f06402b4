"""Attention modules that bypass the attention interface of transformers, recorded by a hook on the module.

The hook receives the weights that the module returns and its inputs. It works without a key/value cache only, which is
how outputs are recorded: all steps at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from heedful.attention.recording import current_recording
from heedful.errors import ModelError
from heedful.integrations.transformers.attention_function import ModelRecording, edit_weights, record_output
from heedful.integrations.transformers.sites import FALLBACK, ModelSite


@contextmanager
def record_fallback(sites: Sequence[ModelSite]) -> Iterator[None]:
    """Record the modules among `sites` that bypass the interface, while the block runs."""
    modules = [site.module for site in sites if type(site.module).__name__ in FALLBACK]
    with ExitStack() as stack:
        for module in modules:
            stack.callback(module.register_forward_hook(_hook, with_kwargs=True).remove)
        yield


class _Parts(NamedTuple):
    """What an attention module computes from its inputs: (batch, head, position, width) each, and its mask."""

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None
    join: Callable[[Tensor], Tensor]  # from the joined heads to the output


def _hook(module: nn.Module, arguments: tuple[Any, ...], options: Mapping[str, Any], output: Any) -> Any:
    recording = current_recording(module)
    if recording is None:
        return None
    assert isinstance(recording, ModelRecording)
    if options.get("past_key_values") is not None:
        raise ModelError(f"{type(module).__name__} can be recorded without a key/value cache only")
    hidden = arguments[0] if arguments else options["hidden_states"]
    parts = PARTS[type(module).__name__](module, hidden, options)
    scores = parts.query @ parts.key.transpose(2, 3) * parts.query.shape[-1] ** -0.5
    weights: Tensor = output[1]
    allowed = None
    if parts.mask is not None:
        allowed = (parts.mask > torch.finfo(parts.mask.dtype).min / 2).expand(len(weights), 1, *scores.shape[2:])
    edited = edit_weights(recording, module, weights, scores, allowed)
    contexts = (edited @ parts.value).transpose(1, 2)
    record_output(recording, module, parts[:3], (scores, edited, allowed), contexts)
    return None if edited is weights else (parts.join(contexts.flatten(2)), edited, *output[2:])


def _blip_text(module: Any, hidden: Tensor, options: Mapping[str, Any]) -> _Parts:
    encoder = options.get("encoder_hidden_states")
    mask = options.get("attention_mask" if encoder is None else "encoder_attention_mask")
    source = hidden if encoder is None else encoder
    heads = module.num_attention_heads
    query, key, value = (
        _by_head(part, heads) for part in (module.query(hidden), module.key(source), module.value(source))
    )
    return _Parts(query, key, value, mask, lambda joined: joined)


def _blip_vision(module: Any, hidden: Tensor, _: Mapping[str, Any]) -> _Parts:
    query, key, value = (_by_head(x, module.num_heads) for x in module.qkv(hidden).chunk(3, dim=-1))
    return _Parts(query, key, value, None, module.projection)


def _by_head(tensor: Tensor, heads: int) -> Tensor:
    return tensor.view(*tensor.shape[:-1], heads, -1).transpose(1, 2)


PARTS: Mapping[str, Callable[[Any, Tensor, Mapping[str, Any]], _Parts]] = {
    "BlipTextSelfAttention": _blip_text,
    "BlipAttention": _blip_vision,
}
