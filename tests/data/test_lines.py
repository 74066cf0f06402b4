"""Lines of text files: encoding, damaged files, splits by hash."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from heedful.data.lines import MAX_BAD_LINES, BadLine, BadLines, assign_split, read_lines, require_file
from heedful.errors import DataError


def test_lines_before_the_damage_are_read(tmp_path: Path) -> None:
    intact = gzip.compress(b"line of text\n" * 5000)
    (tmp_path / "a.gz").write_bytes(intact[: len(intact) // 2])
    with pytest.raises(DataError, match=r"a.gz, after line \d+: cannot be read"):
        list(read_lines(tmp_path / "a.gz"))
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbffirst\nb\xff\n")
    lines = read_lines(tmp_path / "a")
    assert next(lines) == "first"
    with pytest.raises(DataError, match=r"a, line 2: not UTF-8 \(byte 1 of the line\)"):
        next(lines)


def test_a_folder_or_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder; expected a text file"):
        require_file(tmp_path)
    with pytest.raises(DataError, match=r"none.txt: there is no such file"):
        list(read_lines(tmp_path / "none.txt"))


def test_bad_lines_are_raised_or_counted(tmp_path: Path) -> None:
    bad_line = BadLine(tmp_path / "a", 3, "blank")
    with pytest.raises(DataError, match=r'a, line 3: blank \(fix the line, or set data.on_error = "skip"'):
        BadLines("error").add(bad_line)
    counted = BadLines("skip")
    assert str(counted) == ""
    for _ in range(MAX_BAD_LINES + 2):
        counted.add(bad_line)
    assert counted.count == MAX_BAD_LINES + 2
    assert str(counted).splitlines()[0] == f"{MAX_BAD_LINES + 2} bad line(s) skipped:"
    assert str(counted).splitlines()[-1] == "  and 2 more"


def test_shares_of_a_split_are_kept_and_nested() -> None:
    texts = [f"text {n}" for n in range(20_000)]
    splits = [assign_split(text, valid=0.1, test=0.2) for text in texts]
    assert splits.count("test") == pytest.approx(4_000, rel=0.05)
    assert splits.count("valid") == pytest.approx(2_000, rel=0.1)
    larger = [assign_split(text, valid=0.1, test=0.3) for text in texts]
    assert all(b == "test" for a, b in zip(splits, larger, strict=True) if a == "test"), "test only grows"
