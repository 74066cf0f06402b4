"""User-item interactions: every format, held-out items, and bad files."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from heedful.config import DataConfig, RatingsConfig, WorldConfig
from heedful.data.ratings import Ratings, open_ratings, read_held_out
from heedful.errors import DataError

NCF = "0\t25\n0\t30\n0\t7\n1\t7\n1\t25\n1\t9\n2\t9\n2\t30\n2\t25\n"


def data(folder: Path, text: str, name: str = "train.tsv", **settings: object) -> DataConfig:
    """Return the data section for a file with this text; `settings` are of [data] or of [data.ratings]."""
    (folder / name).write_text(text, encoding="utf-8")
    of_ratings = {key: value for key, value in settings.items() if key in RatingsConfig.model_fields}
    more = {key: value for key, value in settings.items() if key not in of_ratings}
    return DataConfig.model_validate({"train": [name], "ratings": of_ratings, **more})


def histories_by_name(ratings: Ratings) -> dict[str, list[str]]:
    catalog = ratings.catalog
    return {
        user: [catalog.items[item] for item in catalog.histories.items_of(number).tolist()]
        for number, user in enumerate(catalog.users)
    }


def ncf(folder: Path) -> DataConfig:
    (folder / "test.rating").write_text("0\t9\t5\t978824351\n1\t30\t3\t978300174\n")
    (folder / "test.negative").write_text("(0,9)\t1\t2\n(1,30)\t3\t1\n")
    return data(folder, NCF, test=["test.rating", "test.negative"])


def test_leave_one_out_files_are_read(tmp_path: Path) -> None:
    ratings = open_ratings(ncf(tmp_path), tmp_path)
    catalog, test = ratings.catalog, ratings.held_out["test"]
    assert histories_by_name(ratings) == {"0": ["25", "30", "7"], "1": ["7", "25", "9"], "2": ["9", "30", "25"]}
    assert [catalog.users[user] for user in test.users] == ["0", "1"]
    assert [catalog.items[item] for item in test.items] == ["9", "30"]
    assert [[catalog.items[item] for item in row] for row in test.negatives] == [["1", "2"], ["3", "1"]]


def test_validation_items_are_drawn_from_the_histories(tmp_path: Path) -> None:
    ratings = open_ratings(ncf(tmp_path), tmp_path)
    valid = ratings.held_out["valid"]
    assert valid.users.tolist() == [0, 1, 2]
    for user, item, negatives in zip(valid.users, valid.items, valid.negatives, strict=True):
        history = ratings.catalog.histories.items_of(user).tolist()
        assert item in history
        assert not set(negatives.tolist()) & set(history)
    again = open_ratings(ncf(tmp_path), tmp_path)
    assert again.held_out["valid"].items.tolist() == valid.items.tolist()
    remaining = ratings.catalog.histories.without(valid.users, valid.items)
    assert remaining.lengths.tolist() == [2, 2, 2]


def test_without_test_files_an_item_of_each_user_is_held_out(tmp_path: Path) -> None:
    ratings = open_ratings(data(tmp_path, NCF + "3\t25\n3\t7\n"), tmp_path)
    test = ratings.held_out["test"]
    assert test.users.tolist() == [0, 1, 2]  # two items are too few
    for user, item in zip(test.users, test.items, strict=True):
        assert item not in ratings.catalog.histories.items_of(user)


def test_with_a_time_the_last_item_is_held_out(tmp_path: Path) -> None:
    text = "a,x,30\na,y,10\na,z,20\na,w,5\n"
    config = data(tmp_path, text, "train.csv", columns=[1, 2, 3], hold_out="last")
    ratings = open_ratings(config, tmp_path)
    catalog = ratings.catalog
    assert histories_by_name(ratings) == {"a": ["w", "y", "z"]}
    assert [catalog.items[item] for item in ratings.held_out["test"].items] == ["x"]
    assert [catalog.items[item] for item in ratings.held_out["valid"].items] == ["z"]


def test_repeated_interactions_count_once_with_a_warning(tmp_path: Path) -> None:
    ratings = open_ratings(data(tmp_path, NCF + "0\t25\n0\t25\n1\t9\n"), tmp_path)
    assert len(ratings.catalog.histories.items) + len(ratings.held_out["test"]) == 9
    assert [warning.partition(": ")[2] for warning in ratings.notes[1:]] == ["3 repeated interaction(s) count once"]


def test_columns_separators_headers_and_titles_are_settings(tmp_path: Path) -> None:
    (tmp_path / "movies.dat").write_text("i::n\n9::Heat (1995)\n25::Big::x\n1::Never taken\n", encoding="utf-8")
    lines = ["rating::item::user", *(f"5::{line.split()[1]}::{line.split()[0]}" for line in NCF.splitlines())]
    config = data(
        tmp_path,
        "\n".join([*lines, ""]),
        "train.dat",
        separator="::",
        header="yes",
        columns=[3, 2],
        titles="movies.dat",
    )
    catalog = open_ratings(config, tmp_path).catalog
    assert dict(zip(catalog.items, catalog.titles, strict=True)) == {
        "25": "Big",
        "30": "",
        "7": "",
        "9": "Heat (1995)",
    }


def test_gzip_files_are_read_and_where_filters_rows(tmp_path: Path) -> None:
    (tmp_path / "t.tsv.gz").write_bytes(gzip.compress(b"0\t1\tyes\n0\t2\tno\n0\t3\tyes\n"))
    config = DataConfig.model_validate({"train": ["t.tsv.gz"], "ratings": {}, "where": ["3=yes"]})
    assert histories_by_name(open_ratings(config, tmp_path)) == {"0": ["1", "3"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0\t1\n0\n", r"train.tsv, line 2: expected at least 2 columns separated by a tab; found 1 column\(s\): '0'"),
        ("0\t1\n\t2\n", "line 2: column 1 is blank"),
        ("", "contains no interactions"),
    ],
)
def test_a_bad_line_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        open_ratings(data(tmp_path, text), tmp_path)


def test_bad_lines_can_be_skipped(tmp_path: Path) -> None:
    ratings = open_ratings(data(tmp_path, NCF + "7\n", on_error="skip"), tmp_path)
    assert "1 bad line(s) skipped" in ratings.notes[1]
    assert "train.tsv, line 10: expected at least 2 columns separated by a tab; found 1" in ratings.notes[1]


def test_a_time_that_is_not_a_number_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 1: the time in column 3 is not a number or a date: 'noon'"):
        open_ratings(data(tmp_path, "0\t1\tnoon\n", columns=[1, 2, 3]), tmp_path)


@pytest.mark.parametrize("time", ["nan", "inf", "1e999"])
def test_a_time_that_is_not_finite_is_an_error(tmp_path: Path, time: str) -> None:
    config = data(tmp_path, f"a\tx\t1\na\ty\t{time}\n", columns=[1, 2, 3])
    with pytest.raises(DataError, match=f"train.tsv, line 2: the time in column 3 is not a number or a date: '{time}'"):
        open_ratings(config, tmp_path)


def test_lines_that_are_no_text_or_no_csv_are_bad_lines(tmp_path: Path) -> None:
    lines = [*(b"u,%d" % n for n in range(4)), b"a\rb,c", b"u," + b"9" * 200_000, b"\xff,1", b"n\0,7"]
    (tmp_path / "a.csv").write_bytes(b"\n".join(lines))
    config = DataConfig.model_validate({"train": ["a.csv"], "ratings": {}, "on_error": "skip"})
    _, warning = open_ratings(config, tmp_path).notes
    for text in ("3 bad line", "line 5: not CSV: new-line", "line 6: not CSV: field larger", "line 7: not UTF-8"):
        assert text in warning
    with pytest.raises(DataError, match=r"a.csv, line 5: not CSV"):
        open_ratings(config.model_copy(update={"on_error": "error"}), tmp_path)


def test_a_condition_with_an_absurd_column_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such name in the first line\nit has no header; give numbers from 1 to 2"):
        open_ratings(data(tmp_path, NCF, where=["9" * 5_000 + "=1"]), tmp_path)


@pytest.mark.parametrize(
    ("negatives", "message"),
    [
        ("(0,9)\t1\n", r"no negatives for 1 held-out item\(s\), such as user 1's"),
        ("0\t1\n", r"line 1: expected \(user,item\), tab, and the items it is ranked among"),
        ("(0,9)\n", "line 1: expected"),
    ],
)
def test_bad_negatives_are_an_error(tmp_path: Path, negatives: str, message: str) -> None:
    config = ncf(tmp_path)
    (tmp_path / "test.negative").write_text(negatives)
    with pytest.raises(DataError, match=message):
        open_ratings(config, tmp_path)


def test_held_out_items_of_another_file_need_a_known_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = open_ratings(ncf(tmp_path), tmp_path).catalog
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.rating").write_text("2\t7\n")
    held_out = read_held_out(["other.rating"], RatingsConfig(negatives=2), catalog)
    assert [catalog.users[user] for user in held_out.users] == ["2"]
    assert len(held_out.negatives[0]) == 2
    (tmp_path / "other.rating").write_text("2\t7\nnobody\t7\n")
    with pytest.raises(DataError, match=r"1 user\(s\) unknown to the model, such as nobody"):
        read_held_out(["other.rating"], RatingsConfig(), catalog)


def test_the_tastes_world_has_gold_items() -> None:
    ratings = open_ratings(DataConfig(world=WorldConfig(name="tastes", train=30, valid=10, test=5)), Path())
    assert {split: held.users.tolist() for split, held in ratings.held_out.items()} == {
        "valid": list(range(10)),
        "test": list(range(25, 30)),
    }
    for user, gold in ratings.gold.items():
        assert np.isin(gold, ratings.catalog.histories.items_of(user)).all()
