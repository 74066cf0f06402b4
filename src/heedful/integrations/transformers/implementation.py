"""Switch a model to our attention function while something is recorded, and back to the user's own.

transformers chooses the attention function by a name in the model's configs. Those are shared by all threads, so the
name is ours as long as any thread records; a call of another thread computes the same outputs and records nothing,
because what to record is in a context variable.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from torch import nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.configuration_utils import PreTrainedConfig
from transformers.masking_utils import eager_mask

from heedful.attention import AttentionOutput
from heedful.attention.recording import recording as set_recording
from heedful.integrations.transformers.attention_function import ModelRecording, recorded_attention

NAME = "heedful"
AttentionInterface.register(NAME, recorded_attention)
AttentionMaskInterface.register(NAME, eager_mask)  # without it, transformers silently drops every mask


@dataclass
class _Switched:
    """How many threads record a model, and the configs with the names of their own implementations."""

    users: int
    own: list[tuple[PreTrainedConfig, Any]]


_lock = threading.Lock()
_switched: WeakKeyDictionary[nn.Module, _Switched] = WeakKeyDictionary()


@contextmanager
def record_model(model: PreTrainedModel, recording: ModelRecording) -> Iterator[Mapping[str, list[AttentionOutput]]]:
    """Run the model with our attention function; yield the outputs by site, one per call."""
    with _our_implementation(model), set_recording(recording):
        yield recording.outputs


@contextmanager
def _our_implementation(model: PreTrainedModel) -> Iterator[None]:
    with _lock:
        switched = _switched.get(model)
        if switched is None:
            switched = _switched[model] = _Switched(0, [(c, c._attn_implementation_internal) for c in _configs(model)])
            for config, _ in switched.own:
                config._attn_implementation_internal = NAME
        switched.users += 1
    try:
        yield
    finally:
        with _lock:
            switched.users -= 1
            if not switched.users:
                for config, name in switched.own:
                    config._attn_implementation_internal = name
                del _switched[model]


def _configs(model: PreTrainedModel) -> list[PreTrainedConfig]:
    """Return every config that a module of the model reads its attention implementation from."""
    found = (getattr(module, "config", None) for module in model.modules())
    return list({id(config): config for config in found if isinstance(config, PreTrainedConfig)}.values())
