"""The attention sites of a transformers model: which modules they are, and their names.

Sites are found by the identity of modules, because `layer_idx` is not set in every model. They are named as in our own
models: `enc.0.self`, `dec.0.self`, `dec.0.cross`, counted from the input.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, NamedTuple

from torch import nn
from transformers import PreTrainedModel

from heedful.errors import ModelError
from heedful.trace.schema import Site

Stack = Literal["enc", "dec"]
INTERFACE = re.compile(r"attention_interface|ALL_ATTENTION_FUNCTIONS")
COMPUTES_WEIGHTS = re.compile(r"softmax", re.IGNORECASE)
CROSS = re.compile(r"encoder_attn|encoder_attention|cross_?att|encdecattention|enc_dec", re.IGNORECASE)
HEADS = ("num_heads", "num_attention_heads", "n_heads", "n_head")
FALLBACK = ("BlipTextSelfAttention", "BlipAttention")  # recorded by `fallback.py`


class ModelSite(NamedTuple):
    """A site, the module that computes it, and in which stack it is."""

    site: Site
    module: nn.Module
    path: str  # of the module in the model
    stack: Stack

    @property
    def id(self) -> str:
        return self.site.id


class Stacks(NamedTuple):
    """The parts of a model; an encoder-only or decoder-only model has one."""

    encoder: nn.Module | None
    decoder: nn.Module | None


def find_sites(model: PreTrainedModel, stacks: Stacks) -> tuple[ModelSite, ...]:
    """Return every attention site, in the order of the modules; raise ModelError for attention we cannot record."""
    counts: dict[tuple[Stack, str], int] = {}
    sites: list[ModelSite] = []
    refused: dict[str, str] = {}
    stack_of = _stack_by_module(stacks)
    for path, module in model.named_modules():
        module_class: Any = type(module)
        name = module_class.__name__
        if not _computes_attention(module_class) and name not in FALLBACK:
            if _is_other_attention(module_class):
                refused.setdefault(name, path)
            continue
        stack = stack_of.get(id(module))
        if stack is None:  # such as the vision tower of a model whose text we read
            continue
        kind: Literal["cross", "self"] = "cross" if _is_cross(path, module) else "self"
        number = counts.get((stack, kind), 0)
        counts[stack, kind] = number + 1
        site = Site(f"{stack}.{number}.{kind}", kind, count_heads(module), "one")
        sites.append(ModelSite(site, module, path, stack))
    if refused or not sites:
        raise ModelError(_refusal(model, refused))
    return tuple(sites)


def _stack_by_module(stacks: Stacks) -> Mapping[int, Stack]:
    """Return the stack of every module; a decoder inside of which the encoder is, loses to it."""
    by_module: dict[int, Stack] = {}
    if stacks.decoder is not None:
        by_module.update((id(module), "dec") for module in stacks.decoder.modules())
    if stacks.encoder is not None:
        by_module.update((id(module), "enc") for module in stacks.encoder.modules())
    return by_module


def _is_cross(path: str, module: nn.Module) -> bool:
    return bool(CROSS.search(path)) or bool(getattr(module, "is_cross_attention", False))


def count_heads(module: nn.Module) -> int:
    """Return the number of heads of an attention module."""
    for owner in (module, getattr(module, "config", None)):
        for name in HEADS:
            heads = getattr(owner, name, None)
            if isinstance(heads, int):
                return heads
    raise ModelError(f"{type(module).__name__}: its number of heads is not known")


@cache
def _computes_attention(module_class: Any) -> bool:
    """Return whether a module calls the attention interface of transformers."""
    return bool(INTERFACE.search(_forward_source(module_class)))


@cache
def _is_other_attention(module_class: Any) -> bool:
    """Return whether a module computes attention by itself, past the interface."""
    is_named = "attention" in module_class.__name__.lower() and "pool" not in module_class.__name__.lower()
    is_own = module_class.__module__.startswith("torch.")
    return is_named and not is_own and bool(COMPUTES_WEIGHTS.search(_class_source(module_class)))


def _forward_source(module_class: Any) -> str:
    try:
        return inspect.getsource(module_class.forward)
    except (OSError, TypeError):  # no source, as in a console
        return ""


def _class_source(module_class: Any) -> str:
    try:
        return inspect.getsource(module_class)
    except (OSError, TypeError):
        return ""


def _refusal(model: PreTrainedModel, refused: Mapping[str, str]) -> str:
    name = type(model).__name__
    if not refused:
        return (
            f"{name}: no attention that can be recorded; models whose attention uses AttentionInterface are supported"
        )
    listed = ", ".join(f"{cls} ({path})" for cls, path in refused.items())
    return (
        f"{name}: its attention cannot be recorded, because it bypasses the AttentionInterface of transformers:"
        f" {listed}; Trace.from_attentions takes weights that you recorded yourself"
    )
