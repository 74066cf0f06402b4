"""Files of worlds: split sizes, atomic writing, folders."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fresh_python import run_python
from heedful.data.worlds.disk import split_sizes, write_lines
from heedful.data.worlds.moods import write
from heedful.errors import WorldError


def test_a_tenth_is_held_out_by_default() -> None:
    assert split_sizes(3, None, None) == {"train": 1, "valid": 1, "test": 1}
    assert split_sizes(19) == {"train": 17, "valid": 1, "test": 1}
    assert split_sizes(50_000) == {"train": 48_000, "valid": 1000, "test": 1000}
    assert split_sizes(10, 0, 4) == {"train": 6, "valid": 0, "test": 4}
    with pytest.raises(WorldError, match=r"n is 2: .* at least 3"):
        split_sizes(2)
    with pytest.raises(WorldError, match=r"valid=6 and test=4 leave nothing .* n is 10, it must be at least 11"):
        split_sizes(10, 6, 4)
    with pytest.raises(WorldError, match="valid is -1"):
        split_sizes(10, -1)


def test_lines_are_utf8_with_unix_newlines(tmp_path: Path) -> None:
    write_lines(tmp_path / "deep" / "er" / "file.txt", ["Soufflé", "nhiệt tình", ""])
    assert (tmp_path / "deep" / "er" / "file.txt").read_bytes() == "Soufflé\nnhiệt tình\n\n".encode()
    assert [path.name for path in (tmp_path / "deep" / "er").iterdir()] == ["file.txt"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    write_lines(path, ["old"])

    def lines() -> Iterator[str]:
        yield "new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_lines(path, lines())
    assert path.read_text(encoding="utf-8") == "old\n"
    assert [path.name for path in tmp_path.iterdir()] == ["file.txt"]


def test_a_killed_process_leaves_no_partial_file(tmp_path: Path) -> None:
    code = (
        "import os, sys, pathlib\n"
        "from heedful.data.worlds.disk import write_lines\n"
        "def lines():\n"
        "    for i in range(200_000):\n"
        "        yield 'x' * 50\n"
        "    os._exit(9)\n"
        "write_lines(pathlib.Path(sys.argv[1]), lines())"
    )
    assert run_python(code, str(tmp_path / "file.txt")).returncode == 9
    (draft,) = tmp_path.iterdir()
    assert re.fullmatch(r"\.file\.[0-9a-f]+\.tmp\.txt", draft.name)


def test_a_file_or_a_foreign_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(WorldError, match=r"is a file"):
        write(tmp_path / "file", 10)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "README.md").write_text("# My thesis\n", encoding="utf-8")
    with pytest.raises(WorldError, match=r"README.md that is not of the world moods .'# My thesis'.: choose another"):
        write(foreign, 10)
    assert [path.name for path in foreign.iterdir()] == ["README.md"]
    assert write(tmp_path / "twice", 10) == write(tmp_path / "twice", 10)
