"""Paths in recipes: relative, in the data folder, in the runs folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from heedful.data.paths import cache_folder, data_folder, has_prefix, locate, locate_folder, runs_folder
from heedful.errors import DataError


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("data", "runs"):
        monkeypatch.setenv(f"HEEDFUL_{name.upper()}", str(tmp_path / name))
    (tmp_path / "data" / "set").mkdir(parents=True)
    (tmp_path / "data" / "set" / "train.en").touch()
    (tmp_path / "runs" / "model-1").mkdir(parents=True)
    return tmp_path


def test_the_environment_names_the_folders(folders: Path) -> None:
    assert data_folder() == folders / "data"
    assert runs_folder() == folders / "runs"


def test_without_the_environment_folders_are_the_users(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEEDFUL_RUNS")
    assert runs_folder().name == "runs"
    assert "heedful" in runs_folder().parts
    assert folders not in runs_folder().parents


def test_a_prefix_chooses_the_folder(folders: Path) -> None:
    assert locate("data:set/train.en", folders) == folders / "data" / "set" / "train.en"
    assert locate_folder("runs:model-1", folders) == folders / "runs" / "model-1"
    assert locate("set/train.en", folders / "data") == folders / "data" / "set" / "train.en"
    assert [has_prefix(name) for name in ("data:x", "runs:x", "x", "../data")] == [True, True, False, False]


def test_a_missing_file_is_reported_with_a_similar_name(folders: Path) -> None:
    with pytest.raises(DataError, match=r'trian.en does not exist; did you mean "train.en"'):
        locate("data:set/trian.en", folders)
    with pytest.raises(DataError, match=r'did you mean "model-1".* \(HEEDFUL_RUNS is .*runs\)'):
        locate_folder("runs:model-2", folders)


def test_a_missing_folder_is_reported_with_the_variable_to_set(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"does not exist; neither does the folder .*nowhere$"):
        locate("nowhere/x", folders)
    monkeypatch.delenv("HEEDFUL_DATA")
    with pytest.raises(DataError, match=r"set HEEDFUL_DATA to the folder of `data:` paths"):
        locate("data:nowhere/x", folders)


def test_a_folder_is_no_file_and_a_file_is_no_folder(folders: Path) -> None:
    with pytest.raises(DataError, match=r"is a folder; expected a data file"):
        locate("data:set", folders)
    with pytest.raises(DataError, match=r"is a file; expected a folder"):
        locate_folder("data:set/train.en", folders)


def test_the_cache_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("HEEDFUL_CACHE")
    assert "heedful" in str(cache_folder())


def test_a_name_that_no_file_can_have_is_an_error(tmp_path: Path) -> None:
    for find in (locate, locate_folder):
        with pytest.raises(DataError, match="cannot be read: File name too long"):
            find("n" * 300, tmp_path)
        with pytest.raises(DataError, match="does not exist"):
            find("n\0", tmp_path)
