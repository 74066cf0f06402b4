"""Pages use the model that `make demo` trains."""

from __future__ import annotations

import pytest

from demo import train_demo


@pytest.fixture(scope="session", autouse=True)
def demo_model() -> None:
    train_demo()
