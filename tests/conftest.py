"""Settings that must be made before torch and heedful are imported, and fixtures for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

# Some virtual machines announce matrix instructions they do not have; bfloat16 products then kill the process.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
# Waiting threads sleep, as on the command line: spinning ones slow down the other test processes.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import jaxtyping
import pytest

from demo import train_demo

collect_ignore = ["fuzz/guided.py"]  # imports atheris, which only `make fuzz-guided` installs

# Shapes in signatures are checked at run time in these packages.
TENSOR_PACKAGES = ("attention", "fused", "layers", "models", "inference", "decoding")
jaxtyping.install_import_hook([f"heedful.{package}" for package in TENSOR_PACKAGES], "beartype.beartype")


@pytest.fixture
def as_users_run() -> Iterator[None]:
    """Disable the shape checker of the tests, so that the package's own errors are seen."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="session")
def demo_model() -> Path:
    """Return the folder of the model that `make demo` trains."""
    return train_demo()
