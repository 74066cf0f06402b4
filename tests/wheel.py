"""Does the built wheel work where nothing of the checkout is? Run by `make test`.

It builds the wheel, installs it into an empty environment under the pins, and translates there with the
model that `make demo` trains; the answer must be the checkout's own. With the extra, a photograph that a
dependency ships is captioned there, too, by the captioner in the wheel; the licences are in its metadata.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
MODEL = ROOT / "build" / "demo"
PHOTO = "import matplotlib as m; print(m.get_data_path() + '/sample_data/grace_hopper.jpg')"
LICENCES = (
    "from importlib.metadata import metadata as m; x = m('heedful'); "
    "print(x['License-Expression'], x.get_all('License-File'))"
)
LINES = "my sister sees the small cat\n\nthe old man does not sleep\n"


def run(*words: str | Path, stdin: str = "", cwd: Path = ROOT) -> str:
    done = subprocess.run(
        list(map(str, words)),
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=cwd,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    here = Path(sys.executable).parent
    run(here / "heedful", "train", "recipes/world-phrases.toml", "--out", MODEL)
    wanted = run(here / "heedful", "translate", "-m", MODEL, stdin=LINES)
    assert len(wanted.splitlines()) == 3, wanted
    with tempfile.TemporaryDirectory() as name:
        clean = Path(name)
        run(sys.executable, "-m", "build", "--wheel", "--outdir", clean / "dist", ROOT)
        (wheel,) = (clean / "dist").glob("*.whl")
        venv.create(clean / "env", with_pip=True)
        binaries = clean / "env" / "bin"
        pins = ROOT / "constraints.txt"
        run(binaries / "pip", "install", "-q", "--disable-pip-version-check", "-c", pins, wheel, cwd=clean)
        found = run(binaries / "heedful", "translate", "-m", MODEL, stdin=LINES, cwd=clean)
        assert found == wanted, f"the wheel says {found!r}, the checkout {wanted!r}"
        run(binaries / "heedful", "trace", "my sister sleeps", "-m", MODEL, "-o", "t.json", cwd=clean)
        run(binaries / "heedful", "show", "t.json", "-o", "t.png", cwd=clean)
        run(binaries / "heedful", "show", "t.json", "-o", "t.html", cwd=clean)
        heavy = {"torchvision", "transformers", "pandas", "beartype", "fastapi"}
        listed = {line.split("==")[0].lower() for line in run(binaries / "pip", "freeze").splitlines()}
        assert not heavy & listed, f"the base install is not light: {heavy & listed}"
        told = run(binaries / "python", "-c", LICENCES, cwd=clean)
        assert "MIT AND " in told, told
        assert "non-commercial" in told, told
        assert "LICENSE-MODELS" in told, told
        pip = (binaries / "pip", "install", "-q", "--disable-pip-version-check", "-c", pins)
        run(*pip, f"{wheel}[caption]", cwd=clean)
        photo = run(binaries / "python", "-c", PHOTO, cwd=clean).strip()
        caption = run(binaries / "heedful", "caption", photo, "-o", "panels.png", cwd=clean)
        assert caption == run(here / "heedful", "caption", photo), caption
        assert (clean / "panels.png").stat().st_size > 10_000
    print(f"wheel: {wheel.name} works in a clean environment")


if __name__ == "__main__":
    main()
