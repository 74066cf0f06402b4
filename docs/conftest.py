"""Pages use the model that `make demo` trains."""

from __future__ import annotations

import pytest

from demo import train_demo

collect_ignore_glob = [
    "conf.py",
    "_ext/*",
    "lessons/*",
    "reference/*",
    "project/*",
    "locale/*",
]  # the site's, without doctests


@pytest.fixture(scope="session", autouse=True)
def demo_model() -> None:
    train_demo()
