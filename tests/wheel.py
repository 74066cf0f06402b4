"""Test the built wheel in an environment that holds nothing of the checkout. Run by `make test`.

Builds the wheel, installs it under the pinned versions into an empty environment, and compares its output with the
checkout's: a translation by the model that `make demo` trains, and a caption by the bundled captioner once the extra
is installed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
MODEL = ROOT / "build" / "demo"
PHOTO = "import matplotlib as m; print(m.get_data_path() + '/sample_data/grace_hopper.jpg')"
LICENSES = (
    "from importlib.metadata import metadata as m; x = m('heedful'); "
    "print(x['License-Expression'], x.get_all('License-File'))"
)
LINES = "my sister sees the small cat\n\nthe old man does not sleep\n"
EXTRAS_ONLY = {"torchvision", "transformers", "pandas", "beartype", "fastapi"}


def run(*command: str | Path, stdin: str = "", cwd: Path = ROOT) -> str:
    process = subprocess.run(
        list(map(str, command)),
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=cwd,
        check=False,
    )
    if process.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{process.stdout}{process.stderr}")
    return process.stdout


def main() -> None:
    checkout = Path(sys.executable).parent
    run(checkout / "heedful", "train", "recipes/world-phrases.toml", "--out", MODEL)
    expected = run(checkout / "heedful", "translate", "-m", MODEL, stdin=LINES)
    assert len(expected.splitlines()) == 3, expected
    with tempfile.TemporaryDirectory() as name:
        clean = Path(name)
        run(sys.executable, "-m", "build", "--wheel", "--outdir", clean / "dist", ROOT)
        (wheel,) = (clean / "dist").glob("*.whl")
        venv.create(clean / "env", with_pip=True)
        binaries = clean / "env" / "bin"
        pip: tuple[str | Path, ...] = (binaries / "pip", "--disable-pip-version-check", "install")
        if uv := shutil.which("uv"):  # in CI, where it chooses the CPU build of torch
            pip = (uv, "pip", "install", "--python", binaries / "python")
        pip = (*pip, "-q", "-c", ROOT / "constraints.txt")
        run(*pip, wheel, cwd=clean)
        installed = {line.split("==")[0].lower() for line in run(binaries / "pip", "freeze").splitlines()}
        assert not EXTRAS_ONLY & installed, f"the base install is not light: {EXTRAS_ONLY & installed}"
        print(run(binaries / "python", ROOT / "tests" / "smoke.py", cwd=clean), end="")
        actual = run(binaries / "heedful", "translate", "-m", MODEL, stdin=LINES, cwd=clean)
        assert actual == expected, f"the wheel gives {actual!r}, the checkout {expected!r}"
        licenses = run(binaries / "python", "-c", LICENSES, cwd=clean)
        for text in ("MIT AND ", "non-commercial", "LICENSE-MODELS"):
            assert text in licenses, licenses
        run(*pip, f"{wheel}[caption]", cwd=clean)
        photo = run(binaries / "python", "-c", PHOTO, cwd=clean).strip()
        caption = run(binaries / "heedful", "caption", photo, "-o", "panels.png", cwd=clean)
        assert caption == run(checkout / "heedful", "caption", photo), caption
        assert (clean / "panels.png").stat().st_size > 10_000
    print(f"wheel: {wheel.name} works in a clean environment")


if __name__ == "__main__":
    main()
