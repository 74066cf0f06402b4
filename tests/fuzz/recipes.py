"""Cases of recipes and overrides, read by `heedful check`."""

from __future__ import annotations

import json
import tomllib
from random import Random
from typing import Any

import tomli_w

from fuzz.case import Case
from fuzz.corpus import Corpus
from fuzz.mutate import mutate_bytes, mutate_tree, odd_number, odd_string

SECTIONS = (
    "task", "data", "data.world", "data.images", "data.ratings", "data.lm", "tokenizer", "model", "model.encoder",
    "model.decoder", "model.attention", "model.classifier", "model.recommender", "model.language_model", "training",
    "decoding",
)  # fmt: skip
KEYS = (
    "kind", "preset", "hidden", "heads", "layers", "dropout", "train", "backbone", "beam", "method", "epochs",
    "columns",
    "vocab_size", "learning_rate", "score", "init_from", "weights", "teachers", "threads", "where", "seed",
)  # fmt: skip
OTHER_FILES = (
    b"",
    b"\xff\xfe\x00",
    b"\xef\xbb\xbf[task]\n",
    b"x = " + b"[" * 3_000,
    b"a." * 2_000 + b"b = 1",
    b"[task\n",
    b"\x00" * 99,
)


def recipe_case(corpus: Corpus, rng: Random) -> Case:
    """Return a changed recipe, overrides, or both."""
    name = rng.choice(sorted(corpus.recipes))
    data = corpus.recipes[name]
    if rng.random() < 0.6:
        data = mutate_recipe(data, rng, rng.choice((1, 1, 2, 4)))
    elif rng.random() < 0.8:
        data = mutate_bytes(data, rng, rng.choice((1, 1, 3)))
    elif rng.random() < 0.5:
        data = rng.choice(OTHER_FILES)
    overrides = [override(rng) for _ in range(rng.choice((0, 0, 0, 1, 1, 2)))]
    return Case("recipe", ("check", "r.toml", *overrides), {"r.toml": data})


def mutate_recipe(data: bytes, rng: Random, times: int = 1) -> bytes:
    """Change values, keys and types of a recipe; what TOML cannot express is changed as text."""
    try:
        tree = tomllib.loads(data.decode("utf-8"))
        sections = [name for name in ("task", "data", "tokenizer", "model", "decoding") if tree.get(name)]
        if sections and rng.random() < 0.6:  # what a finished model is built from
            name = rng.choice(sections)
            tree[name] = mutate_tree(tree[name], rng, times)
        else:
            tree = mutate_tree(tree, rng, times)
        return tomli_w.dumps(tree).encode("utf-8")
    except (ValueError, TypeError, AttributeError, RecursionError):
        return mutate_bytes(data, rng, times)


def override(rng: Random) -> str:
    """Return an argument `section.key=value`, or something like it."""
    section = rng.choice(SECTIONS) if rng.random() < 0.9 else odd_string(rng)
    key = rng.choice(KEYS) if rng.random() < 0.9 else odd_string(rng)
    value: Any = rng.choice(
        (odd_number(rng), odd_string(rng), json.dumps(odd_string(rng)), "true", "[1, 2]", "{a=1}", '["x"]')
    )
    return clean_argument(f"{section}.{key}{rng.choice(('=', '=', '=', '=', '', '==', ' = '))}{value}")


def clean_argument(text: str) -> str:
    """Return text as an argument can be: without zero bytes, and not taken for an option."""
    text = text.replace("\x00", "")
    return f"x{text}" if text.startswith("-") else text
