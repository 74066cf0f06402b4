"""Cases of data files: pairs, lines, labels, ratings, captions, word vectors, word links."""

from __future__ import annotations

import gzip
import json
from functools import cache
from random import Random

from fuzz.case import Case
from fuzz.corpus import MOODS, RECIPES, TASTES, Corpus
from fuzz.mutate import mutate_bytes, mutate_tree, odd_string

PAIRS = b"the cat sees a dog\tle chat voit un chien\nthe dog sees\tle chien voit\na cat\tun chat\n"
SOURCE, TARGET = (b"\n".join(line.split(b"\t")[side] for line in PAIRS.splitlines()) + b"\n" for side in (0, 1))
LABELED = b"that soup was never dull\tgood\nthis film was dull\tbad\nthe soup was great\tgood\n"
LINKS = b"0-0 1-1 2-2 3p3 4-4\n0-0 1-1 2-2\n0-0 1-1\n"
CAPTIONS = b"photo.png#0\ta red circle\nphoto.png#1\ta blue square\n"
COCO = {"images": [{"id": 1, "file_name": "photo.png"}], "annotations": [{"image_id": 1, "caption": "a red circle"}]}
KARPATHY = {"images": [{"filename": "photo.png", "split": "test", "sentences": [{"raw": "a red circle"}]}]}
VECTORS = b"3 4\nsoup 0.1 0.2 0.3 0.4\nfilm 0.5 0.5 0.5 0.5\ndull 1 2 3 4\n"
RATINGS = b"".join(b"%d\t%d\t5\t%d\n" % (user, item, item) for user in range(1, 7) for item in range(1, 9))
TITLES = b"".join(b"%d\tTitle %d (1999)\n" % (item, item) for item in range(1, 9))
READERS = (
    ("translate", "translate"), ("translate", "transformer"), ("transduce", "transduce"), ("classify", "classify"),
    ("read", "read"), ("read", "read-transformer"),
)  # fmt: skip


def data_case(corpus: Corpus, rng: Random) -> Case:
    """Return a changed data file and a command that reads it."""
    makers = (_pairs, _pairs, _lines, _lines, _links, _links, _links, _labels, _captions)
    return rng.choice(makers)(corpus, rng)


def model_files(corpus: Corpus, name: str) -> dict[str, bytes]:
    """Return the files of an intact model in the folder `m`."""
    return {f"m/{file}": data for file, data in corpus.models[name].items()}


def mutate_text(data: bytes, rng: Random) -> bytes:
    """Change lines, cells or bytes."""
    if rng.random() < 0.3:
        lines = data.splitlines()
        at = rng.randrange(len(lines))
        cells = lines[at].split(b"\t")
        cells[rng.randrange(len(cells))] = odd_string(rng).encode("utf-8", "replace")
        lines[at] = b"\t".join(cells)
        return b"\n".join(lines) + b"\n"
    return mutate_bytes(data, rng, rng.choice((1, 1, 2, 4)))


def compress(name: str, data: bytes, rng: Random) -> tuple[str, bytes]:
    """Return a file, in some cases compressed, and then perhaps damaged."""
    if rng.random() < 0.15:
        data = gzip.compress(data, 1, mtime=0)
        return f"{name}.gz", mutate_bytes(data, rng) if rng.random() < 0.5 else data
    return (f"{name}.gz", data) if rng.random() < 0.02 else (name, data)


def mutate_jsonl(data: bytes, rng: Random) -> bytes:
    """Return tab-separated pairs as JSON lines, the first one changed."""
    rows = [dict(zip(("source", "target"), line.decode().split("\t"), strict=False)) for line in data.splitlines()]
    rows[0] = mutate_tree(rows[0], rng, rng.choice((1, 2)))
    return "\n".join(json.dumps(row) for row in rows).encode()


def _pairs(corpus: Corpus, rng: Random) -> Case:
    files = model_files(corpus, "translate")
    choice = rng.random()
    if choice < 0.5:
        name, data = compress("d.tsv", mutate_text(PAIRS, rng), rng)
        words: tuple[str, ...] = ("--data", name)
        files[name] = data
    elif choice < 0.75:
        name, data = compress(
            "d.jsonl",
            mutate_jsonl(PAIRS, rng) if rng.random() < 0.7 else mutate_bytes(mutate_jsonl(PAIRS, rng), rng),
            rng,
        )
        words = ("--data", name)
        files[name] = data
    else:
        files["d.en"], files["d.fr"] = (
            mutate_text(SOURCE, rng),
            TARGET if rng.random() < 0.7 else mutate_text(TARGET, rng),
        )
        words = ("--data", "d.en", "--data", "d.fr")
    if rng.random() < 0.3:
        files["g.links"] = mutate_text(LINKS, rng)
        argv = ("measure", "-m", "m", *words, "--gold", "g.links", "--limit", "3", "--test", "none")
    else:
        argv = (
            "evaluate",
            "-m",
            "m",
            *words,
            *rng.choice(((), ("--json",), ("--metric", "chrf"), ("--metric", "exact"))),
        )
    return Case("data", argv, files)


def _lines(corpus: Corpus, rng: Random) -> Case:
    verb, model = rng.choice(READERS)
    data = mutate_text(SOURCE, rng)
    options = rng.choice(((), ("--on-too-long", "skip"), ("--on-too-long", "error"), ("--json",)))
    files = model_files(corpus, model)
    if rng.random() < 0.5:
        return Case("data", (verb, "-m", "m", *options), files, data)
    name, data = compress("d.txt", data, rng)
    return Case("data", (verb, name, "-m", "m", *options), {**files, name: data})


def _links(corpus: Corpus, rng: Random) -> Case:
    files = {"g.links": mutate_text(LINKS, rng), "p.links": LINKS if rng.random() < 0.5 else mutate_text(LINKS, rng)}
    base = ("--gold-base", rng.choice(("0", "1"))) if rng.random() < 0.3 else ()
    return Case("links", ("measure", "--gold", "g.links", "--links", "p.links", *base), files)


def _labels(corpus: Corpus, rng: Random) -> Case:
    name, data = compress("d.tsv", mutate_text(LABELED, rng), rng)
    return Case("data", ("evaluate", "-m", "m", "--data", name), {**model_files(corpus, "classify"), name: data})


def _captions(corpus: Corpus, rng: Random) -> Case:
    choice = rng.random()
    if choice < 0.4:
        name, data = "c.tsv", mutate_text(CAPTIONS, rng)
    elif choice < 0.9:
        tree = mutate_tree(rng.choice((COCO, KARPATHY)), rng, rng.choice((1, 2)))
        name, data = "c.json", json.dumps(tree).encode()
    else:
        row = mutate_tree({"image": "photo.png", "captions": ["a red circle"]}, rng)
        name, data = "c.jsonl", json.dumps(row).encode() + b"\n"
    files = {**model_files(corpus, "caption"), "pictures/photo.png": corpus.photo, name: data}
    return Case("data", ("evaluate", "-m", "m", "--data", "pictures", "--data", name, "--metric", "bleu"), files)


# Trainings read data in ways that no other command does.

PAIRS_RECIPE = '[data]\ntrain = ["d.tsv"]\nvalid = ["d.tsv"]\n'
CLASSIFY_RECIPE = '[data]\ntrain = ["d.tsv"]\nvalid = ["d.tsv"]\nvectors = "v.txt"\n'
RATINGS_RECIPE = '[data]\ntrain = ["d.tsv"]\n[data.ratings]\ntitles = "titles.tsv"\n'


def training_case(corpus: Corpus, rng: Random) -> Case:
    """Return a training of one step on changed data."""
    choice = rng.random()
    if choice < 0.4:
        recipe = RECIPES["translate"].replace(RECIPES["translate"].partition("[model]")[0], PAIRS_RECIPE)
        name, data = compress("d.tsv", mutate_text(PAIRS, rng), rng)
        files = {name: data}
        recipe = recipe.replace("d.tsv", name)
    elif choice < 0.7:
        recipe = RECIPES["classify"].replace(MOODS, CLASSIFY_RECIPE).replace("embedding = 8", "embedding = 4")
        files = {
            "d.tsv": LABELED if rng.random() < 0.6 else mutate_text(LABELED, rng),
            "v.txt": mutate_text(VECTORS, rng),
        }
    else:
        recipe = RECIPES["recommend"].replace(TASTES, RATINGS_RECIPE)
        files = {
            "d.tsv": mutate_text(RATINGS, rng),
            "titles.tsv": TITLES if rng.random() < 0.6 else mutate_text(TITLES, rng),
        }
    files["r.toml"] = recipe.encode()
    return Case("training", ("train", "r.toml", "training.max_steps=1", "-o", "out"), files, outputs=("out",))


# Small files that are very large.


def data_bomb_case(corpus: Corpus, rng: Random) -> Case:
    """Return a gzip file with one very long line, or a line of many words."""
    times = 1 if rng.random() < 0.5 else 128
    if rng.random() < 0.5:
        argv = rng.choice((("evaluate", "-m", "m", "--data", "d.tsv.gz"), ("translate", "d.tsv.gz", "-m", "m")))
        return Case(
            "bomb",
            argv,
            {**model_files(corpus, "translate"), "d.tsv.gz": _zeros(b"a" if rng.random() < 0.5 else b"a ") * times},
        )
    model, verb = rng.choice(
        (("classify", "classify"), ("translate", "translate"), ("transformer", "translate"), ("read", "read"))
    )
    line = rng.choice((b"soup ", b"x", b"\xf0\x9d\x95\xb3", b"a-b'c. ")) * rng.choice((10_000, 200_000))
    return Case("bomb", (verb, "-m", "m"), model_files(corpus, model), line + b"\n")


@cache
def _zeros(unit: bytes) -> bytes:
    return gzip.compress(unit * ((1 << 24) // len(unit)), 1, mtime=0)
