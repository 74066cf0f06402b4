"""The catalog of a model folder: saved, loaded, searched."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from heedful.data.catalog import FILE_NAME, Catalog
from heedful.data.histories import Histories
from heedful.errors import DataError, ModelError


def small_catalog() -> Catalog:
    titles = ["Toy Story (1995)", "Matrix, The (1999)", "", "Heat (1995)", "Heat (1986)"]
    histories = Histories.from_pairs(np.array([0, 0, 1]), np.array([0, 3, 1]), 3)
    return Catalog(["7", "8", "new"], ["a", "b", "c", "d", "e"], titles, histories)


def test_a_catalog_is_loaded_as_it_was_saved(tmp_path: Path) -> None:
    catalog = small_catalog()
    catalog.save(tmp_path)
    loaded = Catalog.load(tmp_path)
    assert (loaded.users, loaded.items, loaded.titles) == (catalog.users, catalog.items, catalog.titles)
    assert [loaded.histories.items_of(user).tolist() for user in range(3)] == [[0, 3], [1], []]
    assert loaded.sizes() == {"users": 3, "items": 5, "interactions": 3}


@pytest.mark.parametrize("damage", ["cut", "empty", "other"])
def test_a_damaged_catalog_is_an_error(tmp_path: Path, damage: str) -> None:
    small_catalog().save(tmp_path)
    path = tmp_path / FILE_NAME
    raw = path.read_bytes()
    path.write_bytes({"cut": raw[: len(raw) // 2], "empty": b"", "other": b"hello"}[damage])
    with pytest.raises(ModelError, match=rf"{FILE_NAME}: damaged"):
        Catalog.load(tmp_path)


def test_histories_of_unknown_items_are_an_error(tmp_path: Path) -> None:
    catalog = small_catalog()
    Catalog(catalog.users, catalog.items[:2], catalog.titles[:2], catalog.histories).save(tmp_path)
    with pytest.raises(ModelError, match="its histories do not fit"):
        Catalog.load(tmp_path)


@pytest.mark.parametrize(
    ("typed", "item"),
    [
        ("Toy Story (1995)", 0),
        ("toy story", 0),
        ("the  matrix", 1),
        ("Matrix, The", 1),
        ("c", 2),
        ("id:e", 4),
    ],
)
def test_an_item_is_found_by_title_or_id(typed: str, item: int) -> None:
    assert small_catalog().find_item(typed) == item


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("toy stroy", 'no item has the title "toy stroy"; did you mean "Toy Story \\(1995\\)"\\?'),
        ("heat", '2 items have the title "heat", such as Heat \\(1995\\) \\(id:d\\)'),
        ("zzzz", 'no item has the title "zzzz"$'),
    ],
)
def test_an_unknown_item_is_an_error_with_suggestions(typed: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        small_catalog().find_item(typed)


def test_an_unknown_user_is_an_error_with_suggestions() -> None:
    with pytest.raises(DataError, match=r'no user "neu"; did you mean "new"\? there are 3 users, such as 7, 8, new'):
        small_catalog().find_user("neu")
