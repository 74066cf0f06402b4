"""`heedful measure` through its entry point, on a small model and on links with known scores."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import small
from heedful.errors import DataError, TraceError
from heedful.evaluation.alignment import alignment_error, diagonal
from heedful.record import Links, folded_words, read_links, word_links
from heedful.record.links import parse_links
from heedful.studies.measure import TESTS, Asked, measure
from test_cli import heedful, refused

GOLD = [
    Links(frozenset(links), frozenset(links))
    for links in ({(0, 0), (1, 2), (2, 1), (3, 3)}, {(i, i) for i in range(6)}, {(i, i) for i in range(5)})
]


@pytest.mark.parametrize("preset", ["cgru", "luong", "transformer", "conv-conv", "abs"])
def test_everything_is_measured_and_means_something(tmp_path: Path, preset: str) -> None:
    opened = small.folder(tmp_path / "m", small.preset(preset))
    found = measure(opened, small.PAIRS, Asked(TESTS, steps=2, counterfactuals=1, search=10), GOLD)
    assert json.loads(json.dumps(found)) == found, "plain numbers"
    assert all(0 <= value <= 1 for value in found["looks"].values())
    for reading in ("naive", "shift", "shared"):
        assert 0 <= found["gold"][reading]["aer"] <= 100
    assert 0 <= found["gold"]["mass on gold"] <= 1
    layers = found["gold"].get("layers", {})
    sites = [site.id for site in opened.model.sites if site.kind == "cross"]
    assert list(layers) == (sites if len(sites) > 1 else [])
    if layers:  # the usual site is one of them, and nothing is read twice
        assert found["gold"]["naive"] == layers[opened.model.alignment]["naive"]
    tests = found["tests"]
    assert set(TESTS) <= set(tests)
    for test, name in (("permutation", "median TVD"), ("uniform", "TVD")):
        assert 0 <= tests[test][name]["mean"] <= 1
    assert sum(tests["erasure"]["decision changes"].values()) == pytest.approx(1)
    assert set(tests["outputs"]) == {"as it is", "uniform", "permute"}


def test_a_model_without_attention_is_told_so(tmp_path: Path) -> None:
    opened = small.folder(tmp_path / "m", small.preset("seq2seq"))
    with pytest.raises(TraceError, match="has no attention"):
        measure(opened, small.PAIRS, Asked())
    opened = small.folder(tmp_path / "n", small.preset("cgru"))
    with pytest.raises(DataError, match="3 pairs, but 1 lines of gold links"):
        measure(opened, small.PAIRS, Asked(), GOLD[:1])


def test_the_same_seed_measures_the_same(tmp_path: Path) -> None:
    opened = small.folder(tmp_path / "m", small.preset("cgru"))
    asked = Asked(("permutation", "erasure", "words"), steps=2)
    assert measure(opened, small.PAIRS, asked) == measure(opened, small.PAIRS, asked)


def test_error_rate_of_the_definition() -> None:
    gold = [Links(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (1, 2)}))]
    score = alignment_error([{(0, 0), (1, 2)}], gold)
    assert (score.aer, score.precision, score.recall) == (25.0, 100.0, 50.0)
    with pytest.raises(DataError, match="2 sentences with links, but 1 with gold"):
        alignment_error([set(), set()], gold)
    assert diagonal(0, 3) == set()


def test_pieces_are_folded_by_sum_and_mean() -> None:
    weights = np.array([[0.2, 0.3, 0.5], [0.4, 0.4, 0.2], [0.0, 0.0, 1.0]])
    source, target = [0, 0, -1], [0, 0, -1]  # one word of two pieces on both sides, and the ends
    assert folded_words(weights, source, target).tolist() == [[pytest.approx(0.65)]]
    assert word_links(weights, source, target) == {(0, 0)}


def test_a_shift_reads_later() -> None:
    weights = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    assert word_links(weights, [0, 1, -1], [0, 1, -1]) == {(1, 0), (0, 1)}
    assert word_links(weights, [0, 1, -1], [0, 1, -1], "shift", 1) == {(0, 0), (0, 1)}


@pytest.mark.parametrize(
    ("text", "base", "words"),
    [("1~2", 0, "expected a link such as 3-4"), ("0-1", 1, "words count from 1 here"), ("a-b", 0, '"a-b"')],
)
def test_a_link_that_is_none(text: str, base: int, words: str) -> None:
    with pytest.raises(DataError, match=words):
        parse_links(text, base)


def test_files_of_links(tmp_path: Path) -> None:
    (tmp_path / "hyp").write_text("0-0 1-2\n\n")
    (tmp_path / "gold").write_text("1-1 2-2 2p3\n1-1\n")
    done = heedful("measure", "--links", tmp_path / "hyp", "--gold", tmp_path / "gold", "--gold-base", "1")
    assert done.stdout == "AER 40.00  precision 100.00  recall 33.33  (2 links)\n"
    (tmp_path / "gold").write_text("1-1 x\n")
    assert "gold, line 1:" in refused("measure", "--links", tmp_path / "hyp", "--gold", tmp_path / "gold")
    assert "needs --gold" in refused("measure", "--links", tmp_path / "hyp")
    assert "cannot be read" in refused("measure", "--links", tmp_path / "no", "--gold", tmp_path / "gold")


DATA = Path(os.environ.get("HEEDFUL_DATA", "nowhere")) / "word_alignment_gold"


@pytest.mark.skipif(not DATA.is_dir(), reason="HEEDFUL_DATA has no word_alignment_gold")
def test_the_published_error_rate_of_a_published_output() -> None:
    found = read_links(DATA / "enfr.awesome-align.out.gz")
    score = alignment_error([mine.sure for mine in found], read_links(DATA / "enfr.gold.gz", 1))
    assert round(score.aer, 2) == 4.07


def test_on_the_command_line(tmp_path: Path) -> None:
    small.folder(tmp_path / "m", small.preset("cgru"))
    source, target = tmp_path / "s", tmp_path / "t"
    source.write_text("\n".join(p.source for p in small.PAIRS) + "\n")
    target.write_text("\n".join(p.target for p in small.PAIRS) + "\n")
    gold = tmp_path / "g"
    gold.write_text("0-0\n1-1\n2-2\n")
    words = ("measure", "-m", tmp_path / "m", "--data", source, "--data", target, "--gold", gold)
    done = heedful(*words, "--steps", "2")
    assert done.returncode == 0, done.stderr
    for part in ("entropy ratio", "AER", "T2 weights permuted", "Shuffling the weights", "not why"):
        assert part in done.stdout
    plain = json.loads(heedful(*words, "--test", "none", "--json").stdout)
    assert set(plain) == {"model", "sentences", "unit", "looks", "gold"}
    assert 'did you mean "erasure"' in refused(*words, "--test", "erasur")
