"""Create the peers' environments under HEEDFUL_RUNS/bench.

    python benchmarks/speed/environments.py           # all of them; a few minutes the first time

Peers pin old packages (OpenNMT-py: torch < 2.3; JoeyNMT: protobuf < 3.21; RecBole: numpy < 2), so each is installed
without its dependencies, next to those it needs, on the torch version that heedful uses.
"""

from __future__ import annotations

import subprocess
import sys

import paths

PEERS = {  # package, its dependencies
    "joey": (
        "joeynmt==2.3.0",
        "torch==2.13.0 numpy tokenizers tensorboard sacrebleu sentencepiece sacremoses subword-nmt matplotlib"
        " seaborn pyyaml six wrapt datasets packaging pandas pillow future importlib-metadata",
    ),
    "onmt": (
        "OpenNMT-py==3.5.1",
        "torch==2.13.0 numpy tokenizers tensorboard sacrebleu configargparse pyonmttok>=1.37,<2 pyyaml six"
        " rapidfuzz pyahocorasick fasttext-wheel spacy flask waitress ctranslate2>=4,<5",
    ),
    "recbole": (  # for benchmarks/recommend.py
        "recbole==1.2.1",
        "torch==2.13.0 numpy<2 scipy pandas<3 tqdm colorlog==4.7.2 colorama==0.4.4 scikit-learn pyyaml"
        " tensorboard thop tabulate plotly texttable psutil",
    ),
}


def create(peer: str) -> None:
    """Create the environment of a peer, unless it exists with these versions."""
    package, dependencies = PEERS[peer]
    folder = paths.FOLDER / f"env-{peer}"
    stamp = folder / "ready"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == f"{package} {dependencies}":
        return
    print(f"creating the environment of {package}", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(paths.interpreter(peer)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    constraints = ["-c", str(paths.ROOT / "constraints.txt")]  # without them pip may install CUDA builds
    subprocess.run([*pip, *constraints, *dependencies.split()], check=True)
    subprocess.run([*pip, "--no-deps", package], check=True)
    stamp.write_text(f"{package} {dependencies}", encoding="utf-8")


def versions() -> dict[str, str]:
    """Return the installed versions, for the table."""
    code = "from importlib.metadata import version as v; import sys; print(*map(v, sys.argv[1:]), sep='\\n')"
    installed = {}
    for peer, names in {
        "joey": ["joeynmt", "torch"],
        "onmt": ["OpenNMT-py", "torch", "ctranslate2"],
    }.items():
        if paths.interpreter(peer).is_file():
            command = [str(paths.interpreter(peer)), "-c", code, *names]
            process = subprocess.run(command, capture_output=True, text=True, check=True)
            installed |= dict(zip(names, process.stdout.split(), strict=True))
    return installed


def main() -> None:
    for peer in sys.argv[1:] or PEERS:
        create(peer)


if __name__ == "__main__":
    main()
