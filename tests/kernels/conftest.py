"""Fixtures of the kernels room: every C build that this processor can run, and torch in their place."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch

from heedful.kernels import loader


def runnable() -> list[tuple[int, str]]:
    """Return the builds that this processor can run, each with every kind of int8 products that it can run."""
    baseline = loader.open_build(loader.FOLDER, 0)
    levels = [level for level in loader.LEVELS if baseline is not None and level <= baseline.heed_cpu_level()]
    builds = {level: loader.open_build(loader.FOLDER, level) for level in levels}
    return [(n, name) for n, build in builds.items() if build for name in loader.int8_names(build) if name]


def use_build(level: int, int8: str | None, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    library = loader.open_build(loader.FOLDER, level)
    assert library is not None
    name = loader.choose_int8(library, int8)
    assert int8 in (None, name)
    monkeypatch.setattr(loader, "_load", lambda: loader.Kernels(library, level, name))
    torch.manual_seed(0)
    yield level
    loader.choose_int8(library)


@pytest.fixture(params=sorted({level for level, _ in runnable()}), ids=lambda level: f"level-{level}")
def c_build(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Use this build of the kernels, whatever the processor's best is."""
    yield from use_build(request.param, None, monkeypatch)


@pytest.fixture(params=runnable(), ids=lambda build: f"level-{build[0]}-{build[1]}")
def c_int8(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Use this build with these int8 products."""
    level, int8 = request.param
    yield from use_build(level, int8, monkeypatch)


@pytest.fixture
def use_torch(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A function after whose call torch computes everything."""
    return lambda: monkeypatch.setattr(loader, "_load", lambda: None)
