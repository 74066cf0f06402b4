"""Plain text: reading, encoding, and both kinds of batches."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from heedful.config import DataConfig
from heedful.data.line_file import LineFile, open_lines
from heedful.data.text import (
    EncodedText,
    WindowBatches,
    encode_text,
    sentence_batch,
    sequential_windows,
)
from heedful.data.tokenizer import END, START
from heedful.errors import DataError


def encode(lines: Sequence[str]) -> list[list[int]]:
    """Encode lines whose words are ids already."""
    return [[*map(int, line.split()), END] for line in lines]


def config(**more: object) -> DataConfig:
    return DataConfig.model_validate({"train": ["t"], "valid": ["v"], **more})


def text(count: int = 50) -> EncodedText:
    return encode_text([" ".join(map(str, range(5, 5 + n % 9 + 1))) for n in range(count)], encode, config(), 20)


def test_blank_lines_are_left_out_and_gzip_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"one two\n\n  \nthree\n"))
    assert list(LineFile(path)) == ["one two", "three"]


def test_a_line_that_is_not_utf8_is_raised_or_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\n\xff\ntwo\n")
    with pytest.raises(DataError, match=r"line 2: not UTF-8 .*data.on_error"):
        list(LineFile(path))
    lines = LineFile(path, config(on_error="skip"))
    assert list(lines) == ["one", "two"]
    assert "1 bad line(s) skipped" in str(lines.bad_lines)


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_a_file_without_text_is_an_error(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(DataError, match="contains no text"):
        list(LineFile(tmp_path / "a.txt"))


def test_shares_are_held_out_by_hash(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n".join(f"line {n}" for n in range(400)))
    data = DataConfig.model_validate({"train": ["a.txt"], "split_valid": 0.1, "split_test": 0.1})
    splits = {name: list(lines) for name, lines in open_lines(data, tmp_path).items()}
    assert sorted(splits) == ["test", "train", "valid"]
    assert sum(map(len, splits.values())) == len({line for lines in splits.values() for line in lines}) == 400
    assert 15 < len(splits["valid"]) < 70


def test_long_lines_are_raised_cut_or_skipped() -> None:
    lines = ["5 6 7", "5 6 7 8", "9"]
    with pytest.raises(DataError, match=r"line 2 .*4 tokens, more than data.max_source = 3"):
        encode_text(lines, encode, config(), 3)
    cut = encode_text(lines, encode, config(on_too_long="cut"), 3)
    assert [cut[row].target for row in range(3)] == [[5, 6, 7, END], [5, 6, 7, END], [9, END]]
    skipped = encode_text(lines, encode, config(on_too_long="skip"), 3)
    assert [skipped[row].target for row in range(len(skipped))] == [[5, 6, 7, END], [9, END]]
    assert (cut.counts.cut, skipped.counts.skipped) == (1, 1)
    assert len(encode_text(lines, encode, config(), None)) == 3
    with pytest.raises(DataError, match="every line of the text has more than 1 tokens"):
        encode_text(["5 6"], encode, config(on_too_long="skip"), 1)


def test_a_sentence_starts_with_the_start_token_and_its_end_is_a_target() -> None:
    batch = sentence_batch([[5, 6, END], [7, END]], START)
    assert batch.inputs.ids.tolist() == [[START, 5, 6], [START, 7, 0]]
    assert batch.targets.tolist() == [[5, 6, END], [7, END, 0]]
    part = batch.rows(1, 2)
    assert part.inputs.ids.tolist() == [[START, 7]]
    assert part.targets.tolist() == [[7, END]]


@pytest.mark.parametrize("epoch", [1, 2])
def test_windows_hold_every_token_once_after_their_context(epoch: int) -> None:
    flat = text().flat
    windows = WindowBatches(flat, window=7, context=4, batch_tokens=21, seed=3)
    plan = windows.plan(epoch)
    assert all(len(starts) == 3 for starts in plan[:-1])
    positions: list[int] = []
    preceded = [END] * 5 + flat.tolist()  # end tokens precede the text
    for starts in plan:
        batch = windows.batch(starts)
        assert batch.context == 4
        for start, inputs, targets in zip(starts, batch.inputs.ids.tolist(), batch.targets.tolist(), strict=True):
            assert inputs == preceded[start : start + 11]
            assert targets == flat[start : start + 7].tolist()
            positions += range(start, start + 7)
    assert len(positions) == len(set(positions)) > len(flat) - 14
    again = WindowBatches(flat, 7, 4, 21, seed=3).plan(epoch)
    assert [starts.tolist() for starts in again] == [starts.tolist() for starts in plan]


def test_windows_start_elsewhere_in_each_epoch() -> None:
    windows = WindowBatches(text().flat, window=7, context=0, batch_tokens=7, seed=3)
    first, second = (sorted(int(s) for starts in windows.plan(epoch) for s in starts) for epoch in (1, 3))
    assert first != second


def test_a_text_shorter_than_a_window_is_one_window() -> None:
    windows = WindowBatches(np.array([5, END], dtype=np.int32), window=7, context=2, batch_tokens=70, seed=1)
    batch = windows.batch(windows.plan(1)[0])
    assert batch.inputs.ids.tolist() == [[END, END, END, 5]]
    assert batch.targets.tolist() == [[5, END]]


def test_sequential_windows_join_to_the_text() -> None:
    flat = text().flat
    parts = list(sequential_windows(flat, 8))
    inputs = [i for part in parts for i in part.inputs.ids[0].tolist()]
    assert inputs == [END, *flat[:-1].tolist()]
    assert [i for part in parts for i in part.targets[0].tolist()] == flat.tolist()
