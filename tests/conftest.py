"""Before anything is imported: shapes are checked at run time in the tensor rooms."""

from __future__ import annotations

import os
from collections.abc import Iterator

# Some virtual machines announce matrix instructions they do not have: bfloat16 then kills the process.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")

import jaxtyping
import pytest

TENSOR_ROOMS = ("attention", "layers", "models", "decoding")
jaxtyping.install_import_hook([f"heedful.{room}" for room in TENSOR_ROOMS], "beartype.beartype")


@pytest.fixture
def as_users_run() -> Iterator[None]:
    """Without the tests' shape checker, so that the package's own errors are seen."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
