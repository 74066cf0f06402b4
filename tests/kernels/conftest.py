"""Fixtures of the kernels room: every C build that this processor can run, and torch in their place."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from heedful.kernels import loader

BUILDS = [level for level in loader.LEVELS if (loader.FOLDER / f"kernels-{level}.so").is_file()]


@pytest.fixture(params=BUILDS, ids=lambda level: f"level-{level}")
def c_build(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Use this build of the kernels, whatever the processor's best is."""
    baseline = loader.open_build(loader.FOLDER, 0)
    assert baseline is not None
    if request.param > baseline.heed_cpu_level():
        pytest.skip("this processor cannot run this build")
    library = loader.open_build(loader.FOLDER, request.param)
    assert library is not None
    monkeypatch.setattr(loader, "_load", lambda: loader.Kernels(library, request.param))
    torch.manual_seed(0)
    return int(request.param)


@pytest.fixture
def use_torch(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A function after whose call torch computes everything."""
    return lambda: monkeypatch.setattr(loader, "_load", lambda: None)
