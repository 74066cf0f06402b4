"""The model of `make demo`, trained once and shared by all tests, documentation pages and test processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from filelock import FileLock

ROOT = Path(__file__).parent.parent
RECIPE = ROOT / "recipes" / "world-phrases.toml"
FOLDER = ROOT / "build" / "demo"


def train_demo() -> Path:
    """Return the folder of the model, which is trained if it does not exist; other processes wait meanwhile."""
    FOLDER.parent.mkdir(exist_ok=True)
    with FileLock(FOLDER.with_suffix(".lock")):
        if not (FOLDER / "model.json").is_file():
            command = [sys.executable, "-m", "heedful", "train", str(RECIPE), "--out", str(FOLDER)]
            subprocess.run(command, check=True, capture_output=True)
    return FOLDER
