"""The corpus: the same pairs from memory and disk, and a cache that is never half, stale or damaged."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import heedful
from heedful.config import DataConfig, TokenizerConfig
from heedful.data import corpus as room
from heedful.data.batch import Buckets, Encoded
from heedful.data.corpus import Corpus, open_corpus
from heedful.data.paths import cache_folder
from heedful.data.readers import Pairs, TextPair
from heedful.data.tokenizer import END, Tokenizer, learn_both
from heedful.errors import DataError

ROWS = [TextPair(f"a b {'c ' * (n % 7)}d{n % 5}", f"x {'y ' * (n % 4)}z") for n in range(50)]


@pytest.fixture(autouse=True)
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(room, "CHUNK", 7)
    monkeypatch.setattr(room, "LET_GO", 5)


def data(**settings: object) -> DataConfig:
    return DataConfig.model_validate({"train": ["t"], "valid": ["v"], "in_memory": 0, **settings})


def written(folder: Path, rows: list[TextPair] = ROWS) -> Path:
    (folder / "a.tsv").write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in rows))
    return folder


Both = tuple[Tokenizer, Tokenizer]
TOKENIZERS = learn_both(ROWS, TokenizerConfig())


def opened(folder: Path, tokenizers: Both = TOKENIZERS, /, **settings: object) -> Corpus:
    chosen = data(**settings)
    return open_corpus(Pairs(["a.tsv"], folder, chosen), *tokenizers, chosen)


def wanted(rows: list[TextPair] = ROWS) -> list[Encoded]:
    source, target = TOKENIZERS
    return [Encoded(source.encode(pair.source), target.encode(pair.target)) for pair in rows]


def caches(folder: Path) -> list[Path]:
    return sorted((folder / "cache" / "corpora").glob("*"))


def test_memory_disk_and_lists_hold_the_same(tmp_path: Path) -> None:
    written(tmp_path)
    for corpus, on_disk in (
        (opened(tmp_path, in_memory=50), False),
        (opened(tmp_path, in_memory=49), True),
        (opened(tmp_path), True),
        (open_corpus(ROWS, *TOKENIZERS, data()), False),
    ):
        assert corpus.on_disk is on_disk
        assert len(corpus) == 50
        assert [corpus[row] for row in range(50)] == wanted()
        assert corpus.lengths.source.tolist() == [len(e.source) for e in wanted()]
        assert corpus.lengths.target.tolist() == [len(e.target) for e in wanted()]
        assert corpus.lengths.source.dtype == np.int32
        assert corpus.tally.pairs == 50
        with pytest.raises(IndexError, match="row 50 of a corpus of 50"):
            corpus[50]
    plans = [Buckets(c, 40, seed=1).plan(2) for c in (wanted(), opened(tmp_path))]
    assert plans[0] == plans[1]
    batch = next(Buckets(opened(tmp_path), 40, seed=1).epoch(1))
    assert batch.words.ids.max() < len(TOKENIZERS[0])


def test_a_small_corpus_leaves_nothing_on_disk(tmp_path: Path) -> None:
    opened(written(tmp_path), in_memory=50)
    assert caches(tmp_path) == []


def test_a_cache_is_used_again_while_nothing_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(written(tmp_path))
    (first,) = caches(tmp_path)
    monkeypatch.setattr(Tokenizer, "encode_all", None)  # nothing is tokenised again
    assert [*map(opened(tmp_path).__getitem__, range(50))] == wanted()
    assert caches(tmp_path) == [first]


@pytest.mark.parametrize("change", ["file", "tokeniser", "policy", "length", "columns"])
def test_whatever_changes_is_noticed(tmp_path: Path, change: str) -> None:
    opened(written(tmp_path))
    tokenizers, rows = TOKENIZERS, ROWS
    settings: dict[str, dict[str, object]] = {
        "policy": {"longer": "cut"},
        "length": {"max_source": 99},
        "columns": {"columns": [2, 1]},
    }
    if change == "file":  # of the same size and date
        before = (tmp_path / "a.tsv").stat()
        rows = [TextPair("a b d1", ROWS[0].target), *ROWS[1:]]
        written(tmp_path, rows)
        os.utime(tmp_path / "a.tsv", ns=(before.st_atime_ns, before.st_mtime_ns))
        assert (tmp_path / "a.tsv").stat().st_size == before.st_size
    elif change == "tokeniser":
        tokenizers = learn_both(ROWS, TokenizerConfig(size=6))
    corpus = opened(tmp_path, tokenizers, **settings.get(change, {}))
    assert len(caches(tmp_path)) == 2
    if change == "file":
        assert corpus[0] == wanted(rows)[0] != wanted()[0]


NAMES = ("source.ids", "source.ends", "target.ids", "target.ends", "corpus.json")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("damage", ["cut", "flip", "remove", "empty"])
def test_a_damaged_cache_is_made_again(tmp_path: Path, name: str, damage: str) -> None:
    opened(written(tmp_path))
    (folder,) = caches(tmp_path)
    assert sorted(p.name for p in folder.iterdir()) == sorted(NAMES)
    raw = bytearray((folder / name).read_bytes())
    if damage == "flip":
        raw[len(raw) // 2] ^= 1
        (folder / name).write_bytes(raw)
    elif damage == "remove":
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(raw[: len(raw) // 2 if damage == "cut" else 0])
    corpus = opened(tmp_path)
    assert [corpus[row] for row in range(50)] == wanted()
    assert caches(tmp_path) == [folder]


@pytest.mark.parametrize("on_disk", [False, True])
def test_long_pairs_are_refused_skipped_or_cut(tmp_path: Path, on_disk: bool) -> None:
    rows = [TextPair("a b", "x"), TextPair("a b c", "x"), TextPair("a", "x y z z")]
    written(tmp_path, rows)
    at = {"in_memory": 0 if on_disk else 9, "max_source": 2, "max_target": 3}
    with pytest.raises(
        DataError, match=r"a.tsv, line 2: the source has 3 tokens, more than data.max_source = 2"
    ):
        opened(tmp_path, **at)
    with pytest.raises(
        DataError, match=r"a.tsv, line 3: the target has 4 tokens, more than data.max_target = 3"
    ):
        opened(tmp_path, **{**at, "max_source": 3})
    skipped = opened(tmp_path, longer="skip", **at)
    assert [skipped[0]] == wanted(rows[:1])
    assert len(skipped) == 1
    for _ in range(2):  # the second comes from the cache, tally and all
        cut = opened(tmp_path, longer="cut", **at)
        assert cut.tally == (3, 2, 0, "")
        assert str(cut.tally) == "2 pair(s) cut to the longest length"
        assert [cut[row] for row in range(3)] == wanted(
            [rows[0], TextPair("a b", "x"), TextPair("a", "x y z")]
        )
        assert cut[1].source[-1] == END
    assert str(skipped.tally) == "2 pair(s) skipped for their length"
    written(tmp_path, rows[2:])
    with pytest.raises(DataError, match=r"no pairs in it within 500 and 1 tokens"):
        opened(tmp_path, longer="skip", max_target=1, in_memory=at["in_memory"])
    assert not list((tmp_path / "cache").rglob("*.tmp"))


def test_broken_lines_are_told_of_from_the_cache_too(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tx\n\nb\ty\n")
    for _ in range(2):
        corpus = opened(tmp_path, broken="skip")
        assert len(corpus) == 2
        assert "1 broken line(s) skipped" in str(corpus.tally)
        assert "a.tsv, line 2: blank" in str(corpus.tally)


def test_large_vocabularies_take_wider_numbers(tmp_path: Path) -> None:
    rows = [
        TextPair(" ".join(f"w{n}" for n in range(first, first + 100)), "x") for first in range(0, 70_000, 100)
    ]
    tokenizers = learn_both(rows, TokenizerConfig(size=80_000))
    corpus = opened(written(tmp_path, rows), tokenizers)
    assert (corpus.source.ids.dtype, corpus.target.ids.dtype) == (np.dtype("<i4"), np.dtype("<u2"))
    assert max(max(corpus[row].source) for row in range(len(corpus))) == 70_003


def test_an_error_on_the_way_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tx\n" * 20 + "broken\n")
    with pytest.raises(DataError, match="line 21"):
        opened(tmp_path)
    assert caches(tmp_path) == []


KILLED = """
import sys, time; sys.path[:0] = [{package!r}]
from pathlib import Path
from heedful.config import DataConfig, TokenizerConfig
from heedful.data import corpus
from heedful.data.readers import Pairs
from heedful.data.tokenizer import learn_both
corpus.CHUNK = 7
data = DataConfig(train=("a.tsv",), valid=("a.tsv",), in_memory=0)
pairs = Pairs(["a.tsv"], Path(), data)
tokenizers = learn_both(pairs, TokenizerConfig())
fill = corpus._File.write
def slow(self, array):
    print("writing", flush=True)
    time.sleep(0.05)
    fill(self, array)
corpus._File.write = slow
corpus.open_corpus(pairs, *tokenizers, data)
"""


def test_a_kill_during_the_making_leaves_no_cache_and_is_swept_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path)
    program = KILLED.format(package=str(Path(heedful.__file__).parent.parent))
    process = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"writing\n"
    process.send_signal(signal.SIGKILL)
    process.stdout.close()
    process.wait(timeout=30)
    (left,) = caches(tmp_path)
    assert left.suffix == ".tmp"
    assert len(opened(tmp_path)) == 50
    assert len(caches(tmp_path)) == 2, "it may be another process's, still at work"
    later = time.time() + 2 * room.STALE
    monkeypatch.setattr(time, "time", lambda: later)
    opened(tmp_path, max_source=99)
    assert left not in caches(tmp_path)


def test_two_may_make_the_same_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path)
    fill = room._fill

    def slower(*arguments: object) -> None:
        monkeypatch.setattr(room, "_fill", fill)
        assert len(opened(tmp_path)) == 50  # another process finishes first
        fill(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(room, "_fill", slower)
    corpus = opened(tmp_path)
    assert [corpus[row] for row in range(50)] == wanted()
    assert len(caches(tmp_path)) == 1


@pytest.mark.skipif(os.name != "posix", reason="a folder that is a file")
def test_a_cache_that_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "file"))
    with pytest.raises(
        DataError, match=r"the cache cannot be written: .* \(HEEDFUL_CACHE names another place"
    ):
        opened(written(tmp_path))


def test_no_pairs_are_refused() -> None:
    with pytest.raises(DataError, match="no pairs in it"):
        open_corpus([], *TOKENIZERS, data())


def test_the_cache_lies_where_it_is_told_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("HEEDFUL_CACHE")
    assert "heedful" in str(cache_folder())
