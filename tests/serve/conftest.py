from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from serve.local import LocalServer, running
from serve.server import Server, serving
from small_models import random_model_folder, small_preset


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A server of the bundled models, in a process of its own."""
    with serving() as process:
        yield process


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small translator with random weights."""
    widths = {"embedding": 64, "encoder__hidden": 64, "decoder__hidden": 128, "attention__hidden": 64}
    return random_model_folder(tmp_path_factory.mktemp("serve") / "m", small_preset("cgru", **widths)).path


@pytest.fixture(scope="session")
def local(folder: Path) -> Iterator[LocalServer]:
    """A server of the small translator in a thread; tests leave its settings and models alone."""
    with running(folder) as started:
        yield started
