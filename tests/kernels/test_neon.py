"""The int8 products of ARM processors, under an emulator: equal to those in plain C."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from heedful.kernels import loader

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
PROGRAM = r"""
#include <stdio.h>
#include "int8_tiles.c"

int main(void) {
  for (i64 rows = 1; rows <= 13; rows++)
    for (i64 groups = 1; groups <= 4; groups++)
      for (i64 quads = 1; quads <= 19; quads += 6) {
        uint8_t x[13 * 19 * 4];
        int8_t w[4 * 19 * 64];
        int32_t fast[13 * 64], plain[13 * 64];
        for (i64 i = 0; i < rows * quads * 4; i++) x[i] = (uint8_t)(rand() % 255 - 127);
        for (i64 i = 0; i < groups * quads * 64; i++) w[i] = (int8_t)(rand() % 255 - 127);
        INT8_KERNELS[0].product(x, w, rows, quads, groups, fast);
        INT8_KERNELS[1].product(x, w, rows, quads, groups, plain);
        if (memcmp(fast, plain, sizeof(int32_t) * rows * groups * 16)) return 1;
      }
  puts(heed_int8_name(0) ? heed_int8_name(0) : "unsupported");
  return 0;
}
"""

pytestmark = pytest.mark.skipif(
    not (shutil.which(COMPILER) and shutil.which(EMULATOR)), reason=f"needs {COMPILER} and {EMULATOR}"
)


@pytest.mark.parametrize(("processor", "name"), [("max", "neon-dot"), ("cortex-a53", "unsupported")])
def test_products_with_neon_equal_those_in_plain_c(processor: str, name: str, tmp_path: Path) -> None:
    source, program = tmp_path / "neon.c", tmp_path / "neon"
    source.write_text(PROGRAM if name == "neon-dot" else PROGRAM.replace("INT8_KERNELS[0].", "INT8_KERNELS[1]."))
    flags = ["-O3", "-ffast-math", "-static", f"-I{Path(loader.__file__).parent / 'csrc'}"]
    command = [COMPILER, *flags, str(source), "-o", str(program), "-lm"]
    subprocess.run(command, check=True, capture_output=True)
    done = subprocess.run([EMULATOR, "-cpu", processor, program], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout == f"{name}\n"
