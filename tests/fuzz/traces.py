"""Cases of traces, shown in the terminal, exported, drawn or written as a page."""

from __future__ import annotations

import base64
import gzip
import json
import struct
from functools import cache
from random import Random
from typing import Any

from fuzz.case import Case
from fuzz.corpus import Corpus
from fuzz.mutate import mutate_bytes, mutate_tree, odd_string

VIEWS = ("alignment", "lines", "heads", "steps", "beam", "photo", "words", "arcs", "history")
SITES = ("dec.0.cross", "cross", "enc.0.self", "dec.1.cross", "pool", "x", "")
FLOATS = (float("nan"), float("inf"), -float("inf"), 3e38, -3e38, 1e-45, -1.0, 2.0, 0.0)


def trace_case(corpus: Corpus, rng: Random) -> Case:
    """Return a changed trace and a way to show it."""
    data = mutate_trace(corpus.traces[rng.choice(sorted(corpus.traces))], rng)
    name = "t.json"
    if rng.random() < 0.15:
        data, name = gzip.compress(data, 1, mtime=0), "t.json.gz"
        data = mutate_bytes(data, rng) if rng.random() < 0.3 else data
    options = _options(rng)
    out: tuple[str, ...] = ()
    choice = rng.random()
    if choice < 0.35:
        out = (f"o{rng.choice(('.csv', '.npz', '.links', '.html'))}",)
    elif choice < 0.37:
        out = (f"o{rng.choice(('.png', '.svg', '.pdf', '.xyz', ''))}",)
    files = {name: data}
    if out and rng.random() < 0.2:  # files of the user, under the names that a draft might take
        files |= {rng.choice((out[0], "o.tmp" + out[0][1:])): b"notes of the user"}
    argv = ("show", name, *options, *(("-o", out[0]) if out else ()))
    return Case("trace", argv, files, outputs=out)


def trace_bomb_case(corpus: Corpus, rng: Random) -> Case:
    """Return a small gzip file that is a very long trace."""
    blank = _blanks(32 if rng.random() < 0.5 else 1)
    data = gzip.compress(corpus.traces[rng.choice(sorted(corpus.traces))], mtime=0)
    return Case("bomb", ("show", "t.json.gz"), {"t.json.gz": data + blank * 4})


@cache
def _blanks(times: int) -> bytes:
    return gzip.compress(b" " * (1 << 24), 1, mtime=0) * times


def _options(rng: Random) -> tuple[str, ...]:
    options: list[str] = []
    if rng.random() < 0.4:
        options += ["--view", rng.choice(VIEWS)]
    if rng.random() < 0.2:
        options += ["--site", rng.choice(SITES)]
    if rng.random() < 0.15:
        options += ["--head", str(rng.choice((0, 1, 2, 99, 2**63, 2**70)))]
    options += [flag for flag in ("--subwords", "--no-special-tokens") if rng.random() < 0.15]
    if rng.random() < 0.1:
        options += ["--link-method", rng.choice(("naive", "shift", "shared", "x"))]
    return tuple(options)


def mutate_trace(data: bytes, rng: Random) -> bytes:
    """Change the structure, the numbers or the bytes of a trace."""
    if rng.random() < 0.1:
        return mutate_bytes(data, rng, rng.choice((1, 1, 3)))
    tree: Any = json.loads(data)
    choice = rng.random()
    if choice < 0.45:
        _change_tensor(tree, rng)
    if 0.25 < choice < 0.7:
        _change_words(tree, rng)
    if choice > 0.6:
        tree = mutate_tree(tree, rng, rng.choice((1, 1, 2, 3)))
    return json.dumps(tree).encode("utf-8")


def _change_tensor(tree: Any, rng: Random) -> None:
    """Put an extreme number into a tensor, or give it another shape of the same size."""
    name = rng.choice(sorted(tree["tensors"]))
    tensor = tree["tensors"][name]
    raw = bytearray(base64.b64decode(tensor["data"]))
    if tensor["dtype"] == "f4" and len(raw) >= 4:
        for _ in range(rng.choice((1, 3, len(raw) // 4))):
            struct.pack_into("<f", raw, 4 * rng.randrange(len(raw) // 4), rng.choice(FLOATS))
        tensor["data"] = base64.b64encode(bytes(raw)).decode("ascii")
    if rng.random() < 0.3:
        tensor["shape"] = rng.choice(
            (tensor["shape"][::-1], [*tensor["shape"], 1], [0], [2**62, 4, 2**3], [-1], [2**32, 2**32])
        )
        tensor["dims"] = ["T"] * len(tensor["shape"]) if rng.random() < 0.8 else tensor["dims"]


def _change_words(tree: Any, rng: Random) -> None:
    """Replace words and tokens by odd strings."""
    side = tree[rng.choice(("source", "target"))]
    for _ in range(rng.choice((1, 2, 5))):
        if side.get("words"):
            side["words"][rng.randrange(len(side["words"]))] = odd_string(rng)
        if side.get("tokens"):
            side["tokens"][rng.randrange(len(side["tokens"]))]["text"] = odd_string(rng)
