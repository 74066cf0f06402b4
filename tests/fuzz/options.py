"""Cases of command-line options: every command with random options and values, and decoding options."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

from fuzz.case import Case
from fuzz.corpus import RECIPES, Corpus
from fuzz.data_files import LINKS, PAIRS
from fuzz.mutate import odd_number, odd_string
from fuzz.recipes import clean_argument

# These numbers say how much work is asked for, so a large one may take long.
WORK_OPTIONS = ("--n", "--rounds", "--lines", "--seeds", "--jobs", "--limit", "--steps", "--top", "--size",
    "--captions", "--items",
                "--users", "--per-user", "--max-words", "--min-words", "--budget", "--words", "--length",
                "--valid", "--test",
                "--genres", "--negatives")  # fmt: skip
SMALL_NUMBERS = (-1, 0, 1, 2, 3, 5, 20, 30, 40, -(2**63), "nan", "x", "1.5")
PLACES = ("m", "d.tsv", "g.links", "r.toml", "t.json", "photo.png", "none", "", "empty", "out", "m/model.json")
WORDS = ("the cat sees", "user:1", "photo.png", "0-0 1-1", "bleu", "test", "valid", "uniform",
    "onehot:step=1,position=0",
         "source:position=0,text=dog", "zero:step=0", "alignment", "all", "none", "erasure", "id:1",
         "id:1; id:2", "1")  # fmt: skip
DECODING_VERBS = (
    ("translate", "translate"),
    ("translate", "transformer"),
    ("transduce", "transduce"),
    ("translate", "format-1"),
)
USUAL = {
    "--data": ("d.tsv",), "--split": ("test", "valid", "train"), "--gold": ("g.links", "0-0 1-1"),
    "--links": ("g.links",),
    "--metric": ("bleu", "exact", "accuracy", "ndcg@10"), "--test": ("none", "erasure", "uniform"),
    "--user": ("1", "2"),
    "--items": ("id:1; id:2", "id:3"), "--explain": ("id:1",), "--view": ("arcs", "matrix", "alignment", "steps"),
    "--detail": ("weights", "steps", "full"), "--on-too-long": ("cut", "skip", "error"),
    "--target": ("le chat", "good"),
    "--set": ("uniform", "onehot:step=0,position=0", "source:position=0,text=dog"),
    "--link-method": ("naive", "shift", "shared"),
    "--languages": ("en-fr", "fr-vi", "en-en"), "--order": ("any", "left"),
}  # fmt: skip
NUMERIC = ("N", "X", "K", "P")  # metavariables of numbers
SKIPPED = ("compare", "bench", "batch")  # they train and measure for as long as they are told, or start processes
LISTENING = ("serve", "studio")  # they serve until they are stopped, unless they cannot start
FOREIGN_ADDRESS = ("--host", "192.0.2.1", "--key", "0123456789abcdef")  # of no machine (RFC 5737)
Parameter = tuple[tuple[str, ...], bool, str]


@cache
def commands() -> dict[str, list[Parameter]]:
    """Every command with its parameters: names (none for an argument), whether it is a flag, and its value's name."""
    import typer.main

    from heedful.cli.app import build_app

    found: dict[str, list[Parameter]] = {}

    def visit(command: Any, name: str) -> None:
        for child, sub in getattr(command, "commands", {}).items():
            visit(sub, f"{name} {child}".strip())
        if name and not hasattr(command, "commands"):
            found[name] = [_describe(parameter) for parameter in command.params]

    visit(typer.main.get_command(build_app()), "")
    return found


def _describe(parameter: Any) -> Parameter:
    names = (*parameter.opts, *parameter.secondary_opts) if parameter.param_type_name == "option" else ()
    return names, bool(getattr(parameter, "is_flag", False)), str(parameter.metavar)


def option_case(corpus: Corpus, rng: Random) -> Case:
    """Return a command with random options and arguments."""
    known = commands()
    name = rng.choice([command for command in sorted(known) if command not in SKIPPED or rng.random() < 0.05])
    argv = name.split()
    outputs: list[str] = []
    model = argv[0] if argv[0] in RECIPES and rng.random() < 0.8 else rng.choice(sorted(RECIPES))
    for names, flag, metavar in known[name]:
        if not names:
            argv += [_argument(name, rng) for _ in range(rng.choice((0, 1, 1, 1, 2)))]
        elif names[-1] == "--help" or (rng.random() < 0.8 and not {"-o", "--n", "-m"} & set(names)):
            continue
        elif flag:
            argv.append(rng.choice(names))
        else:
            value = _value(names, metavar, rng)
            argv += [names[0], value]
            if "-o" in names or "--gallery" in names:
                outputs.append(value)
    if name in SKIPPED and "--help" not in argv:
        argv += ["--seeds", "x", "--rounds", "x"]  # refused by the parser
    if name in LISTENING:
        argv += FOREIGN_ADDRESS if name == "serve" and rng.random() < 0.5 else ("--port", "99999")
    elif rng.random() < 0.05:
        argv.insert(rng.randrange(len(argv) + 1), clean_argument(odd_string(rng)))
    files = {f"m/{file}": data for file, data in corpus.models[model].items()}
    files |= {
        "d.tsv": PAIRS,
        "g.links": LINKS,
        "r.toml": corpus.recipes["small-translate.toml"],
        "photo.png": corpus.photo,
        "empty": b"",
    }
    files["t.json"] = corpus.traces[rng.choice(sorted(corpus.traces))]
    clean = tuple(word.replace("\x00", "") for word in argv)
    return Case("options", clean, files, b"the cat sees\n", tuple(outputs))


def _argument(command: str, rng: Random) -> str:
    usual = {"check": "r.toml", "train": "r.toml", "show": "t.json", "caption": "photo.png", "trace": "the cat sees"}
    if command in usual and rng.random() < 0.6:
        return usual[command]
    return clean_argument(rng.choice((rng.choice(PLACES), rng.choice(WORDS), odd_string(rng))))


def _value(names: tuple[str, ...], metavar: str, rng: Random) -> str:
    if "-m" in names or "--against" in names:
        return "m" if rng.random() < 0.9 else clean_argument(odd_string(rng)) or "x"
    if "-o" in names or "--gallery" in names:
        return rng.choice(
            (
                "o.json",
                "o.png",
                "o.html",
                "o.csv",
                "o.json.gz",
                "o",
                "o.svg",
                "missing/o.json",
                "empty/o",
                "d.tsv/x.html",
            )
        )
    if set(names) & set(WORK_OPTIONS):
        return str(rng.choice(SMALL_NUMBERS))
    if metavar in NUMERIC and rng.random() < 0.9:
        value = odd_number(rng) if rng.random() < 0.4 else rng.choice((0, 1, 2, 3, 0.5))
        return str(int(value) if metavar in ("N", "K") and abs(value) < 2**70 and rng.random() < 0.9 else value)
    if names[0] in USUAL and rng.random() < 0.7:
        return rng.choice(USUAL[names[0]])
    return rng.choice((rng.choice(PLACES), rng.choice(WORDS), odd_string(rng)))


def decoding_case(corpus: Corpus, rng: Random) -> Case:
    """Return a generation with random decoding options."""
    verb, model = rng.choice(DECODING_VERBS)
    argv = [verb, "-m", "m"]
    for names, flag, metavar in commands()[verb]:
        if not names or names[-1] in ("--help", "--model", "--threads") or rng.random() < 0.7:
            continue
        if flag:
            argv.append(names[0])
        elif names[0] == "--on-too-long":
            argv += [names[0], rng.choice(("cut", "skip", "error", "x"))]
        else:
            value = odd_number(rng) if rng.random() < 0.5 else rng.choice((1, 2, 3, 0.5, 1.0, 0, 7))
            argv += [
                names[0],
                str(int(value) if metavar in ("N", "K") and rng.random() < 0.7 and abs(value) < 1e9 else value),
            ]
    files = {f"m/{file}": data for file, data in corpus.models[model].items()}
    lines = rng.choice(
        (b"the cat sees a dog\n", b"a\n\nb c\n", b"\n", b"", b"the cat\nthe dog sees a cat and a bird\n")
    )
    return Case("decoding", tuple(argv), files, lines)
