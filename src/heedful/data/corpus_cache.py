"""Encoded corpora on disk: written to a temporary folder and renamed; their hashes are checked at every load."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from heedful.data.ragged import Array, Ragged
from heedful.errors import DataError

FORMAT = 2  # increment it when the same input gives different files
SIDES = ("source", "target")
STALE_SECONDS = 3_600.0  # without a write; then the process that wrote a temporary folder is taken to be dead


class CorpusCounts(NamedTuple):
    """The numbers of pairs that were kept, truncated and skipped, and the summary of bad lines."""

    pairs: int = 0
    cut: int = 0
    skipped: int = 0
    bad_lines: str = ""

    def __str__(self) -> str:
        parts = [self.bad_lines] if self.bad_lines else []
        parts += [f"{self.cut:,} pair(s) cut to the maximum length"] if self.cut else []
        parts += [f"{self.skipped:,} pair(s) skipped as too long"] if self.skipped else []
        return "\n".join(parts)


class Chunk(NamedTuple):
    """Some encoded pairs: the concatenated ids and the lengths, each of source and target."""

    ids: tuple[Array, Array]
    lengths: tuple[Array, Array]


class EncodedSides(NamedTuple):
    """Both sides of a corpus as ids, and the counts of its pairs."""

    source: Ragged
    target: Ragged
    counts: CorpusCounts


def load_cache(folder: Path) -> EncodedSides | None:
    """Return the corpus of a cache folder; None if it does not exist or is damaged."""
    try:
        header = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
        for name, expected in header["sha256"].items():
            with (folder / name).open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != expected:
                    return None
        source, target = (
            Ragged(
                np.asarray(np.memmap(folder / f"{side}.ids", dtype=dtype, mode="r")),  # slices faster than a memmap
                np.asarray(np.memmap(folder / f"{side}.ends", dtype="<i8", mode="r")),
            )
            for side, dtype in zip(SIDES, header["dtype"], strict=True)
        )
        return EncodedSides(source, target, CorpusCounts(**header["counts"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def write_cache(
    folder: Path, chunks: Iterator[Chunk], dtypes: Sequence[str], counts: Callable[[], CorpusCounts]
) -> None:
    """Write the chunks to a temporary folder and rename it to `folder`; `counts` is called after the last chunk."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(folder.parent)
        draft = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", suffix=".tmp", dir=folder.parent))
        try:
            _write_files(draft, chunks, dtypes, counts)
            if folder.exists():  # it must be damaged, because it could not be loaded
                shutil.rmtree(folder)
            with contextlib.suppress(FileExistsError):  # another process has written the same cache first
                draft.rename(folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise DataError(
            f"{folder}: the cache cannot be written: {error.strerror or error} (set HEEDFUL_CACHE to another"
            " folder, or data.in_memory to the number of pairs to keep in memory)"
        ) from None


class _HashedFile:
    """A file that is hashed while it is written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: BinaryIO = path.open("wb")
        self.digest = hashlib.sha256()

    def write(self, array: Array) -> None:
        raw = array.tobytes()
        self.digest.update(raw)
        self.file.write(raw)

    def sync(self) -> str:
        """Write everything to disk and return the hash."""
        self.file.flush()
        os.fsync(self.file.fileno())
        return self.digest.hexdigest()

    def close(self) -> None:
        with contextlib.suppress(OSError):  # of data that did not fit on the disk, which has been reported
            self.file.close()


def _write_files(
    draft: Path, chunks: Iterator[Chunk], dtypes: Sequence[str], counts: Callable[[], CorpusCounts]
) -> None:
    ids = [_HashedFile(draft / f"{side}.ids") for side in SIDES]
    ends = [_HashedFile(draft / f"{side}.ends") for side in SIDES]
    last_ends = [0, 0]
    try:
        for file in ends:
            file.write(np.zeros(1, dtype="<i8"))
        for chunk in chunks:
            for side in (0, 1):
                row_ends = last_ends[side] + np.cumsum(chunk.lengths[side])
                last_ends[side] = int(row_ends[-1])
                ids[side].write(chunk.ids[side])
                ends[side].write(row_ends.astype("<i8"))
        hashes = {file.path.name: file.sync() for file in (*ids, *ends)}
    finally:
        for file in (*ids, *ends):
            file.close()
    header = {"format": FORMAT, "sha256": hashes, "dtype": list(dtypes), "counts": counts()._asdict()}
    (draft / "corpus.json").write_text(json.dumps(header, indent=1), encoding="utf-8")


def _remove_abandoned(parent: Path) -> None:
    """Remove temporary folders of killed processes."""
    for draft in parent.glob("*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - max(p.stat().st_mtime for p in (draft, *draft.iterdir())) > STALE_SECONDS:
                shutil.rmtree(draft)
