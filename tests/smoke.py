"""Use the installed heedful as a new user would, in an empty folder: `python tests/smoke.py`.

Run by cibuildwheel and by `tests/wheel.py` against a wheel in a clean environment. Needs nothing but the package:
the bundled translator, a trace, a picture and the page.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

SENTENCE = "The black cat sleeps on the old chair."


def heedful(*arguments: str, folder: Path, stdin: str = "") -> str:
    command = [sys.executable, "-m", "heedful", *arguments]
    process = subprocess.run(command, input=stdin, capture_output=True, encoding="utf-8", cwd=folder, check=False)
    if process.returncode:
        sys.exit(f"heedful {' '.join(arguments)} failed:\n{process.stdout}{process.stderr}")
    return process.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        assert "en-fr" in heedful("models", folder=folder)
        translation = heedful("translate", folder=folder, stdin=f"{SENTENCE}\n")
        assert "chat" in translation, translation
        heedful("trace", SENTENCE, "--replay", "-o", "trace.json", folder=folder)
        heedful("show", "trace.json", "-o", "alignment.png", folder=folder)
        assert (folder / "alignment.png").read_bytes().startswith(b"\x89PNG")
        heedful("show", "trace.json", "-o", "walk.html", folder=folder)
        assert "<script" in (folder / "walk.html").read_text(encoding="utf-8")
    print("smoke test passed:", translation.strip())


if __name__ == "__main__":
    main()
