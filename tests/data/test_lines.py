"""Lines of text files: encoding, damaged files, splits by hash."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from fresh_python import run_python
from heedful.data.lines import (
    MAX_BAD_LINES,
    MAX_LINE_BYTES,
    BadLine,
    BadLines,
    assign_split,
    iter_lines,
    read_lines,
    read_text,
    require_file,
)
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


def test_a_line_without_end_is_bad_and_the_lines_after_it_are_read(tmp_path: Path) -> None:
    longest = b"x" * MAX_LINE_BYTES
    (tmp_path / "a").write_bytes(b"first\n" + longest + b"\n" + longest + b"y\n\nlast\n" + 3 * longest)
    lines = list(iter_lines(tmp_path / "a"))
    assert [len(lines[1]), *lines[3:5]] == [MAX_LINE_BYTES, "", "last"]
    bad = [BadLine(tmp_path / "a", number, "longer than 1,000,000 bytes") for number in (3, 6)]
    assert [lines[2], lines[5]] == bad
    with pytest.raises(DataError, match=r"a, line 3: longer than 1,000,000 bytes"):
        list(read_lines(tmp_path / "a"))


def test_a_line_that_expands_to_gigabytes_is_never_in_memory(tmp_path: Path) -> None:
    """One line of a gzip file took 2.6 GB."""
    with gzip.open(tmp_path / "a.gz", "wb", compresslevel=1) as file:
        file.writelines([b"0" * 1_000_000] * 400)
    code = (
        "import resource, sys, pathlib\n"
        "from heedful.data.lines import iter_lines\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(*iter_lines(pathlib.Path(sys.argv[1])), file=sys.stderr)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)\n"
    )
    done = run_python(code, str(tmp_path / "a.gz"))
    assert int(done.stdout) < 50_000_000, done.stderr
    with pytest.raises(DataError, match=r"a.gz: longer than 1,000 bytes"):
        read_text(tmp_path / "a.gz", 1_000)


def test_every_kind_of_line_end_and_odd_characters_are_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes("a\r\nb\0c\n\u2028d\u0085\n\U0010ffff\r\n\ufeffe".encode())
    assert list(read_lines(tmp_path / "a")) == ["a", "b\0c", "\u2028d\u0085", "\U0010ffff", "\ufeffe"]
    (tmp_path / "a").write_bytes("text".encode("utf-16"))
    with pytest.raises(DataError, match="a: UTF-16, not UTF-8; save the file as UTF-8"):
        list(read_lines(tmp_path / "a"))
    with pytest.raises(DataError, match="a: UTF-16, not UTF-8"):
        read_text(tmp_path / "a", 100)


def test_a_file_that_may_not_be_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="cannot be read: File name too long"):
        require_file(tmp_path / ("n" * 300))
    (tmp_path / "a").write_text("a")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)  # root may read everything
    with pytest.raises(DataError, match=r"/a: cannot be read: Permission denied$"):
        list(read_lines(tmp_path / "a"))


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
