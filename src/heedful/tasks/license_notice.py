"""The license of a model and whom its data is from, shown when it is first used."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

from heedful.data.paths import cache_folder


class Licensed(Protocol):
    """A loaded model: its name, its card and the hash of its weights."""

    @property
    def name(self) -> str: ...
    @property
    def card(self) -> Mapping[str, Any]: ...
    def sha256(self) -> str: ...


def show_license_once(loaded: Licensed) -> None:
    """Print license and attribution of a model to stderr the first time it is used on this machine."""
    license = loaded.card.get("license")
    if not license:
        return
    marker = cache_folder() / "licenses" / loaded.sha256()
    if marker.exists():
        return
    print("; ".join(filter(None, [f"{loaded.name}: {license}", loaded.card.get("attribution")])), file=sys.stderr)
    with suppress(OSError):  # an unwritable cache shows the license again
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
