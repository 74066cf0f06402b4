"""Atomic writes: a file is replaced as a whole or stays as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from heedful.errors import HeedfulError


@contextmanager
def atomic_write(path: Path, error: type[HeedfulError], *, parents: bool = False) -> Iterator[Path]:
    """Yield a temporary path, which is renamed to `path` when the block ends without an exception.

    A process that is killed leaves `path` unchanged, perhaps with the temporary file beside it. An `OSError` is raised
    again as `error`. With `parents` missing folders are created.
    """
    temporary = path.with_name(f"{path.stem}.tmp{path.suffix}")
    try:
        if parents:
            path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        temporary.replace(path)
    except BaseException as reason:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(reason, OSError):
            raise error(f"{path}: cannot be written: {reason.strerror or reason}") from reason
        raise
