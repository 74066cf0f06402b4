"""Run the tests and the fuzz of the C kernels under the address and undefined-behavior sanitizers (`make sanitize`).

Builds every processor level into build/sanitize and lets the tests load the kernels from there (HEEDFUL_KERNELS_DIR).
The first read or write outside a tensor, or the first undefined operation, ends the run with a stack trace. Arguments
are passed to pytest.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
OUT = ROOT / "build" / "sanitize"
FLAGS = [
    "-fsanitize=address,undefined,float-cast-overflow",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
    "-g",
]
TESTS = ["tests/kernels", "tests/inference", "tests/fused"]
FUZZ_CASES = "100"  # per kernel and processor level


def build_kernels() -> list[str]:
    build = runpy.run_path(str(ROOT / "hatch_build.py"))
    OUT.mkdir(parents=True, exist_ok=True)
    names: list[str] = build["_build_kernels"](ROOT / build["KERNELS"], OUT, FLAGS)
    return names


def compiler_library(name: str) -> str:
    """Return the file of a library of the compiler."""
    command = [os.environ.get("CC") or "cc", f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    names = build_kernels()
    if not names:
        sys.exit("the kernels were not built: a C compiler on Linux is needed")
    print(f"built {', '.join(names)} in {OUT.relative_to(ROOT)}", flush=True)
    for report in OUT.glob("report.*"):
        report.unlink()
    log = f"log_path={OUT / 'report'}"  # pytest captures what is printed, and dies with it
    environment = os.environ | {
        "HEEDFUL_KERNELS_DIR": str(OUT),
        "HEEDFUL_KERNEL_CASES": os.environ.get("HEEDFUL_KERNEL_CASES", FUZZ_CASES),
        # The sanitizer must be loaded before Python, and finds torch's exceptions only if C++ is loaded with it.
        "LD_PRELOAD": " ".join(map(compiler_library, ("libasan.so", "libstdc++.so.6"))),
        "ASAN_OPTIONS": f"detect_leaks=0:halt_on_error=1:{log}",  # Python and torch keep memory until the end
        "UBSAN_OPTIONS": f"halt_on_error=1:print_stacktrace=1:{log}",
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    arguments = sys.argv[1:] or TESTS
    status = subprocess.run([sys.executable, "-m", "pytest", *arguments], env=environment, cwd=ROOT).returncode
    reports = sorted(OUT.glob("report.*"))
    for report in reports:
        print(report.read_text(encoding="utf-8", errors="replace"))
    sys.exit(status or len(reports))


if __name__ == "__main__":
    main()
