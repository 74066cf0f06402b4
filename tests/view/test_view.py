"""Pictures: the numbers that were recorded are the numbers that are shown."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

import small
from heedful.errors import TraceError
from heedful.record import Trace
from heedful.view import alignment_text
from heedful.view.figure import draw_alignment


def printed(width: int = 100, blocks: bool = True) -> str:
    console = Console(file=io.StringIO(), width=width, no_color=True)
    console.print(alignment_text(small.trace(), width, blocks), soft_wrap=True)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_the_terminal_shows_every_weight_in_hundredths() -> None:
    lines = printed().splitlines()
    assert lines[0].split() == ["the", "black", "cat", "</s>"]
    row = lines[2].split()
    assert row[0] == "chat"
    assert "90" in lines[2]
    assert "10" in lines[2]


def test_a_wide_matrix_is_split_and_none_of_it_lost() -> None:
    text = printed(width=24)
    assert max(map(len, text.splitlines())) <= 24
    assert [word for word in ("the", "black", "cat") if word not in text] == []


def test_without_blocks_the_picture_is_ascii() -> None:
    assert printed(blocks=False).isascii()


def test_a_trace_reads_back_as_written(tmp_path: Path) -> None:
    trace = small.trace()
    trace.save(tmp_path / "t.json")
    assert Trace.load(tmp_path / "t.json") == trace
    assert [p.name for p in tmp_path.iterdir()] == ["t.json"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{}", "not a trace of schema attn-trace/0"),
        (b"\xff\xfe", "not UTF-8"),
        (b'{"schema": "attn-trace/9"', "not a trace"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "t.json").write_bytes(content)
    with pytest.raises(TraceError, match=words):
        Trace.load(tmp_path / "t.json")


def test_a_trace_whose_shapes_disagree_is_refused(tmp_path: Path) -> None:
    good = small.trace().model_dump(by_alias=True)
    bad = good | {"source": good["source"][:-1]}
    with pytest.raises(ValueError, match=r"site cross: weights of shape \(4, 1, 4\), expected \(4, 1, 3\)"):
        Trace.model_validate(bad)
    with pytest.raises(ValueError, match="4 output tokens but 3 steps"):
        Trace.model_validate(good | {"steps": good["steps"][:-1]})
    with pytest.raises(ValueError, match="not in the trace"):
        Trace.model_validate(good | {"alignment": "other"})


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_figure_is_drawn_whole_or_not_at_all(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"alignment{suffix}"
    draw_alignment(small.trace(), path)
    content = path.read_bytes()
    assert content[:4] in (b"\x89PNG", b"<?xm", b"%PDF")
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    if suffix == ".svg":  # text stays text
        for word in ("input word", "output word", "chat", "black", ".90"):
            assert word in content.decode("utf-8")


def test_a_format_that_cannot_be_drawn_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r'did you mean ".png"'):
        draw_alignment(small.trace(), tmp_path / "a.pnj")
    with pytest.raises(TraceError, match="cannot be written"):
        draw_alignment(small.trace(), tmp_path / "nowhere" / "a.png")
