"""Changes to model folders on purpose: by the user, who removes the hashes, or by a stranger, who writes new ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from heedful.tasks.model_card import CARD, hash_files


def change_card(folder: Path, **fields: Any) -> None:
    """Set fields of a model's card; None removes one."""
    card = {**json.loads((folder / CARD).read_text(encoding="utf-8")), **fields}
    (folder / CARD).write_text(json.dumps({key: value for key, value in card.items() if value is not None}))


def forget_hashes(folder: Path) -> None:
    """Remove the hashes from a model's card, as models of the first versions have none."""
    change_card(folder, files=None)


def write_hashes(folder: Path) -> None:
    """Write the hashes of the files as they are now."""
    change_card(folder, files=hash_files(folder))
