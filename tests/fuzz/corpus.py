"""The intact files that cases are made from: small models of every task, their traces, recipes and pictures."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from filelock import FileLock

import heedful

TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent
FOLDER = ROOT / "build" / "fuzz" / "corpus"
VERSION = "2"  # another number builds the corpus anew
SMALL = """
[training]
epochs = 1
max_steps = 3
batch_tokens = 100
threads = 1
"""
SIZES = """
embedding = 8
dropout = 0.0
[model.encoder]
hidden = 4
heads = 2
feedforward = 8
[model.decoder]
hidden = 8
heads = 2
feedforward = 8
[model.attention]
hidden = 4
"""
SHORT = "[decoding]\nmax_length = 6\n"
PHRASES = (
    '[data]\non_too_long = "cut"\nmax_source = 20\nmax_target = 20\n'
    "[data.world]\ntrain = 60\nvalid = 6\ntest = 6\nmax_words = 6\n"
)
MOODS = '[data.world]\nname = "moods"\ntrain = 40\nvalid = 6\ntest = 6\nmax_words = 8\n'
TASTES = '[data.world]\nname = "tastes"\ntrain = 30\nvalid = 6\ntest = 6\nitems = 200\ngenres = 8\n'
SCENES = '[data.world]\nname = "scenes"\ntrain = 12\nvalid = 4\ntest = 4\npixels = 48\n[data.images]\nsize = 32\n'
LANGUAGE_MODEL = "embedding = 8\ndropout = 0.0\n[model.language_model]\nhidden = 8\nheads = 2\nfeedforward = 8\n"
RECIPES = {
    "translate": f'{PHRASES}[model]\npreset = "bigru-gru"{SIZES}{SMALL}{SHORT}',
    "transformer": f'{PHRASES}[tokenizer]\nkind = "bpe"\nvocab_size = 300\nshared = true\n[model]\n'
    f'preset = "transformer"{SIZES}{SMALL}{SHORT}',
    "transduce": f'[task]\nkind = "transduce"\n{PHRASES.replace("20", "60")}'
    f'[tokenizer]\nkind = "character"\nshared = true\n[model]\npreset = "luong"\n'
    f"copying = true{SIZES.replace('hidden = 4', 'hidden = 8', 1)}{SMALL}{SHORT}",
    "classify": f'[task]\nkind = "classify"\n{MOODS}'
    f'[model]\npreset = "classify-learned"\nembedding = 8\n[model.encoder]\nhidden = 4\n'
    f"[model.attention]\nhidden = 4\n{SMALL}",
    "recommend": f'[task]\nkind = "recommend"\n{TASTES}[model]\npreset = "nais-prod"\nembedding = 4\n{SMALL}',
    "popularity": f'[task]\nkind = "recommend"\n{TASTES}[model]\npreset = "popularity"\n{SMALL}',
    "read": f'[task]\nkind = "read"\n{PHRASES}[model]\npreset = "read-lstmn"\n{LANGUAGE_MODEL}{SMALL}',
    "read-transformer": f'[task]\nkind = "read"\n{PHRASES}'
    f'[model]\npreset = "read-transformer"\n{LANGUAGE_MODEL}{SMALL}',
    "caption": f'[task]\nkind = "caption"\n{SCENES}[model]\npreset = "caption-soft"{SIZES}{SMALL}{SHORT}',
}
STORED = {"format-1": "cgru", "format-1-transformer": "transformer"}  # models of format 1
INPUTS = {
    "translate": "the cat sees a dog",
    "transformer": "the cat sees",
    "transduce": "cat",
    "classify": "that soup was never dull",
    "recommend": "user:1",
    "read": "the cat sees a dog",
    "caption": "photo.png",
}
TRANSFORMERS = ("marian", "bert")
TRACE_OPTIONS = {
    "translate": ("--what-if", "--beam", "2", "--gold", "0-0 1-1"),
    "transformer": ("--detail", "full"),
    "classify": ("--set", "uniform"),
}


@dataclass(frozen=True)
class Corpus:
    """Files of intact models by model, traces by name, recipes by name, and one picture."""

    models: Mapping[str, Mapping[str, bytes]]
    transformers: Mapping[str, Mapping[str, bytes]]  # folders as transformers writes them
    traces: Mapping[str, bytes]
    recipes: Mapping[str, bytes]
    photo: bytes


@cache
def load_corpus() -> Corpus:
    """Return the corpus; it is built if it is not there."""
    source = Path(heedful.__file__).parent
    formats = [
        (source / name).read_bytes()
        for name in ("tasks/model_folder.py", "tasks/model_card.py", "trace/schema/trace.py")
    ]
    key = hashlib.sha256(repr((VERSION, RECIPES, INPUTS, TRACE_OPTIONS, formats)).encode()).hexdigest()[:12]
    folder = FOLDER / key
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _build(folder)
    models = {name: _read_folder(folder / name) for name in RECIPES}
    models |= {name: _read_folder(TESTS / "stored" / "1" / stored) for name, stored in STORED.items()}
    traces = {path.stem: path.read_bytes() for path in sorted(folder.glob("*.json"))}
    traces |= {path.stem: path.read_bytes() for path in sorted((TESTS / "stored" / "1").glob("*.json"))}
    recipes = {path.name: path.read_bytes() for path in sorted((ROOT / "recipes").glob("*.toml"))}
    recipes |= {
        f"{path.parent.name}-{path.name}": path.read_bytes() for path in sorted(TESTS.glob("stored/*/*/*.toml"))
    }
    recipes |= {f"small-{name}.toml": text.encode() for name, text in RECIPES.items()}
    transformers = {name: _read_folder(folder / f"hf-{name}") for name in TRANSFORMERS}
    return Corpus(models, transformers, traces, recipes, (folder / "photo.png").read_bytes())


def _read_folder(folder: Path) -> dict[str, bytes]:
    names = sorted(path.name for path in folder.iterdir() if path.is_file() and path.name != "metrics.jsonl")
    return {name: (folder / name).read_bytes() for name in names}


def _build(folder: Path) -> None:
    """Train the models and record their traces, in one process of its own."""
    folder.mkdir(parents=True)
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(TESTS))))
    cache_folder = str(FOLDER / "cache")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path, "HEEDFUL_CACHE": cache_folder}
    command = [sys.executable, "-m", "fuzz.corpus", str(folder)]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if process.returncode:
        raise RuntimeError(f"the corpus cannot be built:\n{process.stderr}")
    (folder / "complete").touch()


def _build_here(folder: Path) -> None:
    from command_line import Completed, here
    from small_captioners import save_scene

    def check(done: Completed) -> None:
        if done.returncode:
            sys.exit(f"{done.args}\n{done.stderr}")

    save_scene(folder / "photo.png")
    for name, text in RECIPES.items():
        (folder / f"{name}.toml").write_text(text)
        check(here("train", folder / f"{name}.toml", "--out", folder / name))
    for name, line in INPUTS.items():
        source = str(folder / line) if line.endswith(".png") else line
        options = TRACE_OPTIONS.get(name, ())
        check(here("trace", source, "-m", folder / name, "-o", folder / f"{name}.json", *options))
    _save_transformers(folder)


def _save_transformers(folder: Path) -> None:
    from integrations import tiny_transformers as tiny

    tokenizer = tiny.tokenizer()
    heedful.from_transformers(tiny.marian(len(tokenizer)), tokenizer).save_pretrained(folder / "hf-marian")
    tokenizer = tiny.tokenizer("wordpiece", "<s> $A </s>")
    heedful.from_transformers(tiny.bert(len(tokenizer)), tokenizer).save_pretrained(folder / "hf-bert")


if __name__ == "__main__":
    _build_here(Path(sys.argv[1]))
