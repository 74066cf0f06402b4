"""Write a folder as a whole or not at all."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heedful.errors import ModelError


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder, which becomes `folder` when the block ends without an exception.

    `folder` must be new or empty. After an exception nothing is left.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ModelError(f"{folder}: the folder is not empty; choose another one")
    draft = folder.absolute().with_name(f".{folder.name[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        draft.mkdir(parents=True)
        yield draft
        if folder.exists():
            folder.rmdir()  # empty; Windows does not replace it
        draft.rename(folder)
    except OSError as error:
        raise ModelError(f"{folder}: cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
