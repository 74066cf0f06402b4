"""Files that are written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from heedful.errors import HeedfulError


@contextmanager
def whole(path: Path, error: type[HeedfulError], *, parents: bool = False) -> Iterator[Path]:
    """A name to write to; it becomes `path` only when the block ends well.

    A run that is killed leaves `path` as it was (and perhaps a draft beside it), so whatever lies under a
    final name can be trusted. What the disk refuses becomes an `error`. `parents`: folders are made.
    """
    draft = path.with_name(f"{path.stem}.tmp{path.suffix}")
    try:
        if parents:
            path.parent.mkdir(parents=True, exist_ok=True)
        yield draft
        draft.replace(path)
    except BaseException as found:
        with suppress(OSError):
            draft.unlink()
        if isinstance(found, OSError):
            raise error(f"{path}: cannot be written: {found.strerror or found}") from found
        raise
