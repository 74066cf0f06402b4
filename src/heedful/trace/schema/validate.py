"""The checks of a whole trace. They run once, when it is made or loaded, so that views need none of their own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.trace.schema.fold import NO_WORD
from heedful.trace.schema.side import Side
from heedful.trace.schema.site import SiteRecord
from heedful.trace.schema.step import BeamTree

if TYPE_CHECKING:
    from heedful.trace.schema.trace import Trace

MAX_TOKENS = 10_000  # per side; weights grow with the square
MAX_ITEMS: Mapping[tuple[str, ...], int] = {  # lists of a file -> how many entries
    ("source", "tokens"): MAX_TOKENS,
    ("source", "words"): MAX_TOKENS,
    ("target", "tokens"): MAX_TOKENS,
    ("target", "words"): MAX_TOKENS,
    ("steps",): MAX_TOKENS,
    ("sites",): 1_000,
    ("tensors",): 20_000,
    ("beam", "nodes"): 100_000,
    ("edits",): 10_000,
}
MAX_WEIGHT = 1e6
MAX_NAME = 200  # letters
SENTENCE_ENDS = "sentence_ends"  # tensor: which words are the last of their sentence
TERMS = (  # tensors with one row per output token
    "output/terms",
    "output/bias",
    "output/logit",
    "output/log_sum",
    "read_out/terms",
    "read_out/sum",
)


def check_counts(tree: Mapping[str, Any]) -> None:
    """Raise ValueError if a list of a trace is too long; this needs no records and no arrays."""
    for path, limit in MAX_ITEMS.items():
        part: Any = tree
        for name in path:
            part = part.get(name) if isinstance(part, Mapping) else None
        if isinstance(part, list | dict) and len(part) > limit:
            raise ValueError(f"{'.'.join(path)} has {len(part):,} entries, more than {limit:,}")


def check_trace(trace: Trace) -> None:
    """Raise ValueError if the parts of a trace do not belong together, or a number is not finite."""
    lengths = {"source": len(trace.source.tokens), "target": len(trace.target.tokens)}
    for name, length in lengths.items():
        if length > MAX_TOKENS:
            raise ValueError(f"{name}.tokens has {length:,} entries, more than {MAX_TOKENS:,}")
    if len(trace.steps) != lengths["target"]:
        raise ValueError(f"{lengths['target']} output tokens but {len(trace.steps)} steps")
    names = {record.site for record in trace.sites}
    if len(names) != len(trace.sites):
        raise ValueError("two sites have the same name")
    for record in trace.sites:
        _check_site(trace, record, lengths)
    if trace.alignment_site is not None and trace.alignment_site not in names:
        raise ValueError(f"alignment_site names the site {trace.alignment_site}, which is not in the trace")
    image = trace.source.image
    if image is not None and image.grid[0] * image.grid[1] != lengths["source"]:
        raise ValueError(f"{lengths['source']} regions do not fill a grid of {image.grid}")
    for side in (trace.source, trace.target):
        _check_words(side)
    _check_named_tensors(trace, lengths)
    _check_numbers(trace)
    for counterfactual in trace.counterfactuals:
        inside = 0 <= counterfactual.step < lengths["target"] and 0 <= counterfactual.position < lengths["source"]
        if not inside:
            where = f"step {counterfactual.step}, position {counterfactual.position}"
            raise ValueError(f"a counterfactual of {where}, which the trace does not have")
    if trace.beam is not None:
        _check_beam(trace, trace.beam, lengths["source"])


def _check_words(side: Side) -> None:
    if any(not NO_WORD <= token.word < len(side.words) for token in side.tokens):
        raise ValueError("a token belongs to a word that does not exist")


def _check_site(trace: Trace, record: SiteRecord, lengths: Mapping[str, int]) -> None:
    n_queries, n_keys = lengths[record.query_side], lengths[record.key_side]
    expected = [n_queries, record.heads, n_keys]
    for name in (record.weights, record.scores):
        if name is not None and (shape := _shape(trace, name)) != expected:
            raise ValueError(f"site {record.site}: {name} of shape {shape}, expected {expected}")
    widths = {  # tensor -> how many vectors it holds, at least; a single head may have no axis
        record.query: n_queries,
        record.values: n_keys * record.heads,
        record.context: n_queries * record.heads,
    }
    for name, n_vectors in widths.items():
        if name is not None and math.prod(shape := _shape(trace, name)) % n_vectors:
            raise ValueError(f"site {record.site}: {name} of shape {shape} does not hold {n_vectors} vectors")
    sizes: dict[str | None, int] = dict.fromkeys(record.extras.values(), n_queries * record.heads)
    sizes[record.keep] = n_keys
    for name, size in sizes.items():
        if name is not None and math.prod(shape := _shape(trace, name)) != size:
            raise ValueError(f"site {record.site}: {name} of shape {shape} does not hold {size} numbers")
    for name, n_rows in (("score_query", n_queries), ("score_keys", n_keys)):  # what the scores are made of
        terms = trace.tensors.get(f"{record.site}/{name}")
        if terms is not None and (len(terms.shape) != 3 or terms.shape[:2] != [n_rows, record.heads]):
            raise ValueError(f"{record.site}/{name} of shape {terms.shape}, expected [{n_rows}, {record.heads}, any]")
    _check_keys_from(trace, record)


def _check_keys_from(trace: Trace, record: SiteRecord) -> None:
    """Check the site whose contexts are the keys of this one: it must exist and have keys of its own."""
    if record.keys_from is None:
        return
    inner = next((other for other in trace.sites if other.site == record.keys_from), None)
    if inner is None or inner.keys_from is not None or (inner.query_side, inner.key_side) != (record.key_side,) * 2:
        raise ValueError(f"site {record.site}: its keys cannot come from {record.keys_from}")


def _check_named_tensors(trace: Trace, lengths: Mapping[str, int]) -> None:
    """Check the tensors that are named outside of sites, and all names."""
    for name in trace.tensors:
        if not name.isprintable() or not 0 < len(name) <= MAX_NAME or ".." in name or name.startswith("/"):
            raise ValueError(f'the name of a tensor, "{name[:MAX_NAME]}", cannot be used')
    for name in trace.intermediates.values():
        if math.prod(shape := _shape(trace, name)) % lengths["target"]:
            raise ValueError(f"{name} of shape {shape} does not hold {lengths['target']} vectors")
    for method, name in trace.attributions.items():
        if (shape := _shape(trace, name)) != (expected := [lengths["target"], lengths["source"]]):
            raise ValueError(f"{method}: {name} of shape {shape}, expected {expected}")
    for name in TERMS:
        terms = trace.tensors.get(name)
        if terms is not None and terms.shape[:1] != [lengths["target"]]:
            raise ValueError(f"{name} of shape {terms.shape} does not have {lengths['target']} rows")
    ends = trace.tensors.get(SENTENCE_ENDS)
    if ends is not None and math.prod(ends.shape) != lengths["source"]:
        raise ValueError(f"{SENTENCE_ENDS} of shape {ends.shape}, expected [{lengths['source']}]")


def _check_numbers(trace: Trace) -> None:
    """Check that every number is finite; only an attribution may be NaN, where it was not computed."""
    weights = {record.weights for record in trace.sites}
    attributions = set(trace.attributions.values()) - set(_site_tensors(trace))
    for name, tensor in trace.tensors.items():
        if tensor.dtype == "u1":
            continue
        array = tensor.array()
        bad = np.isinf(array) if name in attributions else ~np.isfinite(array)
        if bad.any():
            raise ValueError(f"{name} has numbers that are not finite (NaN or infinity)")
        if name in weights and (np.abs(array) > MAX_WEIGHT).any():
            raise ValueError(f"{name} has weights larger than {MAX_WEIGHT:,.0f}")


def _site_tensors(trace: Trace) -> Iterator[str]:
    for record in trace.sites:
        names = (record.weights, record.scores, record.query, record.values, record.context, record.keep)
        yield from (name for name in (*names, *record.extras.values()) if name is not None)


def _check_beam(trace: Trace, beam: BeamTree, n_source: int) -> None:
    """Check that the nodes are a tree: numbered in order, each after its parent and one step later."""
    steps = {-1: -1}
    for index, node in enumerate(beam.nodes):
        if node.id != index or node.parent not in steps or node.step != steps[node.parent] + 1:
            raise ValueError(f"beam.nodes.{index}: does not continue an earlier node")
        steps[index] = node.step
    if any(not 0 <= node < len(beam.nodes) for node in beam.best):
        raise ValueError("beam.best names a node that does not exist")
    if beam.weights is not None:
        shape = _shape(trace, beam.weights)
        if len(shape) != 3 or (shape[0], shape[2]) != (len(beam.nodes), n_source):
            raise ValueError(f"{beam.weights} of shape {shape}, expected [{len(beam.nodes)}, heads, {n_source}]")


def _shape(trace: Trace, name: str) -> list[int]:
    if name not in trace.tensors:
        raise ValueError(f"the tensor {name} is not in the trace")
    return trace.tensors[name].shape
