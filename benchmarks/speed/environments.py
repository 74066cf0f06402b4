"""The peers' own environments, under the cache folder: never in ours.

    python benchmarks/speed/environments.py           # all of them; a few minutes the first time

Peers pin packages of their day (OpenNMT-py: torch < 2.3; JoeyNMT: protobuf < 3.21; RecBole: numpy < 2), so
each is installed without its dependencies beside those it needs, on the torch that we use.
"""

from __future__ import annotations

import subprocess
import sys

import places

PEERS = {
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
    "recbole": (  # of benchmarks/recommend.py
        "recbole==1.2.1",
        "torch==2.13.0 numpy<2 scipy pandas<3 tqdm colorlog==4.7.2 colorama==0.4.4 scikit-learn pyyaml"
        " tensorboard thop tabulate plotly texttable psutil",
    ),
}


def make(peer: str) -> None:
    """An environment with this peer; what is there already stays."""
    package, needs = PEERS[peer]
    folder = places.CACHE / f"env-{peer}"
    ready = folder / "ready"
    if ready.is_file() and ready.read_text(encoding="utf-8") == f"{package} {needs}":
        return
    print(f"making the environment of {package}", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(places.python(peer)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    constraints = ["-c", str(places.ROOT / "constraints.txt")]  # else pip may take CUDA builds
    subprocess.run([*pip, *constraints, *needs.split()], check=True)
    subprocess.run([*pip, "--no-deps", package], check=True)
    ready.write_text(f"{package} {needs}", encoding="utf-8")


def versions() -> dict[str, str]:
    """What is installed, for the table."""
    ask = "from importlib.metadata import version as v; import sys; print(*map(v, sys.argv[1:]), sep='\\n')"
    found = {}
    for peer, names in {
        "joey": ["joeynmt", "torch"],
        "onmt": ["OpenNMT-py", "torch", "ctranslate2"],
    }.items():
        if places.python(peer).is_file():
            call = [str(places.python(peer)), "-c", ask, *names]
            done = subprocess.run(call, capture_output=True, text=True, check=True)
            found |= dict(zip(names, done.stdout.split(), strict=True))
    return found


def main() -> None:
    for peer in sys.argv[1:] or PEERS:
        make(peer)


if __name__ == "__main__":
    main()
