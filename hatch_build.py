"""Builds the C kernels for several kinds of processor; without a compiler torch does their work."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOM = Path("src/heedful/native")
X86 = {
    0: [],
    3: ["-march=x86-64-v3"],
    4: ["-march=x86-64-v4", "-mavx512vnni", "-mprefer-vector-width=512"],
}


class Kernels(BuildHookInterface[Any]):
    """For wheels and editable installs alike."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        room = Path(self.root) / ROOM
        compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
        if self.target_name != "wheel" or compiler is None or sys.platform != "linux":
            return
        levels = X86 if platform.machine() == "x86_64" else {0: []}
        built = [name for name in (self._build(compiler, room, *item) for item in levels.items()) if name]
        if built:
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-linux_{platform.machine()}"
            build_data["artifacts"] += [str(ROOM / name) for name in built]

    def _build(self, compiler: str, room: Path, level: int, flags: list[str]) -> str | None:
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
            said = getattr(error, "stderr", b"") or str(error).encode()
            print(f"heedful: {name} was not built, torch will do its work: {said.decode()}", file=sys.stderr)
            return None
        finally:
            part.unlink(missing_ok=True)
            draft.unlink(missing_ok=True)
        return name
