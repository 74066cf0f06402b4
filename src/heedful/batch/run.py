"""A whole job: what is done already is skipped, the rest is computed here or on a cluster, and the manifest written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from heedful.batch.job import Job, digest_of, finished, write_manifest
from heedful.batch.local import OnDone, run_local
from heedful.batch.parts import Part
from heedful.errors import DataError
from heedful.tasks.run_lock import lock_folder


class Engine(Protocol):
    """Computes parts somewhere; calls `on_done` with the record of each, in any order."""

    def __call__(self, job: Job, parts: Sequence[Part], digest: str, workers: int, on_done: OnDone) -> None: ...


class BatchResult(NamedTuple):
    """The number of parts and rows, and of rows that failed."""

    parts: int
    skipped: int  # parts that were done before
    rows: int
    failed: int


def run_batch(
    job: Job,
    parts: Sequence[Part],
    workers: int = 1,
    engine: Engine = run_local,
    on_start: Callable[[int, int], None] | None = None,
    on_done: OnDone | None = None,
) -> BatchResult:
    """Compute the parts of a job that are not done, and write its manifest."""
    signature = job.signature()
    with _output_folder(job.out):
        records = finished(job, parts, signature)
        skipped = len(records)
        if on_start is not None:
            on_start(len(parts), skipped)

        def note(record: dict[str, Any]) -> None:
            records[record["part"]] = record
            if on_done is not None:
                on_done(record)

        remaining = [part for part in parts if part.name not in records]
        if remaining:
            engine(job, remaining, digest_of(signature), workers, note)
        ordered = [records[part.name] for part in parts]
        write_manifest(job, signature, ordered, version("heedful"))
    rows, failed = (sum(record[key] for record in ordered) for key in ("rows", "failed"))
    return BatchResult(len(parts), skipped, rows, failed)


@contextmanager
def _output_folder(folder: Path) -> Iterator[None]:
    """Make a folder and hold its lock; one that is new and stays empty, because an input was refused, is removed."""
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder}: cannot be made a folder: {error.strerror}") from None
    try:
        with lock_folder(folder, "batch.lock", "written"):
            yield
    finally:
        if is_new:
            with suppress(OSError):  # it is not empty
                folder.rmdir()
