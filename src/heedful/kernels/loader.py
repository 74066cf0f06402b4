"""Load the best build of the C kernels that this processor can run; they share torch's OpenMP threads.

Environment variables:

HEEDFUL_KERNELS=0        compute everything with torch
HEEDFUL_KERNELS_DIR=DIR  load kernels-LEVEL.so from this folder instead of the package's (`make sanitize`)
"""

from __future__ import annotations

import ctypes
import os
import warnings
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch  # noqa: F401 - its OpenMP library must be loaded first

from heedful.kernels.structs import InterfaceError, declare
from heedful.parallel import openmp_libraries

FOLDER = Path(os.environ.get("HEEDFUL_KERNELS_DIR") or Path(__file__).parent)
SWITCH = "HEEDFUL_KERNELS"  # environment variable; 0 disables the kernels
LEVELS = (4, 3, 0)  # builds, best first; see hatch_build.py
VNNI_LEVEL = 4


class Kernels(NamedTuple):
    """A loaded build and its level."""

    library: ctypes.CDLL
    level: int


def library() -> ctypes.CDLL | None:
    """Return the C kernels, or None where they were not built, cannot be loaded or are switched off."""
    kernels = _load()
    return None if kernels is None else kernels.library


def has_fast_int8() -> bool:
    """Return whether the loaded kernels multiply int8 with VNNI; without it int8 is slower than float32."""
    kernels = _load()
    return kernels is not None and kernels.level == VNNI_LEVEL


@cache
def _load() -> Kernels | None:
    return None if os.environ.get(SWITCH) == "0" else load_from(FOLDER)


def load_from(folder: Path) -> Kernels | None:
    """Load the best build in a folder that this processor supports.

    If a build is missing or cannot be loaded, the next lower level is tried: a processor with VNNI uses the AVX2
    kernels if only those were built.
    """
    baseline = open_build(folder, 0)  # runs on every processor and can query its level
    if baseline is None:
        return None
    cpu_level = int(baseline.heed_cpu_level())
    for level in LEVELS:
        kernels = open_build(folder, level) if level <= cpu_level else None
        if kernels is not None:
            return Kernels(kernels, level)
    return None


def open_build(folder: Path, level: int) -> ctypes.CDLL | None:
    """Open one build and declare its functions; None if it does not exist or cannot be used."""
    path = folder / f"kernels-{level}.so"
    if not path.exists():
        return None
    try:
        _share_openmp()
        kernels = ctypes.CDLL(str(path))
        declare(kernels)
    except (OSError, InterfaceError) as error:
        warnings.warn(f"{path} cannot be used ({error}); reinstall heedful to rebuild it", stacklevel=2)
        return None
    return kernels


def _share_openmp() -> None:
    """Make torch's OpenMP library visible to the kernels, so that both use one pool of threads."""
    for path in openmp_libraries() or ["libgomp.so.1"]:
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
