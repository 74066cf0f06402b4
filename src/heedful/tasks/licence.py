"""What a model may be used for is said when it is first used."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

from heedful.data.paths import cache_folder
from heedful.tasks.kind import Opened


def say_once(opened: Opened[Any, Any]) -> None:
    """Say the licence of a model that has one, the first time it is used on this machine."""
    licence = opened.card.get("licence")
    if not licence:
        return
    mark = cache_folder() / "licences" / opened.sha256()
    if mark.exists():
        return
    print(f"{opened.name}: {licence}", file=sys.stderr)
    with suppress(OSError):  # then it is said again
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
