"""Which build of the kernels is loaded, and what follows from it."""

from __future__ import annotations

import ctypes
import shutil
import sys
import warnings
from pathlib import Path

import pytest

from fresh_python import run_python
from heedful import kernels
from heedful.kernels import loader, structs
from heedful.kernels.structs import ARGUMENTS

BUILT = {level for level in loader.LEVELS if (loader.FOLDER / f"kernels-{level}.so").is_file()}
needs_builds = pytest.mark.skipif(0 not in BUILT, reason="the kernels are not built")


def copy_builds(folder: Path, levels: set[int]) -> Path:
    for level in levels:
        shutil.copy(loader.FOLDER / f"kernels-{level}.so", folder)
    return folder


def cpu_level() -> int:
    return int(ctypes.CDLL(str(loader.FOLDER / "kernels-0.so")).heed_cpu_level())


@pytest.mark.skipif(shutil.which("cc") is None or sys.platform != "linux", reason="no compiler")
def test_the_kernels_are_built_where_there_is_a_compiler() -> None:
    assert 0 in BUILT


@needs_builds
def test_the_best_build_that_the_processor_supports_is_loaded() -> None:
    loaded = loader.load_from(loader.FOLDER)
    assert loaded is not None
    assert loaded.level == max(level for level in BUILT if level <= cpu_level())


@needs_builds
@pytest.mark.parametrize("levels", [{0}, {0, 3}], ids=str)
def test_a_missing_build_gives_way_to_the_next_lower_one(levels: set[int], tmp_path: Path) -> None:
    if not levels <= BUILT:
        pytest.skip("not built")
    loaded = loader.load_from(copy_builds(tmp_path, levels))
    assert loaded is not None
    assert loaded.level == max(level for level in levels if level <= cpu_level())
    assert hasattr(loaded.library, "heed_cross_entropy")


@needs_builds
def test_a_damaged_build_gives_way_to_the_next_lower_one_with_a_warning(tmp_path: Path) -> None:
    best = max(level for level in BUILT if level <= cpu_level())
    if best == 0:
        pytest.skip("this processor has no better build than the plainest")
    copy_builds(tmp_path, BUILT)
    (tmp_path / f"kernels-{best}.so").write_bytes(b"not a library")
    with pytest.warns(UserWarning, match=rf"kernels-{best}\.so cannot be used .*reinstall heedful"):
        loaded = loader.load_from(tmp_path)
    assert loaded is not None
    assert loaded.level < best


@needs_builds
def test_a_build_of_other_sources_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ARGUMENTS, "heed_of_tomorrow", ())
    with pytest.warns(UserWarning, match="heed_of_tomorrow"):
        assert loader.load_from(copy_builds(tmp_path, {0})) is None


@needs_builds
def test_a_build_with_a_struct_of_another_size_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structs, "STRUCTS", (structs.Int8Matrix, structs.LayerNorm))
    with pytest.warns(UserWarning, match=r"struct LayerNorm has \d+ bytes instead of 24"):
        assert loader.load_from(copy_builds(tmp_path, {0})) is None


@needs_builds
def test_the_library_knows_the_size_of_every_struct() -> None:
    library = ctypes.CDLL(str(loader.FOLDER / "kernels-0.so"))
    sizes = [library.heed_struct_size(index) for index in range(-1, len(structs.STRUCTS) + 1)]
    assert sizes == [0, *map(ctypes.sizeof, structs.STRUCTS), 0]


@needs_builds
def test_a_folder_of_builds_can_be_named_in_the_environment(tmp_path: Path) -> None:
    copy_builds(tmp_path, {0})
    code = "from heedful.kernels import loader; print(loader.FOLDER, loader._load().level)"
    done = run_python(code, HEEDFUL_KERNELS_DIR=str(tmp_path))
    assert done.stdout == f"{tmp_path} 0\n", done.stderr


def test_an_empty_folder_has_no_kernels_and_says_nothing(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert loader.load_from(tmp_path) is None


@pytest.mark.parametrize(("int8", "fast"), [("avx512-vnni", True), ("avx2", True), ("plain", False), (None, False)])
def test_int8_is_fast_only_with_instructions_for_it(
    int8: str | None, fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = None if int8 is None else loader.Kernels(ctypes.CDLL(None), 3, int8)
    monkeypatch.setattr(loader, "_load", lambda: loaded)
    assert kernels.has_fast_int8() is fast


@needs_builds
@pytest.mark.parametrize("limit", loader.LIMITS)
def test_the_environment_limits_the_instructions(limit: str) -> None:
    code = "from heedful.kernels import loader; k = loader._load(); print(k.level, k.int8)"
    level, int8 = run_python(code, HEEDFUL_KERNELS=limit).stdout.split()
    order = list(loader.LIMITS)
    assert int(level) <= loader.LIMITS[limit]
    assert order.index(int8) <= order.index(limit) if int8 in order else limit != loader.PLAIN


@needs_builds
def test_an_unknown_limit_warns_and_changes_nothing() -> None:
    code = "from heedful.kernels import loader; print(loader._load().int8)"
    best, unknown = run_python(code), run_python(code, HEEDFUL_KERNELS="sse9")
    assert unknown.stdout == best.stdout
    assert "HEEDFUL_KERNELS=sse9 has no effect; known: 0, plain, avx2" in unknown.stderr


def test_the_kernels_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(loader.SWITCH, "0")
    monkeypatch.setattr(loader, "_load", loader._load.__wrapped__)
    assert kernels.library() is None
