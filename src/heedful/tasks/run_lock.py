"""The lock of a folder that is being written, such as a model in training: one process at a time writes into it."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heedful.errors import TrainingError

LOCK_FILE = "training.lock"
if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


HELD = (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK)  # another process has the lock
UNSUPPORTED = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)  # some network file systems


@contextmanager
def lock_folder(folder: Path, name: str = LOCK_FILE, doing: str = "trained") -> Iterator[bool]:
    """Hold the lock file of a folder, which contains the process id; a folder locked by another process is refused.

    The operating system releases the lock when a process ends, however it ends: the file of a killed process does not
    block the next one. Yields True if there was such a file: the folder belongs to a run that was killed.
    """
    path = folder / name
    descriptor, stale = _acquire(path, doing)
    try:
        yield stale
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(path: Path, doing: str) -> tuple[int, bool]:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
        owner = os.read(descriptor, 20).decode(errors="replace").strip()
        try:
            _try_lock(descriptor)
        except OSError as error:
            if error.errno in HELD:
                os.close(descriptor)
                raise TrainingError(
                    f"{path.parent} is being {doing} by another process ({owner or 'starting'});"
                    " wait for it to end, or give another --out"
                ) from None
            if error.errno not in UNSUPPORTED:
                os.close(descriptor)
                raise
        if path.exists() and path.stat().st_ino == os.fstat(descriptor).st_ino:
            break
        os.close(descriptor)  # the process before us has just removed the file
    if owner and not owner.isdigit():
        os.close(descriptor)
        raise TrainingError(f"{path}: not a lock of heedful, and not overwritten; give another --out")
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.truncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode())
    return descriptor, bool(owner)
