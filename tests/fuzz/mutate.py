"""Mutations of bytes, of trees (JSON, TOML) and of single values."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

NUMBERS: tuple[Any, ...] = (
    0, -1, 1, 2, 3, 7, 255, 256, 65_536, 10**6, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63),
    10**30, -(10**30), 0.0, -0.0, 0.5, 1.5, -1.5, 1e-320, 1e-45, 3.5e38, 1e308, -1e308,
    float("nan"), float("inf"), float("-inf"),
)  # fmt: skip
STRINGS = (
    "", " ", "\t", "\n", "\r\n", "\x00", "\x1b[31mred", "\x1b]52;c;aGVsbG8=\x07", "\x9b31m", "\x7f",
    "\u202eabc", "\u2028",
    "\ufeff", "\ufffe", "\U0010ffff", "e\u0301" * 3, "\u200b", "𝕳", "ﷺ" * 40, "漢字", "👩‍👩‍👧",
    "a" * 5_000, "<unk>", "</s>", "<s>",
    "../../outside/secret.tsv", "../outside/secret.tsv", "../../outside", "~", ".", "..", "/", "-", "--",
    "-1", "1e999", "nan", "null", "true",
    "stranger:Net", "stranger.evil:Net", "os:system", "http://127.0.0.1:9/x", "file:///etc/hostname",
    "data:x", "runs:x", "%s%n{}{0}",
    "[bold]x[/bold]", "[/x]", "<script>alert(1)</script>", "$x^{", "\\", "'\"", "é", "İ", "ß", "١٢", "²",
    "1_000", "0x10",
)  # fmt: skip
EXTREME_TEXTS = (
    b"0", b"-1", b"1e999", b"-1e999", b"NaN", b"Infinity", b"99999999999999999999", b"-9223372036854775809", b"1e308",
    b"0.1e-400", b"2147483648", b"4294967296", b"1000000000000", b"null", b"true", b'""', b"[]", b"{}",
)  # fmt: skip
NUMBER_PATTERN = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
Tree = Any


def odd_string(rng: Random) -> str:
    """Return a string that programs mistreat, or a few together."""
    text = rng.choice(STRINGS)
    return text + rng.choice(STRINGS)[:50] if rng.random() < 0.15 else text


def odd_number(rng: Random) -> Any:
    """Return an extreme number, or a small one."""
    return rng.choice(NUMBERS) if rng.random() < 0.8 else rng.randrange(-5, 3_000)


# Bytes


def mutate_bytes(data: bytes, rng: Random, times: int = 1) -> bytes:
    """Apply random mutations to bytes."""
    for _ in range(times):
        data = rng.choice(BYTE_MUTATORS)(data, rng)
    return data


def _span(data: bytes, rng: Random, longest: int = 200) -> tuple[int, int]:
    first = rng.randrange(len(data) + 1)
    return first, min(len(data), first + rng.randrange(1, longest))


def flip_bits(data: bytes, rng: Random) -> bytes:
    """Flip one to eight bits."""
    if not data:
        return b"\x00"
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def truncate(data: bytes, rng: Random) -> bytes:
    """Cut the end off."""
    return data[: rng.choice((0, 1, len(data) // 2, max(0, len(data) - 1), rng.randrange(len(data) + 1)))]


def splice(data: bytes, rng: Random) -> bytes:
    """Copy a part over another."""
    (first, last), at = _span(data, rng), rng.randrange(len(data) + 1)
    part = data[first:last]
    return data[:at] + part + data[at + len(part) :]


def duplicate(data: bytes, rng: Random) -> bytes:
    """Repeat a part."""
    first, last = _span(data, rng)
    return data[:last] + data[first:last] * rng.choice((1, 1, 2, 30)) + data[last:]


def delete(data: bytes, rng: Random) -> bytes:
    """Leave a part out."""
    first, last = _span(data, rng)
    return data[:first] + data[last:]


def insert(data: bytes, rng: Random) -> bytes:
    """Insert an odd string or random bytes."""
    at = rng.randrange(len(data) + 1)
    part = (
        odd_string(rng).encode("utf-8", "surrogatepass") if rng.random() < 0.7 else rng.randbytes(rng.randrange(1, 20))
    )
    return data[:at] + part + data[at:]


def replace_number(data: bytes, rng: Random) -> bytes:
    """Replace a number that is written in digits."""
    numbers = list(NUMBER_PATTERN.finditer(data[:200_000]))
    if not numbers:
        return flip_bits(data, rng)
    match = rng.choice(numbers)
    return data[: match.start()] + rng.choice(EXTREME_TEXTS) + data[match.end() :]


def mutate_line(data: bytes, rng: Random) -> bytes:
    """Drop, repeat, join or exchange lines."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    change = rng.randrange(5)
    if change == 0:
        del lines[at]
    elif change == 1:
        lines.insert(at, lines[at])
    elif change == 2:
        lines.insert(at, b"")
    elif change == 3:
        lines[at] = lines[at].replace(b"\t", rng.choice((b" ", b"", b"\t\t", b",")))
    else:
        other = rng.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    return b"\n".join(lines)


BYTE_MUTATORS: tuple[Callable[[bytes, Random], bytes], ...] = (
    flip_bits, truncate, splice, duplicate, delete, insert, replace_number, replace_number, mutate_line, mutate_line,
)  # fmt: skip


# Trees


def mutate_tree(tree: Tree, rng: Random, times: int = 1) -> Tree:
    """Return a changed copy of a tree of dictionaries, lists and values."""
    tree = copy.deepcopy(tree)
    for _ in range(times):
        places = list(_places(tree))
        if not places:
            return rng.choice(([], {}, "", 0, None))
        container, key = rng.choice(places)
        rng.choice(TREE_MUTATORS)(container, key, rng)
    return tree


def _places(tree: Tree, depth: int = 0) -> Iterator[tuple[Any, Any]]:
    """All pairs (container, key) of a tree; of long lists only the first elements."""
    if depth > 12:
        return
    keys: Any = tree if isinstance(tree, dict) else range(min(len(tree), 6)) if isinstance(tree, list) else ()
    for key in list(keys):
        yield tree, key
        yield from _places(tree[key], depth + 1)


def _replace_value(container: Any, key: Any, rng: Random) -> None:
    """Replace a value by an odd one of the same type."""
    value = container[key]
    if isinstance(value, bool):
        container[key] = rng.choice((not value, 0, 1, "true", None))
    elif isinstance(value, int | float):
        container[key] = odd_number(rng)
    elif isinstance(value, str):
        container[key] = odd_string(rng) if rng.random() < 0.7 else value[: len(value) // 2] + odd_string(rng)
    elif isinstance(value, list) and value:
        container[key] = rng.choice((value * 2, value[:-1], value[:1], [], value[::-1], [value], value * 40))
    else:
        _swap_type(container, key, rng)


def _swap_type(container: Any, key: Any, rng: Random) -> None:
    value = container[key]
    container[key] = rng.choice(
        (None, [], {}, "", 0, 1.5, True, [value], {"x": value}, str(value)[:50], odd_number(rng))
    )


def _drop(container: Any, key: Any, rng: Random) -> None:
    del container[key]


def _rename(container: Any, key: Any, rng: Random) -> None:
    value = container[key]
    if isinstance(container, dict):
        del container[key]
        container[rng.choice((f"{key}x", key[:-1], key.upper(), odd_string(rng)[:80]))] = value
    else:
        container.insert(rng.randrange(len(container) + 1), value)


def _add_key(container: Any, key: Any, rng: Random) -> None:
    value = copy.deepcopy(container[key])
    if isinstance(container, dict):
        container[odd_string(rng)[:80]] = value
    else:
        container.append(value)


def _exchange(container: Any, key: Any, rng: Random) -> None:
    other = rng.choice(list(container) if isinstance(container, dict) else range(len(container)))
    container[key], container[other] = container[other], container[key]


def _nest(container: Any, key: Any, rng: Random) -> None:
    nested: Any = container[key]
    as_list = rng.random() < 0.5
    for _ in range(rng.choice((1, 3, 60, 300))):
        nested = [nested] if as_list else {"x": nested}
    container[key] = nested


TREE_MUTATORS = (
    _replace_value, _replace_value, _replace_value, _replace_value, _replace_value, _swap_type, _drop,
    _rename, _add_key,
    _exchange, _nest,
)  # fmt: skip
