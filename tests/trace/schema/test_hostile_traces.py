"""Traces that were made to do harm: each is refused when it is loaded, with one message, and in little memory."""

from __future__ import annotations

import base64
import gzip
import json
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import small_models
from heedful.errors import DataError, TraceError
from heedful.trace.check import check
from heedful.trace.schema import PackedTensor, Trace, fold, read_links, to_npz, trace_links
from small_traces import subword_trace

Tree = dict[str, Any]
MEGABYTE = b" " * 1_000_000
STORED = Path(__file__).parents[2] / "stored" / "1" / "cgru.json"


def tree_of(trace: Trace) -> Tree:
    tree: Tree = json.loads(trace.model_dump_json(by_alias=True, exclude_none=True))
    return tree


def beam_tree() -> Tree:
    return tree_of(Trace.load(STORED))


def packed(values: Any, *dims: str) -> Tree:
    return PackedTensor.pack(np.asarray(values, dtype=np.float32), *dims).model_dump()


def set_at(path: str, value: Any) -> Callable[[Tree], None]:
    """Return a function that sets one value of a tree; the path has spaces between names and list indices."""

    def change(tree: Tree) -> None:
        *above, last = (int(name) if name.isdigit() else name for name in path.split(" "))
        node: Any = tree
        for name in above:
            node = node[name]
        node[last] = value

    return change


IMAGE = {"data_uri": "data:image/png;base64,AAAA", "width": 8, "height": 8, "grid": [2, 2]}
BAD_VALUES: list[tuple[str, Any, str]] = [
    ("tensors weights shape", [2**62, 4, 2**3], "less than or equal to 2147483648"),
    ("tensors weights shape", [2**31, 2**31, 4], "bytes of data, but shape"),
    ("tensors weights shape", [-4, 1, -4], "greater than or equal to 0"),
    ("tensors weights shape", [10**30], "less than or equal to 2147483648"),
    ("tensors weights shape", [1] * 100, "at most 8 items"),
    ("tensors weights data", "ä" * 4, "not base64"),
    ("tensors weights", packed(np.full((4, 1, 4), np.nan), "T", "H", "S"), "weights has numbers that are not finite"),
    ("tensors weights", packed(np.full((4, 1, 4), np.inf), "T", "H", "S"), "weights has numbers that are not finite"),
    ("tensors weights", packed(np.full((4, 1, 4), 3e38), "T", "H", "S"), "weights larger than 1,000,000"),
    ("tensors ../x", packed([1.0], "d"), "name of a tensor"),
    ("tensors a\x1b", packed([1.0], "d"), "name of a tensor"),
    ("tensors sentence_ends", packed([1.0], "S"), r"sentence_ends of shape \[1\], expected \[4\]"),
    ("steps 0 logp", 1e300, "less than or equal to 0.001"),
    ("steps 0 logp", float("nan"), "finite number"),
    ("steps 0 rank", 10**40, "less than or equal to 9007199254740991"),
    ("source tokens 0 word", 10**40, "less than or equal to 9007199254740991"),
    ("source tokens 0 word", -2, "a token belongs to a word that does not exist"),
    ("source tokens 0 text", 7, "valid string"),
    ("source words 0", None, "valid string"),
    ("source image", {**IMAGE, "width": 10**30}, "less than or equal to 10000"),
    ("source image", {**IMAGE, "grid": [-2, -2]}, "greater than or equal to 1"),
    (
        "source image",
        {**IMAGE, "data_uri": "https://example.org/x.png"},
        "expected an image that starts with data:image",
    ),
    ("source image", {**IMAGE, "data_uri": "data:text/html;base64,AAAA"}, "expected an image that starts with"),
    ("source image", {**IMAGE, "data_uri": "data:image/png;base64,=!"}, "the image is not base64"),
    (
        "source image",
        {**IMAGE, "data_uri": "data:image/png;base64," + "A" * 16_000_004},
        "16,000,004 letters of base64",
    ),
    ("sites 0 heads", 10**9, "less than or equal to 1000"),
    ("sites 0 query", "none", "the tensor none is not in the trace"),
    ("sites 0 keep", "weights", "does not hold 4 numbers"),
    ("sites 0 extras", {"center": "none"}, "the tensor none is not in the trace"),
    ("intermediates", {"features": "none"}, "the tensor none is not in the trace"),
    ("attributions", {"leave-one-out": "weights"}, r"weights of shape \[4, 1, 4\], expected \[4, 4\]"),
    ("model settings", {"attention": "dot"}, "attention is not a section of settings"),
    ("shift", -1, "greater than or equal to 0"),
    ("shift", 10**20, "less than or equal to 100"),
    ("counterfactuals", [{"op": "zero", "step": 9, "position": 0, "tvd": 0, "top": []}], "a counterfactual of step 9"),
]


@pytest.mark.parametrize(("path", "value", "message"), BAD_VALUES)
def test_a_value_that_no_view_can_show_is_refused(tmp_path: Path, path: str, value: Any, message: str) -> None:
    tree = tree_of(small_models.small_trace())
    set_at(path, value)(tree)
    (tmp_path / "t.json").write_text(json.dumps(tree))
    with pytest.raises(TraceError, match=message):
        Trace.load(tmp_path / "t.json")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("beam nodes 1 parent", 999, "beam.nodes.1: does not continue an earlier node"),
        ("beam nodes 1 parent", 1, "beam.nodes.1: does not continue an earlier node"),
        ("beam nodes 1 step", 10**12, "beam.nodes.1: does not continue an earlier node"),
        ("beam nodes 1 id", 0, "beam.nodes.1: does not continue an earlier node"),
        ("beam best", [10**9], "beam.best names a node that does not exist"),
        ("beam best", [-1], "beam.best names a node that does not exist"),
        ("beam beam_size", 10**9, "less than or equal to 1000"),
        ("beam weights", "none", "the tensor none is not in the trace"),
    ],
)
def test_a_beam_that_is_no_tree_is_refused(tmp_path: Path, path: str, value: Any, message: str) -> None:
    tree = beam_tree()
    set_at(path, value)(tree)
    (tmp_path / "t.json").write_text(json.dumps(tree))
    with pytest.raises(TraceError, match=message):
        Trace.load(tmp_path / "t.json")


def test_two_sites_of_one_name_are_refused() -> None:
    tree = tree_of(small_models.small_trace())
    with pytest.raises(ValueError, match="two sites have the same name"):
        Trace.model_validate(tree | {"sites": tree["sites"] * 2})


def peak_of(load: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        load()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several gzip members, which together hold far more than the limit."""
    monkeypatch.setenv("HEEDFUL_MAX_TRACE_MB", "8")
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(MEGABYTE * 100, 1, mtime=0) * 10)

    def load() -> None:
        message = r"more than 8 MB decompressed; HEEDFUL_MAX_TRACE_MB sets another limit \(megabytes\)"
        with pytest.raises(TraceError, match=message):
            Trace.load(path)

    assert peak_of(load) < 40_000_000


def test_the_limit_can_be_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.json"
    small_models.small_trace().save(path)
    path.write_bytes(path.read_bytes() + MEGABYTE * 2)
    monkeypatch.setenv("HEEDFUL_MAX_TRACE_MB", "2")
    with pytest.raises(TraceError, match="more than 2 MB;"):
        Trace.load(path)
    monkeypatch.setenv("HEEDFUL_MAX_TRACE_MB", "3")
    assert Trace.load(path).id == small_models.small_trace().id
    monkeypatch.setenv("HEEDFUL_MAX_TRACE_MB", "many")
    with pytest.raises(TraceError, match='HEEDFUL_MAX_TRACE_MB = "many": expected a whole number'):
        Trace.load(path)


def test_values_and_entries_are_counted_before_they_are_made(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(b"[" + b"[]," * 2_000_000 + b"0]")
    assert peak_of(lambda: _refused(path, "4,000,001 JSON values, more than the 2,097,152")) < 20_000_000
    tree = tree_of(small_models.small_trace())
    tree["target"]["tokens"] *= 5_000
    path.write_text(json.dumps(tree))
    _refused(path, "target.tokens has 20,000 entries, more than 10,000")
    tree = tree_of(small_models.small_trace())
    tree["sites"] *= 2_000
    path.write_text(json.dumps(tree))
    _refused(path, "sites has 2,000 entries, more than 1,000")


def _refused(path: Path, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        Trace.load(path)


@pytest.mark.parametrize(
    "text", ['{"model": ' + "[" * 100_000, '{"schema": "attn-trace/1", "model": ' + '{"a":' * 5_000]
)
def test_deep_nesting_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.json").write_text(text)
    _refused(tmp_path / "t.json", "not a trace of schema")


@pytest.mark.parametrize("change", [{"model": 0.5}, {"decoding": [1]}, {"model": {"name": "m", "settings": "x"}}])
def test_settings_of_an_old_trace_that_are_none_are_refused(tmp_path: Path, change: Tree) -> None:
    (tmp_path / "t.json").write_text(json.dumps(json.loads(STORED.read_text()) | change))
    _refused(tmp_path / "t.json", f"not a trace of schema attn-trace/2: {next(iter(change))}")


def test_settings_as_deep_as_json_allows_are_read(tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(150):
        deep = {"a": deep}
    for schema in ("attn-trace/1", "attn-trace/2"):
        tree = tree_of(small_models.small_trace()) | {"schema": schema}
        if schema == "attn-trace/1":
            tree = json.loads(STORED.read_text())
        tree["model"]["settings"] = {"x": deep}
        (tmp_path / "t.json").write_text(json.dumps(tree))
        Trace.load(tmp_path / "t.json").save(tmp_path / "again.json")


def test_damaged_gzip_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.json.gz"
    small_models.small_trace().save(path)
    good = path.read_bytes()
    for position in range(0, len(good), 37):
        path.write_bytes(good[:position] + bytes([good[position] ^ 0xFF]) + good[position + 1 :])
        with suppress(TraceError):  # some bytes of a header mean nothing
            Trace.load(path)


def test_a_word_without_tokens_has_no_link_and_no_weight() -> None:
    tree = tree_of(subword_trace())
    for token in tree["target"]["tokens"]:
        token["word"] = 1 if token["word"] == 0 else token["word"]
    assert {target for _, target in trace_links(Trace.model_validate(tree))} == {1}
    assert fold(np.ones((2, 2)), [[], [0]], [[0, 1], []]).tolist() == [[0.0, 0.0], [2.0, 0.0]]


def test_long_sides_fold_in_little_memory() -> None:
    weights = np.ones((1, 10_000))
    positions = [[i] for i in range(10_000)]
    assert peak_of(lambda: fold(weights, [[0]], positions)) < 20_000_000


def test_arrays_of_one_name_and_huge_tokens_are_not_exported(tmp_path: Path) -> None:
    tree = tree_of(small_models.small_trace())
    for name in ("file", "source_tokens"):
        trace = Trace.model_validate(tree | {"tensors": tree["tensors"] | {name: packed([1.0], "d")}})
        with pytest.raises(TraceError, match=f'two arrays of the file would have the name "{name}"'):
            to_npz(trace, tmp_path / "t.npz")
    tree["source"]["tokens"][0]["text"] = "x" * 20_000_000
    with pytest.raises(TraceError, match="tokens of 20,000,000 letters are too long"):
        to_npz(Trace.model_validate(tree), tmp_path / "t.npz")


def test_files_of_links_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.links.gz"
    path.write_bytes(gzip.compress(MEGABYTE * 30, mtime=0))
    monkeypatch.setattr("heedful.trace.schema.links.MAX_BYTES", 10_000_000)
    with pytest.raises(DataError, match="more than 10 MB decompressed"):
        read_links(path)
    path.write_bytes(gzip.compress(b"0-0 1-1", mtime=0)[:-6] + b"xxxxxx")
    with pytest.raises(DataError, match="incomplete or damaged"):
        read_links(path)
    (tmp_path / "x.links").write_text("0-9999999999")
    with pytest.raises(DataError, match=r"line 1: .* no sentence has so many words"):
        read_links(tmp_path / "x.links")


def test_check_explains_what_it_cannot_recompute() -> None:
    tree = tree_of(small_models.small_trace())
    site, scores = tree["sites"][0], packed(np.full((4, 1, 4), 3e38), "T", "H", "S")
    tensors = tree["tensors"] | {"scores": scores}
    tree |= {"tensors": tensors, "sites": [{**site, "scores": "scores"}]}
    settings: Tree = {"attention": {"normalizer": "smoothed-softmax", "beta": 0.1}}
    with pytest.raises(TraceError, match="site cross: weights cannot be recomputed"):
        check(Trace.model_validate(tree | {"model": {"name": "m", "settings": settings}}))
    attentions: list[Tree] = [
        {"normalizer": "mine"},
        {"placement": "mine"},
        {"placement": "local-p"},
        {"normalizer": {}},
    ]
    for attention in attentions:
        model = {"name": "m", "settings": {"attention": attention}}
        assert check(Trace.model_validate(tree | {"model": model})).weights is None, "of a plugin"
    wide = {"c": packed(np.ones((4, 1, 3)), "T", "H", "d"), "v": packed(np.ones((4, 1, 2)), "S", "H", "d")}
    tree |= {"tensors": tensors | wide, "sites": [{**site, "context": "c", "values": "v"}]}
    with pytest.raises(TraceError, match="contexts of 3 numbers, values of 2"):
        check(Trace.model_validate(tree))


def test_numbers_that_are_not_finite_cannot_be_recorded() -> None:
    fields = dict(small_models.small_trace())
    fields["tensors"] = {"weights": PackedTensor.model_validate(packed(np.full((4, 1, 4), np.nan), "T", "H", "S"))}
    fields.pop("schema_")
    with pytest.raises(TraceError, match=r"the model's numbers cannot be recorded: .*weights has numbers that are not"):
        Trace.build(**fields)


def test_base64_of_one_letter_too_many_is_refused() -> None:
    with pytest.raises(ValueError, match="5 bytes of data, but shape"):
        PackedTensor(dtype="f4", shape=[1], dims=["d"], data=base64.b64encode(b"12345").decode())
