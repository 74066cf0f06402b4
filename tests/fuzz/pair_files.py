"""Cases of `heedful align`, `heedful batch`, guided attention, and trainings of the studio."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from fuzz.case import Case
from fuzz.corpus import MOODS, RECIPES, Corpus
from fuzz.data_files import (
    CLASSIFY_RECIPE,
    LABELED,
    LINKS,
    PAIRS,
    PAIRS_RECIPE,
    SOURCE,
    TARGET,
    compress,
    model_files,
    mutate_jsonl,
    mutate_text,
)
from fuzz.mutate import mutate_bytes, mutate_tree, odd_string
from fuzz.recipes import clean_argument
from fuzz.training_target import job_file

BATCH_VERBS = {"translate": "translate", "transduce": "transduce", "classify": "classify", "read": "read",
    "recommend": "recommend", "caption": "caption"}  # fmt: skip
USERS = b"user\n1\n2\n3\n"
RECORD = {"part": "a", "file": "a.jsonl", "of": "in/a.txt", "input": [1, 36, 0, 0, None], "rows": 3, "failed": 0,
    "errors": [], "bytes": 3, "sha256": "0" * 64, "seconds": 0.1, "signature": "0" * 64}  # fmt: skip
MANIFEST = {
    "format": 1,
    "heedful": "1",
    "job": {"verb": "translate"},
    "rows": 3,
    "failed": 0,
    "bytes": 3,
    "parts": [RECORD],
}
RATIONALES = b"0 3\n3\n1 2\n"
GUIDED_SETTINGS = ("weight=1e-40", "heads=[0]", "heads=[9]", 'sites=["x"]', "full_context=true", "loss=squared")
COLUMNS = ("1,2", "2,1", "source,target", "9,1", "0,1", "x", ",", "1,1", "\u00b2,\u0661", "a,b,c")


def _table(rng: Random) -> tuple[str, bytes]:
    """Return the name and the content of a changed table of pairs."""
    if rng.random() < 0.3:
        data = mutate_jsonl(PAIRS, rng)
        return compress("d.jsonl", mutate_bytes(data, rng) if rng.random() < 0.3 else data, rng)
    name = rng.choice(("d.tsv", "d.tsv", "d.csv", "d.json", "d.txt", "d.parquet"))
    data = PAIRS.replace(b"\t", b",") if name == "d.csv" else PAIRS
    return compress(name, mutate_text(data, rng), rng)


def align_case(corpus: Corpus, rng: Random) -> Case:
    """Return changed pairs, gold links and columns for the word aligner."""
    files: dict[str, bytes] = {}
    argv = ["align"]
    if rng.random() < 0.4:
        files |= {
            "s.txt": mutate_text(SOURCE, rng),
            "t.txt": TARGET if rng.random() < 0.5 else mutate_text(TARGET, rng),
        }
        argv += ["s.txt", "t.txt"]
    else:
        name, data = _table(rng)
        files[name] = data
        argv.append(name)
    if rng.random() < 0.3:
        name, data = _table(rng)
        files[f"more/{name}"] = data
        argv += ["--extra", f"more/{name}"]
    if rng.random() < 0.3:
        argv += ["--columns", rng.choice(COLUMNS) if rng.random() < 0.8 else clean_argument(odd_string(rng))]
    if rng.random() < 0.3:
        files["g.links"] = LINKS if rng.random() < 0.3 else mutate_text(LINKS, rng)
        argv += ["--gold", "g.links", *rng.choice(((), ("--json",), ("--gold-base", "1")))]
    if rng.random() < 0.15:
        model = rng.choice(("translate", "transformer", "read", "format-1"))
        files |= model_files(corpus, model)
        argv += ["-m", "m"]
    argv += rng.choice(((), ("--prior", "ibm1"), ("--iterations", "1"), ("--prefix", "2"), ("--keep-case",),
        ("--symmetrize", rng.choice(("union", "intersection", "reverse", "x"))), ("--prefix", str(2**70))))  # fmt: skip
    outputs: tuple[str, ...] = ()
    if rng.random() < 0.2:
        argv += ["-o", "o.links"]
        outputs = ("o.links",)
    return Case("align", tuple(argv), files, outputs=outputs)


def batch_case(corpus: Corpus, rng: Random) -> Case:
    """Return a folder of changed inputs, and a folder of outputs in which changed records may be."""
    verb = rng.choice((*BATCH_VERBS, "translate", "classify"))
    files = model_files(corpus, BATCH_VERBS[verb])
    for name in rng.sample(("a", "b", "c.d"), rng.choice((1, 1, 2, 3))):
        file, data = _batch_input(verb, name, corpus, rng)
        files[f"in/{file}"] = data
    argv = [
        "batch",
        verb,
        rng.choice(("in", "in", "in", *(name for name in files if name.startswith("in/")))),
        "-m",
        "m",
        "-o",
        "out",
    ]
    if rng.random() < 0.3:
        name = rng.choice(("out/manifest.json", "out/parts/a.json", "out/parts/b.json"))
        tree = mutate_tree(MANIFEST if "manifest" in name else RECORD, rng, rng.choice((1, 2)))
        files[name] = json.dumps(tree).encode() if rng.random() < 0.8 else mutate_bytes(json.dumps(tree).encode(), rng)
    argv += rng.choice(((), (), ("--plain",), ("--part-lines", rng.choice(("1", "2", "1000000000000", "-1")))))
    argv += rng.choice(((), (), ("--column", rng.choice(("1", "2", "text", "99", "\u00b2", "x")))))
    return Case("batch", tuple(argv), files, outputs=("out",))


def _batch_input(verb: str, name: str, corpus: Corpus, rng: Random) -> tuple[str, bytes]:
    if verb == "caption":
        data = corpus.photo if rng.random() < 0.4 else mutate_bytes(corpus.photo, rng)
        return f"{name}.{rng.choice(('png', 'png', 'jpg', 'PNG'))}", data
    lines = {"recommend": USERS, "classify": LABELED}.get(verb, SOURCE)
    choice = rng.random()
    if choice < 0.5:
        return compress(f"{name}.txt", mutate_text(lines, rng), rng)
    if choice < 0.8:
        return compress(f"{name}{rng.choice(('.tsv', '.csv'))}", mutate_text(lines, rng), rng)
    rows = [{"source": "the cat", "text": "a dog", "user": "1"}, {"source": "the dog", "text": "x", "user": 2}]
    tree: Any = mutate_tree(rows, rng, rng.choice((1, 2)))
    text = json.dumps(tree) if rng.random() < 0.3 or not isinstance(tree, list) else "\n".join(map(json.dumps, tree))
    return f"{name}{rng.choice(('.jsonl', '.json'))}", text.encode()


def guided_case(corpus: Corpus, rng: Random) -> Case:
    """Return a training of one step whose attention is guided by changed links."""
    choice = rng.random()
    files: dict[str, bytes]
    if choice < 0.35:
        recipe = _pairs_recipe("translate" if rng.random() < 0.6 else "transformer")
        files = {"d.tsv": PAIRS, "g.links": mutate_text(LINKS, rng)}
        setting = "links=g.links"
    elif choice < 0.5:
        recipe = RECIPES["classify"].replace(MOODS, CLASSIFY_RECIPE.replace('vectors = "v.txt"\n', ""))
        files = {"d.tsv": LABELED, "g.links": mutate_text(RATIONALES, rng)}
        setting = "links=g.links"
    elif choice < 0.8:
        recipe = _pairs_recipe("translate")
        rows = [line + b"\t" + links for line, links in zip(PAIRS.splitlines(), LINKS.splitlines(), strict=True)]
        files = {"d.tsv": mutate_text(b"\n".join(rows) + b"\n", rng)}
        setting = f"column={rng.choice(('3', '3', '3', '1', '9', 'x', '0', '9' * 30))}"
    else:
        recipe = _pairs_recipe("translate")
        files = {"d.tsv": mutate_text(PAIRS, rng)}
        setting = "links=align"
    files["r.toml"] = recipe.encode()
    argv = ["train", "r.toml", "training.max_steps=1", f"training.guided.{setting}", "-o", "out"]
    if rng.random() < 0.2:
        argv.append(f"training.guided.{rng.choice(GUIDED_SETTINGS)}")
    return Case("guided", tuple(argv), files, outputs=("out",))


def _pairs_recipe(name: str) -> str:
    return RECIPES[name].replace(RECIPES[name].partition("[model]")[0], PAIRS_RECIPE)


def studio_training_case(corpus: Corpus, rng: Random) -> Case:
    """Return the data of a training of the studio, as its worker process reads it."""
    data = mutate_text(PAIRS * 4, rng).decode("utf-8", "replace").encode()  # the server writes text
    settings = [
        "training.max_steps=2",
        "model.embedding=8",
        "training.threads=1",
        "model.encoder.hidden=8",
        "model.decoder.hidden=8",
    ]
    files = {"d.tsv": data, "job.json": job_file(settings)}
    return Case("studio-training", ("training-worker", "job.json"), files, outputs=("out",), private=True)
