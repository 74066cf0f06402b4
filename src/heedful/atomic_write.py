"""Atomic writes: a file is replaced as a whole or stays as it was."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from heedful.errors import HeedfulError

PSEUDO_FILE_SYSTEMS = ("dev", "proc")  # top-level folders whose files are streams


@contextmanager
def atomic_write(path: Path, error: type[HeedfulError], *, parents: bool = False) -> Iterator[Path]:
    """Yield a temporary path, which is renamed to `path` when the block ends without an exception.

    The temporary file is created beside the target under a random name, so that it cannot be a file of the user's. A
    symbolic link stays, and the file that it points to is replaced. What is not a regular file (`/dev/stdout`, a named
    pipe) is yielded itself and written directly.

    A process that is killed leaves `path` unchanged, perhaps with the temporary file beside it. An `OSError` is raised
    again as `error`. With `parents` missing folders are created.
    """
    temporary: Path | None = None
    try:
        if _is_stream(path):
            yield path
            return
        target = path.resolve()
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if parents:
            target.parent.mkdir(parents=True, exist_ok=True)
        temporary = create_temporary(target)
        yield temporary
        if target.exists():
            shutil.copymode(target, temporary)
        sync_file(temporary)
        temporary.replace(target)
    except BaseException as reason:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink()
        if isinstance(reason, OSError):
            raise error(f"{path}: cannot be written: {reason.strerror or reason}") from reason
        raise


def create_temporary(target: Path) -> Path:
    """Create an empty file beside `target`, with a random name, the same suffix and the user's usual permissions."""
    while True:
        temporary = target.with_name(f".{target.stem[:100]}.{secrets.token_hex(6)}.tmp{target.suffix}")
        with suppress(FileExistsError):
            temporary.open("xb").close()  # unlike mkstemp, respects the umask
            return temporary


def sync_file(path: Path) -> None:
    """Wait until the content of a file is on disk."""
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def _is_stream(path: Path) -> bool:
    if path.absolute().parts[1:2] and path.absolute().parts[1] in PSEUDO_FILE_SYSTEMS:
        return True
    return path.exists() and not path.is_file() and not path.is_dir()
