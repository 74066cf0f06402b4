"""Load the best build of the C kernels that this processor can run; they share torch's OpenMP threads.

Environment variables:

HEEDFUL_KERNELS=0        compute everything with torch
HEEDFUL_KERNELS=NAME     use no faster instructions than these: plain, avx2, avx-vnni, avx512-vnni
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
PLAIN = "plain"  # int8 products without special instructions
LIMITS = {PLAIN: 0, "avx2": 3, "avx-vnni": 3, "avx512-vnni": 4}  # values of SWITCH, and the best build of each


class Kernels(NamedTuple):
    """A loaded build, its level and the name of the instructions of its int8 products (csrc/int8_tiles.c)."""

    library: ctypes.CDLL
    level: int
    int8: str = PLAIN


def library() -> ctypes.CDLL | None:
    """Return the C kernels, or None where they were not built, cannot be loaded or are switched off."""
    kernels = _load()
    return None if kernels is None else kernels.library


def int8_name() -> str:
    """Return the name of the instructions of the int8 products in use; "plain" without special instructions."""
    kernels = _load()
    return PLAIN if kernels is None else kernels.int8


def has_fast_int8() -> bool:
    """Return whether this processor has instructions for int8 products; without them int8 is slower than float32."""
    kernels = _load()
    return kernels is not None and kernels.int8 != PLAIN


@cache
def _load() -> Kernels | None:
    limit = os.environ.get(SWITCH, "")
    if limit == "0":
        return None
    if limit not in ("", "1", *LIMITS):
        warnings.warn(f"{SWITCH}={limit} has no effect; known: 0, {', '.join(LIMITS)}", stacklevel=2)
    return load_from(FOLDER, limit if limit in LIMITS else None)


def load_from(folder: Path, limit: str | None = None) -> Kernels | None:
    """Load the best build in a folder that this processor supports and `limit`, a name in LIMITS, allows.

    If a build is missing or cannot be loaded, the next lower level is tried: a processor with VNNI uses the AVX2
    kernels if only those were built.
    """
    baseline = open_build(folder, 0)  # runs on every processor and can query its level
    if baseline is None:
        return None
    best_level = min(int(baseline.heed_cpu_level()), LIMITS[limit] if limit else LEVELS[0])
    for level in LEVELS:
        kernels = open_build(folder, level) if level <= best_level else None
        if kernels is not None:
            return Kernels(kernels, level, choose_int8(kernels, limit))
    return None


def int8_names(kernels: ctypes.CDLL) -> list[str | None]:
    """Return the int8 products of a build, fastest first; None stands for one that this processor cannot run."""
    names: list[str | None] = []
    while (name := kernels.heed_int8_name(len(names))) != b"":
        names.append(name and name.decode())
    return names


def choose_int8(kernels: ctypes.CDLL, limit: str | None = None) -> str:
    """Use the fastest int8 products of a build that `limit` allows, and return their name."""
    names = int8_names(kernels)
    first = names.index(limit) if limit in names else 0
    index, name = next((i, name) for i, name in enumerate(names) if name and i >= first)
    kernels.heed_choose_int8(index)
    return name


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
