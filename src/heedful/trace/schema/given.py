"""Traces of attention weights that somebody else recorded: tuples of tensors, as `output_attentions` returns them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from heedful.errors import TraceError
from heedful.trace.schema.info import ModelInfo
from heedful.trace.schema.side import side_from_words
from heedful.trace.schema.site import Mass, SideName, SiteKind, SiteRecord
from heedful.trace.schema.step import Step
from heedful.trace.schema.tensor import PackedTensor

NOTHING = (
    "{name} is empty: the model returned no weights. transformers returns none with its default implementation; load"
    ' the model with attn_implementation="eager", or use heedful.from_transformers, which records any'
)


class GivenSite(NamedTuple):
    """The weights (query, head, key) of a site, and where its queries and keys are."""

    name: str
    kind: SiteKind
    weights: np.ndarray
    sides: tuple[SideName, SideName]


def given_fields(
    sites: Sequence[GivenSite], source: Sequence[str], target: Sequence[str], alignment_site: str, model: ModelInfo
) -> dict[str, Any]:
    """Return the fields of a trace of given weights."""
    lengths = {"source": len(source), "target": len(target)}
    tensors: dict[str, PackedTensor] = {}
    records = []
    for site in sites:
        expected = tuple(lengths[side] for side in site.sides)
        if site.weights.shape[::2] != expected:
            raise TraceError(
                f"{site.name}: weights for {site.weights.shape[0]} queries and {site.weights.shape[2]} keys,"
                f" but there are {expected[0]} and {expected[1]} tokens"
            )
        if not np.isfinite(site.weights).all():
            raise TraceError(f"{site.name}: weights must be finite, got NaN or infinity")
        sums = site.weights.sum(axis=-1)
        mass: Mass = "one" if np.allclose(sums[sums > 0], 1, atol=1e-3) else "free"
        axes = (site.sides[0][0].upper(), "H", site.sides[1][0].upper())
        tensors[f"{site.name}/weights"] = PackedTensor.pack(site.weights, *axes)
        records.append(
            SiteRecord(
                site=site.name,
                kind=site.kind,
                heads=site.weights.shape[1],
                mass=mass,
                query_side=site.sides[0],
                key_side=site.sides[1],
                weights=f"{site.name}/weights",
            )
        )
    is_cross = any(site.kind == "cross" for site in sites)
    return {
        "model": model,
        "source": side_from_words(source),
        "target": side_from_words(target),
        "steps": [Step(logp=0.0) for _ in target],
        "sites": records,
        "alignment_site": alignment_site,
        "shift": 1 if is_cross else 0,
        "tensors": tensors,
    }


def attention_fields(
    attentions: Any,
    tokens: Sequence[str],
    *,
    target_tokens: Sequence[str] | None,
    decoder_attentions: Any,
    cross_attentions: Any,
    model: str,
) -> dict[str, Any]:
    """Return the fields of a trace from tuples of tensors, one per layer."""
    groups: list[tuple[str, str, SiteKind, Any, tuple[SideName, SideName]]]
    if cross_attentions is None:
        if decoder_attentions is not None or target_tokens is not None:
            raise TraceError("decoder_attentions, target_tokens: they belong to a model with cross_attentions")
        groups = [("attentions", "enc.{}.self", "self", attentions, ("source", "source"))]
        target = tokens
    else:
        if target_tokens is None:
            raise TraceError("target_tokens: the tokens of the output are needed for cross_attentions")
        groups = [
            ("attentions", "enc.{}.self", "self", attentions, ("source", "source")),
            ("decoder_attentions", "dec.{}.self", "self", decoder_attentions, ("target", "target")),
            ("cross_attentions", "dec.{}.cross", "cross", cross_attentions, ("target", "source")),
        ]
        target = target_tokens
    sites = [
        GivenSite(name.format(depth), kind, weights, sides)
        for argument, name, kind, given, sides in groups
        if given is not None
        for depth, weights in enumerate(_layers(given, argument))
    ]
    causal = cross_attentions is None and all(np.triu(s.weights.max(axis=1), 1).max(initial=0) < 1e-6 for s in sites)
    if causal:  # a decoder that reads: its sites are those of a decoder
        sites = [site._replace(name=site.name.replace("enc.", "dec.")) for site in sites]
    info = ModelInfo(name=model, task="read" if causal else "translate" if cross_attentions is not None else "given")
    return given_fields(sites, tokens, target, sites[-1].name, info)


def _layers(given: Any, argument: str) -> list[np.ndarray]:
    """Return the weights (query, head, key) of every layer, of tensors (1, head, query, key) or (head, query, key)."""
    if hasattr(given, "shape"):
        given = list(given) if len(given.shape) > 3 else [given]
    if isinstance(given, Mapping) or not isinstance(given, Sequence) or len(given) == 0 or given[0] is None:
        raise TraceError(NOTHING.format(name=argument))
    if isinstance(given[0], list | tuple):  # of `generate`: steps, then layers
        return _join_steps(given, argument)
    return [_layer(layer, argument) for layer in given]


def _layer(tensor: Any, argument: str) -> np.ndarray:
    array = np.asarray(tensor.detach().cpu().float() if hasattr(tensor, "detach") else tensor, dtype=np.float32)
    if array.ndim == 4 and array.shape[0] == 1:
        array = array[0]
    if array.ndim != 3:
        what = "several rows of a batch: pass one, as layer[i : i + 1]" if array.ndim == 4 else "not (head, query, key)"
        raise TraceError(f"{argument}: weights of shape {array.shape}, {what}")
    return np.ascontiguousarray(array.transpose(1, 0, 2))


def _join_steps(steps: Sequence[Any], argument: str) -> list[np.ndarray]:
    """Join what `generate` returns: for every step a tuple of layers (row, head, 1, key)."""
    layers = [[_layer(layer, f"{argument} of generate") for layer in step] for step in steps]
    width = max(step[0].shape[2] for step in layers)
    joined = []
    for depth in range(len(layers[0])):
        rows = [np.pad(step[depth], ((0, 0), (0, 0), (0, width - step[depth].shape[2]))) for step in layers]
        joined.append(np.concatenate(rows, axis=0))
    return joined
