"""Coverage-guided fuzzing of the readers by atheris: `PYTHONPATH=tests python -m fuzz.guided trace -runs=100000`.

The campaign changes intact files at random; atheris keeps the changes that reach new code. A reader may raise errors
of heedful and nothing else. atheris is not a dependency: `make fuzz-guided` installs it.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["heedful"]):
    from heedful.config.data import DataConfig
    from heedful.config.load import load_recipe
    from heedful.data.catalog import Catalog
    from heedful.data.labels import Labels
    from heedful.data.tables import open_rows
    from heedful.data.tokenizer import Tokenizer
    from heedful.errors import HeedfulError
    from heedful.tasks.model_folder import load_model
    from heedful.trace.schema import Trace, to_csv
    from heedful.trace.schema.links import read_links

from fuzz.corpus import Corpus, load_corpus  # after the imports above, which are instrumented
from fuzz.data_files import LABELED, LINKS, PAIRS

MAX_ROWS = 2_000
CONFIG = DataConfig(train=("d",), valid=("d",))


def read_trace(path: Path) -> None:
    trace = Trace.load(path)
    for record in trace.sites:
        to_csv(trace, record.site, words=True)


def read_rows(path: Path) -> None:
    for _ in islice(open_rows(path, CONFIG), MAX_ROWS):
        pass


def read_model(path: Path) -> None:
    """Open a model whose card has no hashes, so that changed weights are looked at."""
    for name, content in load_corpus().models["read"].items():
        if name == "model.json":
            content = json.dumps({key: value for key, value in json.loads(content).items() if key != "files"}).encode()
        if name != path.name:
            (path.parent / name).write_bytes(content)
    load_model(path.parent)


def from_models(name: str) -> Callable[[Corpus], Iterable[bytes]]:
    """Return a function that lists the file of this name of every model."""
    return lambda corpus: [files[name] for files in corpus.models.values() if name in files]


JSONL = b'{"source": "a cat", "target": "un chat"}\n{"translation": {"en": "a dog", "fr": "un chien"}}\n'
TARGETS: dict[str, tuple[str, Callable[[Path], object], Callable[[Corpus], Iterable[bytes]]]] = {
    # name: name of the file, reader, intact files
    "trace": ("t.json", read_trace, lambda corpus: corpus.traces.values()),
    "recipe": ("r.toml", load_recipe, lambda corpus: corpus.recipes.values()),
    "csv": (
        "d.csv",
        read_rows,
        lambda _: [PAIRS, LABELED, PAIRS.replace(b"\t", b","), b'source,target\n"a ""b""",c\n'],
    ),
    "jsonl": ("d.jsonl", read_rows, lambda _: [JSONL]),
    "links": ("l.links", read_links, lambda _: [LINKS]),
    "labels": ("labels.json", Labels.load, from_models("labels.json")),
    "tokenizer": ("source.tokenizer.json", Tokenizer.load, from_models("source.tokenizer.json")),
    "catalog": ("catalog.npz", lambda path: Catalog.load(path.parent), from_models("catalog.npz")),
    "weights": ("model.safetensors", read_model, lambda corpus: [corpus.models["read"]["model.safetensors"]]),
}


def main() -> None:
    name, *options = sys.argv[1:]
    file_name, read, intact = TARGETS[name]
    folder = Path(tempfile.mkdtemp(prefix="heedful-guided-"))
    (folder / "work").mkdir()
    (folder / "corpus").mkdir()
    path = folder / "work" / file_name
    for number, content in enumerate(intact(load_corpus())):
        (folder / "corpus" / str(number)).write_bytes(content)

    def check(data: bytes) -> None:
        path.write_bytes(data)
        with suppress(HeedfulError):
            read(path)

    try:
        atheris.Setup([sys.argv[0], "-timeout=20", "-rss_limit_mb=2000", *options, str(folder / "corpus")], check)
        atheris.Fuzz()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
