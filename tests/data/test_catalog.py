"""The catalog of a model folder: saved, loaded, searched."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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


@pytest.mark.parametrize("header", ["{'descr': ('<i8', ", "  {\n 1", "(" * 50])
def test_a_header_that_is_not_python_is_an_error(tmp_path: Path, header: str) -> None:
    raw = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    with zipfile.ZipFile(tmp_path / FILE_NAME, "w") as archive:
        archive.writestr("users.npy", raw)
    with pytest.raises(ModelError, match=rf"{FILE_NAME}: damaged"):
        Catalog.load(tmp_path)


ARRAYS = {
    "users": np.array(["7"]),
    "items": np.array(["a", "b"]),
    "titles": np.array(["A", "B"]),
    "bounds": np.array([0, 2]),
    "history": np.array([0, 1], dtype=np.int32),
}


def write_arrays(path: Path, changed: Mapping[str, np.ndarray] = {}, claimed: Mapping[str, Any] = {}) -> None:
    """Write a catalog in which arrays are changed; `claimed` replaces what the headers say."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in {**ARRAYS, **changed}.items():
            member = io.BytesIO()
            header = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape}
            np.lib.format.write_array_header_1_0(member, {**header, **(claimed if name == "history" else {})})
            archive.writestr(f"{name}.npy", member.getvalue() + array.tobytes())


@pytest.mark.parametrize(
    "changed",
    [
        {"bounds": np.array([0.0, np.nan])},
        {"bounds": np.array([[0, 2]])},
        {"bounds": np.array([])},
        {"history": np.array(["a", "b"])},
        {"history": np.array([0, 2**62])},
        {"users": np.array([b"7"])},
        {"users": np.array([7])},
        {"users": np.array("7")},
        {"titles": np.array([["A", "B"]])},
        {"items": np.array(["a"])},
        {"titles": np.array(["A", "\ud800"])},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_arrays_of_wrong_types_shapes_or_sizes_are_an_error(tmp_path: Path, changed: dict[str, np.ndarray]) -> None:
    write_arrays(tmp_path / FILE_NAME)
    assert len(Catalog.load(tmp_path).items) == 2
    write_arrays(tmp_path / FILE_NAME, changed)
    with pytest.raises(ModelError, match=rf"{FILE_NAME}: damaged"):
        Catalog.load(tmp_path)


@pytest.mark.parametrize(
    ("claimed", "message"),
    [
        ({"shape": (99_999_999_999,)}, "at most 50,000,000"),
        ({"shape": (2**70,)}, "at most 50,000,000"),
        ({"shape": (-1,)}, "damaged"),
        ({"shape": (1_000_000,)}, "damaged"),
        ({"descr": "|O"}, "damaged"),
        ({"descr": "<f8"}, "damaged"),
        ({"shape": (1,)}, "damaged"),
    ],
    ids=str,
)
def test_a_header_that_lies_is_an_error(tmp_path: Path, claimed: dict[str, Any], message: str) -> None:
    write_arrays(tmp_path / FILE_NAME, claimed=claimed)
    with pytest.raises(ModelError, match=message):
        Catalog.load(tmp_path)


def test_a_bomb_is_not_decompressed(tmp_path: Path) -> None:
    write_arrays(tmp_path / FILE_NAME, {"users": np.zeros(3_000_000, dtype="<U1")})
    tracemalloc.start()
    with pytest.raises(ModelError, match="the catalog has 3,000,000 users: at most 2,000,000"):
        Catalog.load(tmp_path)
    write_arrays(tmp_path / FILE_NAME)
    tracemalloc.reset_peak()
    with zipfile.ZipFile(tmp_path / FILE_NAME, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("other.npy", bytes(30_000_000))
    Catalog.load(tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 35_000_000, "only the bytes that the test itself made"


def test_a_catalog_that_cannot_be_loaded_is_not_written(tmp_path: Path) -> None:
    names = [str(number) for number in range(200)]
    names[7] = "x" * 300_000
    histories = Histories.from_pairs(np.array([0]), np.array([0]), 1)
    with pytest.raises(DataError, match="the catalog has 200 titles"):
        Catalog(["u"], [str(n) for n in range(200)], names, histories).save(tmp_path)


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


def test_a_name_that_is_a_title_and_the_id_of_another_item_is_never_guessed() -> None:
    catalog = Catalog(["7"], ["300", "12"], ["Heat", "300"], Histories.from_pairs(np.array([0]), np.array([0]), 1))
    with pytest.raises(DataError, match=r'"300" is the title of one item and the id of another \(Heat\); write'):
        catalog.find_item("300")
    assert catalog.find_item("id:300") == 0
    assert catalog.find_item("title:300") == 1
