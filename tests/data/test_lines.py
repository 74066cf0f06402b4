"""Plain text: what is read, what is refused, and how it is cut into batches."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from heedful.config import DataConfig
from heedful.data.lines import Lines, Text, Windows, encoded, open_lines, parts_in_order, sentences
from heedful.data.tokenizer import END, START
from heedful.errors import DataError


def numbers(lines: Sequence[str]) -> list[list[int]]:
    """Words that are numbers already."""
    return [[*map(int, line.split()), END] for line in lines]


def config(**more: object) -> DataConfig:
    return DataConfig.model_validate({"train": ["t"], "valid": ["v"], **more})


def text(count: int = 50) -> Text:
    return encoded([" ".join(map(str, range(5, 5 + n % 9 + 1))) for n in range(count)], numbers, config(), 20)


def test_blank_lines_are_left_out_and_gz_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"one two\n\n  \nthree\n"))
    assert list(Lines(path)) == ["one two", "three"]


def test_a_line_that_is_no_text_is_refused_or_skipped_and_told(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\n\xff\ntwo\n")
    with pytest.raises(DataError, match=r"line 2: not UTF-8 .*data.broken"):
        list(Lines(path))
    lines = Lines(path, config(broken="skip"))
    assert list(lines) == ["one", "two"]
    assert "1 broken line(s) skipped" in str(lines.report)


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_a_file_without_text_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(DataError, match="no text in it"):
        list(Lines(tmp_path / "a.txt"))


def test_shares_are_held_out_by_hash(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n".join(f"line {n}" for n in range(400)))
    data = DataConfig.model_validate({"train": ["a.txt"], "split_valid": 0.1, "split_test": 0.1})
    splits = {name: list(lines) for name, lines in open_lines(data, tmp_path).items()}
    assert sorted(splits) == ["test", "train", "valid"]
    assert sum(map(len, splits.values())) == len({line for lines in splits.values() for line in lines}) == 400
    assert 15 < len(splits["valid"]) < 70


def test_long_lines_are_refused_cut_or_skipped() -> None:
    lines = ["5 6 7", "5 6 7 8", "9"]
    with pytest.raises(DataError, match=r"line 2 .*4 tokens, more than data.max_source = 3"):
        encoded(lines, numbers, config(), 3)
    cut = encoded(lines, numbers, config(longer="cut"), 3)
    assert [cut[row].target for row in range(3)] == [[5, 6, 7, END], [5, 6, 7, END], [9, END]]
    skipped = encoded(lines, numbers, config(longer="skip"), 3)
    assert [skipped[row].target for row in range(len(skipped))] == [[5, 6, 7, END], [9, END]]
    assert (cut.tally.cut, skipped.tally.skipped) == (1, 1)
    assert len(encoded(lines, numbers, config(), None)) == 3
    with pytest.raises(DataError, match="no line of the text is within 1"):
        encoded(["5 6"], numbers, config(longer="skip"), 1)


def test_a_sentence_is_read_from_its_start_and_its_end_is_wanted() -> None:
    batch = sentences([[5, 6, END], [7, END]], START)
    assert batch.given.ids.tolist() == [[START, 5, 6], [START, 7, 0]]
    assert batch.wanted.tolist() == [[5, 6, END], [7, END, 0]]
    part = batch.rows(1, 2)
    assert part.given.ids.tolist() == [[START, 7]]
    assert part.wanted.tolist() == [[7, END]]


@pytest.mark.parametrize("epoch", [1, 2])
def test_windows_hold_every_word_once_behind_the_words_before_it(epoch: int) -> None:
    flat = text().flat
    windows = Windows(flat, window=7, lead=4, budget=21, seed=3)
    plan = windows.plan(epoch)
    assert all(len(starts) == 3 for starts in plan[:-1])
    seen: list[int] = []
    whole = [END] * 5 + flat.tolist()  # what comes before the text is its end token
    for starts in plan:
        batch = windows.batch(starts)
        assert batch.lead == 4
        for start, given, wanted in zip(starts, batch.given.ids.tolist(), batch.wanted.tolist(), strict=True):
            assert given == whole[start : start + 11]
            assert wanted == flat[start : start + 7].tolist()
            seen += range(start, start + 7)
    assert len(seen) == len(set(seen)) > len(flat) - 14
    again = Windows(flat, 7, 4, 21, seed=3).plan(epoch)
    assert [starts.tolist() for starts in again] == [starts.tolist() for starts in plan]


def test_epochs_have_windows_at_other_places() -> None:
    windows = Windows(text().flat, window=7, lead=0, budget=7, seed=3)
    first, second = (sorted(int(s) for starts in windows.plan(epoch) for s in starts) for epoch in (1, 3))
    assert first != second


def test_a_text_shorter_than_a_window_is_one() -> None:
    windows = Windows(np.array([5, END], dtype=np.int32), window=7, lead=2, budget=70, seed=1)
    batch = windows.batch(windows.plan(1)[0])
    assert batch.given.ids.tolist() == [[END, END, END, 5]]
    assert batch.wanted.tolist() == [[5, END]]


def test_parts_in_order_are_the_text() -> None:
    flat = text().flat
    parts = list(parts_in_order(flat, 8))
    given = [i for part in parts for i in part.given.ids[0].tolist()]
    assert given == [END, *flat[:-1].tolist()]
    assert [i for part in parts for i in part.wanted[0].tolist()] == flat.tolist()
