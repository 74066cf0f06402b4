"""`heedful measure` of sequence-to-sequence models, and links with known scores."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import small_models
from command_line import heedful, refused
from heedful.analysis.faithfulness import TESTS, FaithfulnessOptions
from heedful.analysis.measure import measure
from heedful.errors import DataError, TraceError
from heedful.metrics.alignment import diagonal_links, score_alignment
from heedful.tasks.seq2seq.assets import LoadedSeq2Seq
from heedful.trace.schema import Links, fold_words, parse_links, read_links, word_links

GOLD = [
    Links(frozenset(links), frozenset(links))
    for links in ({(0, 0), (1, 2), (2, 1), (3, 3)}, {(i, i) for i in range(6)}, {(i, i) for i in range(5)})
]


def random_model(folder: Path, preset: str) -> LoadedSeq2Seq:
    """An untrained model whose outputs are short."""
    loaded = small_models.random_model_folder(folder, small_models.small_preset(preset))
    decoding = loaded.recipe.decoding.model_copy(update={"max_length": 9})
    return loaded._replace(recipe=loaded.recipe.model_copy(update={"decoding": decoding}))


@pytest.mark.parametrize("preset", ["cgru", "luong", "transformer", "conv-conv", "abs"])
def test_every_value_is_in_its_range(tmp_path: Path, preset: str) -> None:
    loaded = random_model(tmp_path / "m", preset)
    options = FaithfulnessOptions(TESTS, steps=2, counterfactuals=1, search_steps=10)
    report = measure(loaded, small_models.PAIRS, options, GOLD)
    assert json.loads(json.dumps(report)) == report, "plain numbers"
    assert all(0 <= value <= 1 for value in report["attention"].values())
    for method in ("naive", "shift", "shared"):
        assert 0 <= report["gold"][method]["aer"] <= 100
    assert 0 <= report["gold"]["gold_weight"] <= 1
    layers = report["gold"].get("layers", {})
    sites = [site.id for site in loaded.model.sites if site.kind == "cross"]
    assert list(layers) == (sites if len(sites) > 1 else [])
    if layers:  # the alignment site is one of them
        assert report["gold"]["naive"] == layers[loaded.model.alignment_site]["naive"]
    tests = report["faithfulness"]
    assert {name.replace("-", "_") for name in TESTS} <= set(tests)
    for test, name in (("permutation", "median_tvd"), ("uniform", "tvd")):
        assert 0 <= tests[test][name]["mean"] <= 1
    assert sum(tests["erasure"]["flips"].values()) == pytest.approx(1)
    assert set(tests["outputs"]) == {"unchanged", "uniform", "permuted"}


def test_a_model_without_attention_is_an_error(tmp_path: Path) -> None:
    loaded = random_model(tmp_path / "m", "seq2seq")
    with pytest.raises(TraceError, match="has no attention"):
        measure(loaded, small_models.PAIRS, FaithfulnessOptions())
    loaded = random_model(tmp_path / "n", "cgru")
    with pytest.raises(DataError, match="3 sentences, but 1 lines of gold links"):
        measure(loaded, small_models.PAIRS, FaithfulnessOptions(), GOLD[:1])


def test_the_same_seed_gives_the_same_report(tmp_path: Path) -> None:
    loaded = random_model(tmp_path / "m", "cgru")
    options = FaithfulnessOptions(("permutation", "erasure", "input-erasure"), steps=2)
    assert measure(loaded, small_models.PAIRS, options) == measure(loaded, small_models.PAIRS, options)


def test_the_alignment_error_rate_equals_its_definition() -> None:
    gold = [Links(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (1, 2)}))]
    score = score_alignment([{(0, 0), (1, 2)}], gold)
    assert (score.aer, score.precision, score.recall) == (25.0, 100.0, 50.0)
    with pytest.raises(DataError, match="2 sentences with links, but 1 with gold"):
        score_alignment([set(), set()], gold)
    assert diagonal_links(0, 3) == set()


def test_subwords_are_folded_by_sum_and_mean() -> None:
    weights = np.array([[0.2, 0.3, 0.5], [0.4, 0.4, 0.2], [0.0, 0.0, 1.0]])
    source, target = [0, 0, -1], [0, 0, -1]  # one word of two subwords on both sides, and the end tokens
    assert fold_words(weights, source, target).tolist() == [[pytest.approx(0.65)]]
    assert word_links(weights, source, target) == {(0, 0)}


def test_the_shift_method_uses_a_later_step() -> None:
    weights = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    assert word_links(weights, [0, 1, -1], [0, 1, -1]) == {(1, 0), (0, 1)}
    assert word_links(weights, [0, 1, -1], [0, 1, -1], "shift", 1) == {(0, 0), (0, 1)}


@pytest.mark.parametrize(
    ("text", "base", "words"),
    [("1~2", 0, "expected a link such as 3-4"), ("0-1", 1, "words count from 1"), ("a-b", 0, '"a-b"')],
)
def test_a_malformed_link_is_an_error(text: str, base: int, words: str) -> None:
    with pytest.raises(DataError, match=words):
        parse_links(text, base)


def test_link_files_are_scored_without_a_model(tmp_path: Path) -> None:
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
def test_a_published_alignment_has_its_published_error_rate() -> None:
    links = read_links(DATA / "enfr.awesome-align.out.gz")
    score = score_alignment([line.sure for line in links], read_links(DATA / "enfr.gold.gz", 1))
    assert round(score.aer, 2) == 4.07


def test_the_command_prints_conclusions_first(tmp_path: Path) -> None:
    small_models.random_model_folder(tmp_path / "m", small_models.small_preset("cgru"))
    source, target = tmp_path / "s", tmp_path / "t"
    source.write_text("\n".join(p.source for p in small_models.PAIRS) + "\n")
    target.write_text("\n".join(p.target for p in small_models.PAIRS) + "\n")
    gold = tmp_path / "g"
    gold.write_text("0-0\n1-1\n2-2\n")
    command = ("measure", "-m", tmp_path / "m", "--data", source, "--data", target, "--gold", gold)
    done = heedful(*command, "--steps", "2")
    assert done.returncode == 0, done.stderr
    parts = (
        "of the attention weight is on gold",
        "Permuting the weights",
        "not why",
        "entropy ratio",
        "AER",
        "weights of the step that generates a word (naive)",
        "weights permuted: change of the ",
        "(T2)",
        "the tests T1 to T6 and the link methods are defined in docs/faithfulness.md",
    )
    positions = [done.stdout.index(part) for part in parts]
    assert positions == sorted(positions)
    report = json.loads(heedful(*command, "--test", "none", "--json").stdout)
    assert set(report) == {"model", "items", "unit", "attention", "gold"}
    assert 'did you mean "erasure"' in refused(*command, "--test", "erasur")
