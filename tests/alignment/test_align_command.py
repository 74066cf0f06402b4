"""`heedful align` and `heedful.align` on files and pairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import heedful
from command_line import complaint, here
from heedful.errors import ArgumentError, DataError

PAIRS = [("the house", "la maison"), ("the flower", "la fleur"), ("house", "maison"), ("a flower", "une fleur")]
LINKS = ["0-0 1-1", "0-0 1-1", "0-0", "0-0 1-1"]


def write_table(path: Path, pairs: list[tuple[str, str]]) -> Path:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return path


def test_links_of_a_table_and_of_parallel_files_are_printed_in_pharaoh_format(tmp_path: Path) -> None:
    table = write_table(tmp_path / "pairs.tsv", PAIRS)
    assert here("align", table).stdout.splitlines() == LINKS
    for side, name in enumerate(("en.txt", "fr.txt")):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in PAIRS), encoding="utf-8")
    assert here("align", tmp_path / "en.txt", tmp_path / "fr.txt").stdout.splitlines() == LINKS


def test_extra_pairs_are_learned_from_and_not_printed(tmp_path: Path) -> None:
    one = write_table(tmp_path / "one.tsv", [("flower the", "la fleur")])
    more = write_table(tmp_path / "more.tsv", PAIRS * 3)
    assert here("align", one).stdout != "0-1 1-0\n"
    assert here("align", one, "--extra", more).stdout == "0-1 1-0\n"


def test_gold_links_give_scores_and_out_writes_the_links(tmp_path: Path) -> None:
    table, gold, out = write_table(tmp_path / "pairs.tsv", PAIRS), tmp_path / "gold.txt", tmp_path / "links.txt"
    gold.write_text("1-1 2-2\n1-1 2p2\n1-1\n1-1 2-2\n", encoding="utf-8")
    done = here("align", table, "--gold", gold, "--gold-base", "1", "-o", out)
    assert done.stdout == "AER 0.00  precision 100.00  recall 100.00  (7 links)\n"
    assert out.read_text(encoding="utf-8").splitlines() == LINKS
    report = json.loads(here("align", table, "--gold", gold, "--gold-base", "1", "--json").stdout)
    assert report["pairs"] == 4
    assert report["grow-diag-final-and"]["aer"] == report["intersection"]["aer"] == 0


def test_columns_are_chosen_by_number_or_name(tmp_path: Path) -> None:
    path = tmp_path / "laws.tsv"
    path.write_text("".join(f"act {n}\t{s}\t{t}\n" for n, (s, t) in enumerate(PAIRS)), encoding="utf-8")
    assert here("align", path, "--columns", "2,3").stdout.splitlines() == LINKS


def test_mistakes_are_explained(tmp_path: Path) -> None:
    table, gold = write_table(tmp_path / "pairs.tsv", PAIRS), tmp_path / "gold.txt"
    gold.write_text("0-0\n", encoding="utf-8")
    assert "4 sentences with links, but 1 with gold links" in complaint("align", table, "--gold", gold)
    assert "--json: prints the scores of --gold" in complaint("align", table, "--json")
    assert "expected the columns of source and target, such as en,fr or 2,3" in complaint(
        "align", table, "--columns", "2"
    )
    assert 'data.columns = "²": no such name' in complaint("align", table, "--columns", "²,١")  # digits, but no numbers
    assert "expected one table or two parallel files, got 3 files" in complaint("align", table, table, table)
    assert "does not exist" in complaint("align", tmp_path / "pears.tsv")


def test_python_aligns_pairs_scores_and_saves_them(tmp_path: Path) -> None:
    alignment = heedful.align(PAIRS[:3], extra=[PAIRS[3:]], symmetrization="intersection")
    assert [len(alignment), alignment[1], alignment[-2:]] == [3, [(0, 0), (1, 1)], [[(0, 0), (1, 1)], [(0, 0)]]]
    assert repr(alignment) == "<WordAlignment of 3 sentence pairs, 5 links>"
    alignment.save(tmp_path / "links.txt")
    assert alignment.score(tmp_path / "links.txt").aer == 0
    assert (tmp_path / "links.txt").read_text(encoding="utf-8").splitlines() == LINKS[:3]


def test_wrong_arguments_of_python_are_errors() -> None:
    with pytest.raises(ArgumentError, match='prior="diagnal": no such prior; did you mean "diagonal"'):
        heedful.align(PAIRS, prior="diagnal")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="iterations=0: expected a whole number of at least 1"):
        heedful.align(PAIRS, iterations=0)
    with pytest.raises(DataError, match="the data has no rows"):
        heedful.align([])


def test_attention_of_a_model_gives_links(tmp_path: Path) -> None:
    pairs = write_table(tmp_path / "pairs.tsv", [("The cat sleeps .", "Le chat dort .")])
    gold = tmp_path / "gold.txt"
    gold.write_text("0-0 1-1 2-2 3-3\n", encoding="utf-8")
    links = here("align", pairs, "-m", "en-fr").stdout
    assert len(links.split()) == 4
    assert {"0-0", "1-1", "2-2"} <= set(links.split())
    report = json.loads(here("align", pairs, "-m", "en-fr", "--gold", gold, "--json").stdout)
    assert report["forward"]["links"] == 4
    assert "aligns no words" in complaint("align", pairs, "-m", "intents")
    assert "--extra: is what the statistical aligner learns from" in complaint(
        "align", pairs, "-m", "en-fr", "--extra", pairs
    )
