"""Attention scores in plain loops: every score function of a recipe, from a model's parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from heedful.trace.plain_math import Rows, Vector, add, affine, dot, relu, tanh

GetParameter = Callable[[str], Any]  # returns a parameter as nested lists, None if the model does not have it


def score_keys(name: str, query: Vector, keys: Rows, get: GetParameter, coverage: Vector) -> list[float]:
    """Return the score of each key. `coverage` is the weight that each key has had in the steps before."""
    if name == "dot":
        return [dot(query, key) for key in keys]
    if name == "scaled-dot":
        return [dot(query, key) / math.sqrt(len(query)) for key in keys]
    if name == "general":
        return [dot(query, affine(get("key.weight"), key)) for key in keys]
    if name == "location":
        by_position = affine(get("rows.weight"), query)
        return [by_position[i] if i < len(by_position) else 0.0 for i in range(len(keys))]
    if name == "additive":
        return _additive(query, keys, get, coverage)
    if name == "concat":
        v, weight = get("v"), get("both.weight")
        return [dot(v, tanh(affine(weight, [*query, *key]))) for key in keys]
    if name == "concat-relu":
        h, weight, bias = get("h"), get("both.weight"), get("both.bias")
        return [dot(h, relu(affine(weight, [*query, *key], bias))) for key in keys]
    if name == "prod-relu":
        h, weight, bias = get("h"), get("product.weight"), get("product.bias")
        products = ([q * k for q, k in zip(query, key, strict=True)] for key in keys)
        return [dot(h, relu(affine(weight, product, bias))) for product in products]
    raise ValueError(f"no plain score for {name}")


def _additive(query: Vector, keys: Rows, get: GetParameter, coverage: Vector) -> list[float]:
    """`v' tanh(W q + U k_i + b + w_c C_i)` (Bahdanau 2015; coverage: See 2017, eq. 11)."""
    v, w_c, bias = get("v"), get("w_c"), get("key.bias")
    projected_query = affine(get("query.weight"), query)
    scores = []
    for i, key in enumerate(keys):
        inner = add(projected_query, affine(get("key.weight"), key, bias))
        if w_c is not None:
            inner = add(inner, [weight * coverage[i] for weight in w_c])
        scores.append(dot(v, tanh(inner)))
    return scores
