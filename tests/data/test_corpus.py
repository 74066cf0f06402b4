"""Encoded corpora: the same pairs from memory and disk, and a cache that is never partial, stale or damaged."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import heedful
from heedful.config import DataConfig, TokenizerConfig
from heedful.data import corpus as corpus_module
from heedful.data import corpus_cache
from heedful.data.batch import BucketBatches, EncodedPair, Padded
from heedful.data.corpus import Corpus, open_corpus
from heedful.data.pairs import PairFiles, TextPair
from heedful.data.tokenizer import END, Tokenizer, train_tokenizers
from heedful.errors import DataError

ROWS = [TextPair(f"a b {'c ' * (n % 7)}d{n % 5}", f"x {'y ' * (n % 4)}z") for n in range(50)]


@pytest.fixture(autouse=True)
def small_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(corpus_module, "CHUNK_SIZE", 7)
    monkeypatch.setattr(corpus_module, "RELEASE_EVERY", 5)


def data(**settings: object) -> DataConfig:
    return DataConfig.model_validate({"train": ["t"], "valid": ["v"], "in_memory": 0, **settings})


def write_tsv(folder: Path, rows: list[TextPair] = ROWS) -> Path:
    (folder / "a.tsv").write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in rows))
    return folder


Both = tuple[Tokenizer, Tokenizer]
TOKENIZERS = train_tokenizers(ROWS, TokenizerConfig())


def open_tsv(folder: Path, tokenizers: Both = TOKENIZERS, /, **settings: object) -> Corpus:
    config = data(**settings)
    return open_corpus(PairFiles(["a.tsv"], folder, config), *tokenizers, config)


def encode(rows: list[TextPair] = ROWS) -> list[EncodedPair]:
    source, target = TOKENIZERS
    return [EncodedPair(source.encode(pair.source), target.encode(pair.target)) for pair in rows]


def caches(folder: Path) -> list[Path]:
    return sorted((folder / "cache" / "corpora").glob("*"))


def test_memory_disk_and_lists_hold_the_same_pairs(tmp_path: Path) -> None:
    write_tsv(tmp_path)
    for corpus, on_disk in (
        (open_tsv(tmp_path, in_memory=50), False),
        (open_tsv(tmp_path, in_memory=49), True),
        (open_tsv(tmp_path), True),
        (open_corpus(ROWS, *TOKENIZERS, data()), False),
    ):
        assert corpus.on_disk is on_disk
        assert len(corpus) == 50
        assert [corpus[row] for row in range(50)] == encode()
        assert corpus.lengths.source.tolist() == [len(e.source) for e in encode()]
        assert corpus.lengths.target.tolist() == [len(e.target) for e in encode()]
        assert corpus.lengths.source.dtype == np.int32
        assert corpus.counts.pairs == 50
        with pytest.raises(IndexError, match="row 50 of a corpus of 50"):
            corpus[50]
    plans = [BucketBatches(c, 40, seed=1).batch_rows(2) for c in (encode(), open_tsv(tmp_path))]
    assert plans[0] == plans[1]
    batch = next(BucketBatches(open_tsv(tmp_path), 40, seed=1).batches(1))
    assert isinstance(batch.source, Padded)
    assert batch.source.ids.max() < len(TOKENIZERS[0])


def test_a_small_corpus_leaves_nothing_on_disk(tmp_path: Path) -> None:
    open_tsv(write_tsv(tmp_path), in_memory=50)
    assert caches(tmp_path) == []


def test_a_cache_is_used_again_while_nothing_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_tsv(write_tsv(tmp_path))
    (first,) = caches(tmp_path)
    monkeypatch.setattr(Tokenizer, "encode_all", None)  # nothing is tokenized again
    assert [*map(open_tsv(tmp_path).__getitem__, range(50))] == encode()
    assert caches(tmp_path) == [first]


@pytest.mark.parametrize("change", ["file", "tokenizer", "policy", "length", "columns"])
def test_every_change_leads_to_another_cache(tmp_path: Path, change: str) -> None:
    open_tsv(write_tsv(tmp_path))
    tokenizers, rows = TOKENIZERS, ROWS
    settings: dict[str, dict[str, object]] = {
        "policy": {"on_too_long": "cut"},
        "length": {"max_source": 99},
        "columns": {"columns": [2, 1]},
    }
    if change == "file":  # of the same size and date
        before = (tmp_path / "a.tsv").stat()
        rows = [TextPair("a b d1", ROWS[0].target), *ROWS[1:]]
        write_tsv(tmp_path, rows)
        os.utime(tmp_path / "a.tsv", ns=(before.st_atime_ns, before.st_mtime_ns))
        assert (tmp_path / "a.tsv").stat().st_size == before.st_size
    elif change == "tokenizer":
        tokenizers = train_tokenizers(ROWS, TokenizerConfig(vocab_size=6))
    corpus = open_tsv(tmp_path, tokenizers, **settings.get(change, {}))
    assert len(caches(tmp_path)) == 2
    if change == "file":
        assert corpus[0] == encode(rows)[0] != encode()[0]


NAMES = ("source.ids", "source.ends", "target.ids", "target.ends", "corpus.json")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("damage", ["cut", "flip", "remove", "empty"])
def test_a_damaged_cache_is_written_again(tmp_path: Path, name: str, damage: str) -> None:
    open_tsv(write_tsv(tmp_path))
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
    corpus = open_tsv(tmp_path)
    assert [corpus[row] for row in range(50)] == encode()
    assert caches(tmp_path) == [folder]


@pytest.mark.parametrize("on_disk", [False, True])
def test_long_pairs_are_raised_skipped_or_cut(tmp_path: Path, on_disk: bool) -> None:
    rows = [TextPair("a b", "x"), TextPair("a b c", "x"), TextPair("a", "x y z z")]
    write_tsv(tmp_path, rows)
    limits = {"in_memory": 0 if on_disk else 9, "max_source": 2, "max_target": 3}
    with pytest.raises(DataError, match=r"a.tsv, line 2: the source has 3 tokens, more than data.max_source = 2"):
        open_tsv(tmp_path, **limits)
    with pytest.raises(DataError, match=r"a.tsv, line 3: the target has 4 tokens, more than data.max_target = 3"):
        open_tsv(tmp_path, **{**limits, "max_source": 3})
    skipped = open_tsv(tmp_path, on_too_long="skip", **limits)
    assert [skipped[0]] == encode(rows[:1])
    assert len(skipped) == 1
    for _ in range(2):  # the second time from the cache, with its counts
        cut = open_tsv(tmp_path, on_too_long="cut", **limits)
        assert cut.counts == (3, 2, 0, "")
        assert str(cut.counts) == "2 pair(s) cut to the maximum length"
        assert [cut[row] for row in range(3)] == encode([rows[0], TextPair("a b", "x"), TextPair("a", "x y z")])
        assert cut[1].source[-1] == END
    assert str(skipped.counts) == "2 pair(s) skipped as too long"
    write_tsv(tmp_path, rows[2:])
    with pytest.raises(DataError, match=r"contains no pairs within data.max_source = 500 and data.max_target = 1"):
        open_tsv(tmp_path, on_too_long="skip", max_target=1, in_memory=limits["in_memory"])
    assert not list((tmp_path / "cache").rglob("*.tmp"))


def test_bad_lines_are_counted_from_the_cache_too(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tx\n\nb\ty\n")
    for _ in range(2):
        corpus = open_tsv(tmp_path, on_error="skip")
        assert len(corpus) == 2
        assert "1 bad line(s) skipped" in str(corpus.counts)
        assert "a.tsv, line 2: blank" in str(corpus.counts)


def test_large_vocabularies_take_wider_ids(tmp_path: Path) -> None:
    rows = [TextPair(" ".join(f"w{n}" for n in range(first, first + 100)), "x") for first in range(0, 70_000, 100)]
    tokenizers = train_tokenizers(rows, TokenizerConfig(vocab_size=80_000))
    corpus = open_tsv(write_tsv(tmp_path, rows), tokenizers)
    assert (corpus.source.ids.dtype, corpus.target.ids.dtype) == (np.dtype("<i4"), np.dtype("<u2"))
    assert max(max(corpus[row].source) for row in range(len(corpus))) == 70_003


def test_an_error_while_writing_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tx\n" * 20 + "broken\n")
    with pytest.raises(DataError, match="line 21"):
        open_tsv(tmp_path)
    assert caches(tmp_path) == []


KILLED = """
import sys, time; sys.path[:0] = [{package!r}]
from pathlib import Path
from heedful.config import DataConfig, TokenizerConfig
from heedful.data import corpus, corpus_cache
from heedful.data.pairs import PairFiles
from heedful.data.tokenizer import train_tokenizers
corpus.CHUNK_SIZE = 7
data = DataConfig(train=("a.tsv",), valid=("a.tsv",), in_memory=0)
pairs = PairFiles(["a.tsv"], Path(), data)
tokenizers = train_tokenizers(pairs, TokenizerConfig())
write = corpus_cache._HashedFile.write
def slow(self, array):
    print("writing", flush=True)
    time.sleep(0.05)
    write(self, array)
corpus_cache._HashedFile.write = slow
corpus.open_corpus(pairs, *tokenizers, data)
"""


def test_a_killed_process_leaves_no_cache_and_its_draft_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tsv(tmp_path)
    program = KILLED.format(package=str(Path(heedful.__file__).parent.parent))
    process = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"writing\n"
    process.send_signal(signal.SIGKILL)
    process.stdout.close()
    process.wait(timeout=30)
    (draft,) = caches(tmp_path)
    assert draft.suffix == ".tmp"
    assert len(open_tsv(tmp_path)) == 50
    assert len(caches(tmp_path)) == 2, "another process may still be writing it"
    later = time.time() + 2 * corpus_cache.STALE_SECONDS
    monkeypatch.setattr(time, "time", lambda: later)
    open_tsv(tmp_path, max_source=99)
    assert draft not in caches(tmp_path)


def test_two_processes_may_write_the_same_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tsv(tmp_path)
    write_files = corpus_cache._write_files

    def slower(*arguments: object) -> None:
        monkeypatch.setattr(corpus_cache, "_write_files", write_files)
        assert len(open_tsv(tmp_path)) == 50  # another process finishes first
        write_files(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(corpus_cache, "_write_files", slower)
    corpus = open_tsv(tmp_path)
    assert [corpus[row] for row in range(50)] == encode()
    assert len(caches(tmp_path)) == 1


@pytest.mark.skipif(os.name != "posix", reason="a folder that is a file")
def test_a_cache_that_cannot_be_written_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match=r"the cache cannot be written: .* \(set HEEDFUL_CACHE to another folder"):
        open_tsv(write_tsv(tmp_path))


FULL = """
import resource, signal, sys; sys.path[:0] = [{package!r}]
from pathlib import Path
from heedful.config import DataConfig, TokenizerConfig
from heedful.data.corpus import open_corpus
from heedful.data.pairs import PairFiles
from heedful.data.tokenizer import train_tokenizers
from heedful.errors import DataError
data = DataConfig(train=("a.tsv",), valid=("a.tsv",), in_memory=0)
pairs = PairFiles(["a.tsv"], Path(), data)
tokenizers = train_tokenizers(pairs, TokenizerConfig())
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))  # a file cannot grow, as on a full disk
try:
    open_corpus(pairs, *tokenizers, data)
except DataError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of file sizes")
def test_a_full_disk_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    write_tsv(tmp_path)
    program = FULL.format(package=str(Path(heedful.__file__).parent.parent))
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert re.match(rf"{tmp_path}/.*: the cache cannot be written: File too large", done.stdout), done.stdout
    assert "Exception ignored" not in done.stderr, done.stderr
    assert caches(tmp_path) == []


def test_a_corpus_without_pairs_is_an_error() -> None:
    with pytest.raises(DataError, match="the list of pairs: contains no pairs"):
        open_corpus([], *TOKENIZERS, data())
