"""Traces: saved and loaded exactly, checked when loaded, folded to words, exported."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import small_models
from heedful.errors import DataError, TraceError
from heedful.trace.schema import (
    PackedTensor,
    Site,
    SiteRecord,
    Step,
    Trace,
    format_links,
    read_links,
    to_csv,
    to_npz,
    trace_links,
)
from small_traces import subword_trace


def hierarchical_trace() -> Trace:
    """Words a b | c in two sentences: word weights .25 .75 | 1, sentence weights .4 | .6."""
    words = [[0, 0, 0], [0.25, 0.75, 0], [0, 0, 1.0]]
    site = {"kind": "pool", "heads": 1, "mass": "one"}
    tokens = [{"text": text, "word": i} for i, text in enumerate("abc")]
    tree: dict[str, Any] = {
        "model": {"name": "m", "task": "classify"},
        "source": {"text": "a b c", "words": list("abc"), "tokens": tokens},
        "target": {"text": "good", "words": ["good"], "tokens": [{"text": "good", "word": 0}]},
        "steps": [{"logp": -0.5}],
        "sites": [
            {**site, "site": "enc.words", "query_side": "source", "weights": "w"},
            {**site, "site": "pool", "weights": "p", "keys_from": "enc.words"},
        ],
        "alignment_site": "pool",
        "tensors": {
            "w": PackedTensor.pack(np.array(words)[:, None], "S", "H", "S").model_dump(),
            "p": PackedTensor.pack(np.array([[[0.0, 0.4, 0.6]]]), "T", "H", "S").model_dump(),
        },
    }
    return Trace.model_validate(tree)


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_a_trace_loads_as_it_was_saved(tmp_path: Path, name: str) -> None:
    trace = small_models.small_trace()
    trace.save(tmp_path / name)
    assert Trace.load(tmp_path / name) == trace
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{}", "not a trace of schema attn-trace/2: model: Field required"),
        (b"\xff\xfe", "not UTF-8"),
        (b'{"schema": "attn-trace/9"', "not a trace"),
        (gzip.compress(b"{}" * 100, mtime=0)[:-10], "the gzip file is incomplete"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "t.json").write_bytes(content)
    with pytest.raises(TraceError, match=message):
        Trace.load(tmp_path / "t.json")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read: No such file"):
        Trace.load(tmp_path / "t.json")


def test_inconsistent_shapes_are_refused() -> None:
    tree = small_models.small_trace().model_dump(by_alias=True)
    short = tree | {"source": tree["source"] | {"tokens": tree["source"]["tokens"][:-1]}}
    with pytest.raises(ValueError, match=r"site cross: weights of shape \[4, 1, 4\], expected \[4, 1, 3\]"):
        Trace.model_validate(short)
    with pytest.raises(ValueError, match="4 output tokens but 3 steps"):
        Trace.model_validate(tree | {"steps": tree["steps"][:-1]})
    with pytest.raises(ValueError, match="alignment_site names the site other, which is not in the trace"):
        Trace.model_validate(tree | {"alignment_site": "other"})
    with pytest.raises(ValueError, match="the tensor weights is not in the trace"):
        Trace.model_validate(tree | {"tensors": {}})
    no_words = tree["target"] | {"words": []}
    with pytest.raises(ValueError, match="a token belongs to a word that does not exist"):
        Trace.model_validate(tree | {"target": no_words})


def test_an_image_grid_must_match_the_regions() -> None:
    tree = small_models.small_trace().model_dump(by_alias=True)
    image = {"data_uri": "data:image/png;base64,AAAA", "width": 8, "height": 8, "grid": (2, 3)}
    with pytest.raises(ValueError, match=r"4 regions do not fill a grid of \(2, 3\)"):
        Trace.model_validate(tree | {"source": tree["source"] | {"image": image}})


def test_unknown_keys_are_read_over_and_not_kept() -> None:
    tree = small_models.small_trace().model_dump(by_alias=True) | {"added_later": 1}
    assert Trace.model_validate(tree) == small_models.small_trace().model_copy(update={"created": tree["created"]})


def test_the_id_is_a_hash_of_the_content() -> None:
    first, second = small_models.small_trace(), small_models.small_trace()
    assert first.id == second.id
    assert first.id.startswith("sha256:")
    changed = first.model_copy(update={"steps": [Step(logp=-1.0), *first.steps[1:]]}).with_id()
    assert changed.id != first.id


def test_matrices_of_other_shapes_are_refused() -> None:
    with pytest.raises(TraceError, match=r"weights of shape \(2, 2\), but 1 output and 2 source words need \(1, 2\)"):
        Trace.from_weights(["a", "b"], ["c"], np.eye(2))
    with pytest.raises(TraceError, match="weights must be finite"):
        Trace.from_weights(["a"], ["c"], [[float("nan")]])


def test_the_mass_of_a_matrix_follows_from_its_rows() -> None:
    assert Trace.from_weights(["a", "b"], ["c"], [[0.5, 0.5]]).site().mass == "one"
    assert Trace.from_weights(["a", "b"], ["c"], [[0.5, 0.9]]).site().mass == "free"


def test_a_site_is_found_by_name_and_the_nearest_is_suggested() -> None:
    trace = small_models.small_trace()
    assert trace.site("cross") == trace.site() == trace.find_site()
    assert trace.find_site("other") is None
    with pytest.raises(TraceError, match='the trace has no site "cros"; did you mean "cross"'):
        trace.site("cros")
    without = trace.model_copy(update={"sites": [], "alignment_site": None})
    with pytest.raises(TraceError, match="test has no attention over its input"):
        without.site()


def test_one_head_or_the_mean_of_all() -> None:
    trace = subword_trace()
    weights = trace.weights()
    np.testing.assert_array_equal(trace.matrix(head=1), weights[:, 1])
    np.testing.assert_allclose(trace.matrix(), weights.mean(axis=1))
    with pytest.raises(TraceError, match="there is no head 2; this site has heads 0 to 1"):
        trace.matrix(head=2)


def test_subwords_are_summed_as_keys_and_averaged_as_queries() -> None:
    trace = subword_trace()
    table, full = trace.table(), trace.matrix()
    assert (table.rows, table.columns) == (["Park", "ja", "</s>"], ["unread", "park.", "</s>"])
    assert table.weights[0, 1] == pytest.approx((full[0, 2:4].sum() + full[1, 2:4].sum()) / 2)
    assert np.allclose(table.weights.sum(axis=1), 1), "folding keeps the mass"
    assert table.gold == [(0, 1)]


def test_subwords_and_special_tokens_can_be_chosen() -> None:
    table = subword_trace().table(words=False, specials=False)
    assert (table.rows, table.columns) == (["▁Pa", "rk", "▁ja"], ["▁un", "read", "▁park", "."])
    assert table.gold == [], "gold links join words"


def test_a_word_weighs_its_share_of_its_sentence() -> None:
    trace = hierarchical_trace()
    np.testing.assert_allclose(trace.matrix(), [[0.1, 0.3, 0.6]], atol=1e-6)
    tree = trace.model_dump(by_alias=True)
    tree["sites"][1]["keys_from"] = "pool"
    with pytest.raises(ValueError, match="site pool: its keys cannot come from pool"):
        Trace.model_validate(tree)


@pytest.mark.parametrize(
    ("task", "row", "column"),
    [
        ("translate", "output words", "input words"),
        ("classify", "labels", "input words"),
        ("recommend", "recommended items", "items of the history"),
    ],
)
def test_tables_say_what_their_rows_and_columns_are(task: str, row: str, column: str) -> None:
    trace = small_models.small_trace()
    table = trace.model_copy(update={"model": trace.model.model_copy(update={"task": task})}).table()
    assert (table.row_noun.plural, table.column_noun.plural) == (row, column)


def test_a_site_record_has_no_other_fields() -> None:
    site = Site("cross", "cross", 1, "one")
    assert SiteRecord.from_site(site, weights="w").weights == "w"
    with pytest.raises(TypeError, match="a site record has no score, weight"):
        SiteRecord.from_site(site, weight="w", score="s")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dims": ["T"]}, "2 axes, but 1 axis names"),
        ({"data": "not base64!"}, "the data is not base64"),
        ({"shape": [2, 2]}, r"8 bytes of data, but shape \[2, 2\] needs 16"),
    ],
)
def test_a_packed_tensor_must_be_whole(change: dict[str, Any], message: str) -> None:
    tree = PackedTensor.pack(np.array([[0.5, 0.25]]), "T", "S").model_dump()
    with pytest.raises(ValueError, match=message):
        PackedTensor.model_validate(tree | change)


def test_packed_booleans_stay_booleans() -> None:
    packed = PackedTensor.pack(np.array([True, False]), "S")
    assert packed.dtype == "u1"
    assert packed.array().tolist() == [1, 0]


def test_a_source_word_with_a_constant_weight_does_not_win_every_link() -> None:
    weights = [[0.5, 0.4, 0.1], [0.7, 0.1, 0.2]]
    trace = Trace.from_weights(["the", "black", "cat"], ["chat", "noir"], weights)
    assert format_links(trace_links(trace)) == "0-0 0-1"
    assert format_links(trace_links(trace, "shared")) == "1-0 2-1"


def test_shifted_links_take_the_step_after() -> None:
    weights = [[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]]
    trace = Trace.from_weights(["a", "b", "c"], ["x", "y", "z"], weights)
    assert format_links(trace_links(trace, "shift")) == "1-0 2-1 2-2", "the last step stays the last"


def test_link_files_name_the_line_of_a_mistake(tmp_path: Path) -> None:
    path = tmp_path / "gold.links"
    path.write_text("0-0\n1-x\n", encoding="utf-8")
    with pytest.raises(DataError, match=r'gold.links, line 2: "1-x": expected a link such as 3-4'):
        read_links(path)
    path.write_text("0-1\n", encoding="utf-8")
    with pytest.raises(DataError, match="word 0 is out of range; words count from 1"):
        read_links(path, base=1)


def test_exports_have_the_weights_of_the_trace(tmp_path: Path) -> None:
    trace = small_models.small_trace()
    assert to_csv(trace).splitlines()[:2] == [",the,black,cat,</s>", "le,0.9,0.05,0.05,0"]
    assert format_links(trace_links(trace)) == "0-0 1-2 2-1"
    to_npz(trace, tmp_path / "t.npz")
    with np.load(tmp_path / "t.npz") as arrays:
        assert arrays["source_tokens"].tolist() == ["the", "black", "cat", "</s>"]
        np.testing.assert_array_equal(arrays["weights"], trace.tensors["weights"].array())
