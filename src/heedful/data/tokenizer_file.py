"""Checks a tokenizer file before the library reads it: only what `tokenizer_training.py` writes is accepted.

The library's format can express far more: padding to a billion tokens, replacements that multiply the text, regular
expressions that never end. Everything but the vocabulary is therefore compared with what heedful writes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from heedful.data.tokenizer_training import (
    BYTE_OF_CHARACTER,
    CHARACTER,
    SPACE,
    SPECIAL_NAMES,
    SPECIALS,
    SUBWORD_BOUNDARIES,
    UNK,
)

_ABSENT: Mapping[str, Any] = {
    "truncation": None,
    "padding": None,
    "added_tokens": [],
    "post_processor": None,
    "decoder": None,
}
_NORMALIZERS: Mapping[str, Sequence[Mapping[str, Any]]] = {  # after lower-casing and decomposition
    "word": [],
    "character": [{"type": "Replace", "pattern": {"Regex": f"[{SPACE}]"}, "content": " "}],
    "bytes": [{"type": "Prepend", "prepend": " "}],
}


def _split(regex: str, behavior: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior, "invert": False}


_PRE_TOKENIZERS: Mapping[str, Mapping[str, Any]] = {
    "word": _split(f"[{SPACE}]+", "Removed"),
    "character": _split(CHARACTER, "Isolated"),
    "bytes": {
        "type": "Sequence",
        "pretokenizers": [
            _split(SUBWORD_BOUNDARIES, "Isolated"),
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        ],
    },
}
_MODELS: Mapping[str, Mapping[str, Any]] = {  # without vocabulary and merges
    "WordLevel": {"type": "WordLevel", "unk_token": SPECIAL_NAMES[UNK]},
    "BPE": {
        "type": "BPE",
        **dict.fromkeys(("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix")),
        **dict.fromkeys(("fuse_unk", "byte_fallback", "ignore_merges"), False),
    },
    "Unigram": {"type": "Unigram", "unk_id": UNK, "byte_fallback": False},
}


def check_tokenizer(tree: Any) -> None:
    """Raise ValueError if the content of a tokenizer file is not what heedful writes."""
    if not isinstance(tree, dict) or not isinstance(tree.get("model"), dict):
        raise ValueError("it has no model")
    model = dict(tree["model"])
    vocabulary, merges = model.pop("vocab", None), model.pop("merges", None)
    kinds = ("word", "character") if model.get("type") == "WordLevel" else ("bytes",)
    frame = {key: value for key, value in tree.items() if key != "model"}
    if not any(_matches(frame, expected) for kind in kinds for expected in _frames(kind)):
        raise ValueError("its normalizer, its pre-tokenizer or another part is none that heedful writes")
    expected_model = _MODELS.get(model["type"] if isinstance(model.get("type"), str) else "")
    if expected_model is None or not _matches(model, expected_model):
        raise ValueError("its model is none that heedful writes")
    names = _names_by_id(vocabulary, model["type"])
    if tuple(names[: len(SPECIALS)]) != SPECIAL_NAMES:
        raise ValueError(f"its first ids are not {' '.join(SPECIALS)}")
    if kinds == ("bytes",) and not BYTE_OF_CHARACTER.keys() <= set(names):
        raise ValueError("its vocabulary does not contain all bytes")
    if (merges is not None) != (model["type"] == "BPE"):
        raise ValueError("merges belong to BPE")
    if merges is not None:
        _check_merges(merges, set(names))


def _frames(kind: str) -> list[dict[str, Any]]:
    """Return everything but the model, for each combination of lower-casing and decomposition."""
    steps = [[*lower, *decompose] for lower in ([], [{"type": "Lowercase"}]) for decompose in ([], [{"type": "NFD"}])]
    return [
        {
            "version": "1.0",
            **_ABSENT,
            "normalizer": {"type": "Sequence", "normalizers": [*first, *_NORMALIZERS[kind]]},
            "pre_tokenizer": _PRE_TOKENIZERS[kind],
        }
        for first in steps
    ]


def _matches(part: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    """Return whether a part is as expected; what is null, false or empty may be missing, as in older files."""
    needed = {key for key, value in expected.items() if value not in (None, False, [])}
    return needed <= part.keys() <= expected.keys() and all(_same(part[key], expected[key]) for key in part)


def _same(value: Any, expected: Any) -> bool:
    """Return whether two JSON values are equal, where 0 and 1 are not false and true."""
    return json.dumps(value, sort_keys=True) == json.dumps(expected, sort_keys=True)


def _names_by_id(vocabulary: Any, model: str) -> list[str]:
    """Return the tokens by their ids, which must be 0, 1, 2, ..."""
    if model == "Unigram":
        pairs: list[Any] = vocabulary if isinstance(vocabulary, list) else [None]
        if not all(isinstance(p, list) and len(p) == 2 and _is_number(p[1]) for p in pairs):
            raise ValueError("its vocabulary is not a list of subwords with their scores")
        names = [name for name, _ in pairs]
    else:
        ids: dict[str, Any] = vocabulary if isinstance(vocabulary, dict) else {"": None}
        if not all(type(i) is int for i in ids.values()) or sorted(ids.values()) != list(range(len(ids))):
            raise ValueError("the ids of its vocabulary are not 0, 1, 2, ...")
        names = sorted(ids, key=lambda name: int(ids[name]))
    if not all(isinstance(name, str) and name for name in names) or len(set(names)) != len(names):
        raise ValueError("its vocabulary contains an empty token, or one twice")
    return names


def _is_number(value: Any) -> bool:
    return type(value) is int if not isinstance(value, float) else math.isfinite(value)


def _check_merges(merges: Any, names: set[str]) -> None:
    if not isinstance(merges, list):
        raise ValueError("its merges are not a list")
    for merge in merges:
        pair = merge.split(" ") if isinstance(merge, str) else merge  # older versions of the library wrote "a b"
        if type(pair) is not list or len(pair) != 2 or type(pair[0]) is not str or type(pair[1]) is not str:
            raise ValueError("a merge is not a pair of subwords")
        if pair[0] not in names or pair[1] not in names or pair[0] + pair[1] not in names:
            raise ValueError("a merge has a subword that is not in the vocabulary")
