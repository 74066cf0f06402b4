"""Reading users and items: every format, what is held out, and what is said of files that are wrong."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from heedful.config import DataConfig, RatingsConfig, WorldConfig
from heedful.data.ratings import Ratings, open_ratings, read_held
from heedful.errors import DataError

NCF = "0\t25\n0\t30\n0\t7\n1\t7\n1\t25\n1\t9\n2\t9\n2\t30\n2\t25\n"


def data(folder: Path, text: str, name: str = "train.tsv", **settings: object) -> DataConfig:
    """A data section for a file with this text; `settings` of [data] or of [data.ratings]."""
    (folder / name).write_text(text, encoding="utf-8")
    own = {key: value for key, value in settings.items() if key in RatingsConfig.model_fields}
    more = {key: value for key, value in settings.items() if key not in own}
    return DataConfig.model_validate({"train": [name], "ratings": own, **more})


def histories(found: Ratings) -> dict[str, list[str]]:
    known = found.catalogue
    return {
        user: [known.items[item] for item in known.histories.of(number).tolist()]
        for number, user in enumerate(known.users)
    }


def ncf(folder: Path) -> DataConfig:
    (folder / "test.rating").write_text("0\t9\t5\t978824351\n1\t30\t3\t978300174\n")
    (folder / "test.negative").write_text("(0,9)\t1\t2\n(1,30)\t3\t1\n")
    return data(folder, NCF, test=["test.rating", "test.negative"])


def test_leave_one_out_files(tmp_path: Path) -> None:
    found = open_ratings(ncf(tmp_path), tmp_path)
    known, test = found.catalogue, found.held["test"]
    assert histories(found) == {"0": ["25", "30", "7"], "1": ["7", "25", "9"], "2": ["9", "30", "25"]}
    assert [known.users[user] for user in test.users] == ["0", "1"]
    assert [known.items[item] for item in test.items] == ["9", "30"]
    assert [[known.items[item] for item in row] for row in test.others] == [["1", "2"], ["3", "1"]]


def test_items_to_validate_on_are_drawn_from_what_is_known(tmp_path: Path) -> None:
    found = open_ratings(ncf(tmp_path), tmp_path)
    valid = found.held["valid"]
    assert valid.users.tolist() == [0, 1, 2]
    for user, item, others in zip(valid.users, valid.items, valid.others, strict=True):
        history = found.catalogue.histories.of(user).tolist()
        assert item in history
        assert not set(others.tolist()) & set(history)
    again = open_ratings(ncf(tmp_path), tmp_path)
    assert again.held["valid"].items.tolist() == valid.items.tolist()
    kept = found.catalogue.histories.without(valid.users, valid.items)
    assert kept.lengths.tolist() == [2, 2, 2]


def test_without_test_files_an_item_of_each_user_is_held_out(tmp_path: Path) -> None:
    found = open_ratings(data(tmp_path, NCF + "3\t25\n3\t7\n"), tmp_path)
    test = found.held["test"]
    assert test.users.tolist() == [0, 1, 2]  # two items are too few
    for user, item in zip(test.users, test.items, strict=True):
        assert item not in found.catalogue.histories.of(user)


def test_with_a_time_the_last_item_is_held_out(tmp_path: Path) -> None:
    text = "a,x,30\na,y,10\na,z,20\na,w,5\n"
    made = data(tmp_path, text, "train.csv", time=3, hold_out="last")
    found = open_ratings(made, tmp_path)
    known = found.catalogue
    assert histories(found) == {"a": ["w", "y", "z"]}
    assert [known.items[item] for item in found.held["test"].items] == ["x"]
    assert [known.items[item] for item in found.held["valid"].items] == ["z"]


def test_duplicates_count_once_and_are_told(tmp_path: Path) -> None:
    found = open_ratings(data(tmp_path, NCF + "0\t25\n0\t25\n1\t9\n"), tmp_path)
    assert len(found.catalogue.histories.items) + len(found.held["test"]) == 9
    assert [note.partition(": ")[2] for note in found.notes] == ["3 interactions came again and count once"]


def test_columns_separators_headers_and_titles(tmp_path: Path) -> None:
    (tmp_path / "movies.dat").write_text(
        "i::n\n9::Heat (1995)\n25::Big::x\n1::Never taken\n", encoding="utf-8"
    )
    lines = ["rating::item::user", *(f"5::{line.split()[1]}::{line.split()[0]}" for line in NCF.splitlines())]
    made = data(
        tmp_path,
        "\n".join([*lines, ""]),
        "train.dat",
        separator="::",
        header=True,
        columns=[3, 2],
        titles="movies.dat",
    )
    known = open_ratings(made, tmp_path).catalogue
    assert dict(zip(known.items, known.titles, strict=True)) == {
        "25": "Big",
        "30": "",
        "7": "",
        "9": "Heat (1995)",
    }


def test_packed_files_and_rows_chosen_by_a_column(tmp_path: Path) -> None:
    (tmp_path / "t.tsv.gz").write_bytes(gzip.compress(b"0\t1\tyes\n0\t2\tno\n0\t3\tyes\n"))
    made = DataConfig.model_validate({"train": ["t.tsv.gz"], "ratings": {}, "where": ["3=yes"]})
    assert histories(open_ratings(made, tmp_path)) == {"0": ["1", "3"]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0\t1\n0\n", "train.tsv, line 2: no item in column 2: '0'"),
        ("0\t1\n\t2\n", "line 2: no user in column 1"),
        ("", "no user and item in it"),
    ],
)
def test_broken_lines_are_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        open_ratings(data(tmp_path, text), tmp_path)


def test_broken_lines_can_be_left_out(tmp_path: Path) -> None:
    found = open_ratings(data(tmp_path, NCF + "7\n", broken="skip"), tmp_path)
    assert "1 broken lines left out" in found.notes[0]


def test_a_time_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 1: the time in column 3 is no number: 'noon'"):
        open_ratings(data(tmp_path, "0\t1\tnoon\n", time=3), tmp_path)


@pytest.mark.parametrize(
    ("negative", "words"),
    [
        ("(0,9)\t1\n", "1 held-out items are not in it, such as user 1's"),
        ("0\t1\n", r"line 1: expected \(user,item\) and the items it is ranked among"),
        ("(0,9)\n", "line 1: expected"),
    ],
)
def test_broken_negatives_are_named(tmp_path: Path, negative: str, words: str) -> None:
    made = ncf(tmp_path)
    (tmp_path / "test.negative").write_text(negative)
    with pytest.raises(DataError, match=words):
        open_ratings(made, tmp_path)


def test_held_out_items_of_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = open_ratings(ncf(tmp_path), tmp_path).catalogue
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.rating").write_text("2\t7\n")
    held = read_held(["other.rating"], RatingsConfig(negatives=2), known)
    assert [known.users[user] for user in held.users] == ["2"]
    assert len(held.others[0]) == 2
    (tmp_path / "other.rating").write_text("2\t7\nnobody\t7\n")
    with pytest.raises(DataError, match="1 users that the model does not know, such as nobody"):
        read_held(["other.rating"], RatingsConfig(), known)


def test_the_world_of_tastes_knows_its_reasons() -> None:
    found = open_ratings(DataConfig(world=WorldConfig(name="tastes", train=30, valid=10, test=5)), Path())
    assert {split: held.users.tolist() for split, held in found.held.items()} == {
        "valid": list(range(10)),
        "test": list(range(25, 30)),
    }
    for user, gold in found.gold.items():
        assert np.isin(gold, found.catalogue.histories.of(user)).all()
