from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cli.corpus import write_corpus
from command_line import heedful


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A folder with good data and a recipe for it."""
    return write_corpus(tmp_path)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained model; tests must not change it."""
    folder = write_corpus(tmp_path_factory.mktemp("trained"))
    done = heedful("train", folder / "r.toml", "--out", folder / "m")
    assert done.returncode == 0, done.stderr
    return folder / "m"


@pytest.fixture
def model(trained: Path, tmp_path: Path) -> Path:
    """A copy of the trained model, which a test may damage."""
    return Path(shutil.copytree(trained, tmp_path / "m"))
