"""What users get wrong, through the command line: one clear message, exit 2, and every file as it was.

The costly import of torch is paid once: most cases call the entry point in this process, some of each kind
start the real command.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from safetensors.torch import load_file

import small
from heedful.cli import main
from heedful.config import Recipe
from heedful.data.readers import TextPair
from heedful.models import build
from heedful.tasks.folder import save_model
from heedful.tasks.text import learn
from heedful.training.log import Log
from heedful.training.types import Report
from test_cli import heedful, refused

pytestmark = pytest.mark.usefixtures("as_users_run")
Done = subprocess.CompletedProcess[str]

MODEL = """
[model]
embedding = 8
dropout = 0.0
[model.encoder]
hidden = 4
[model.decoder]
hidden = 8
[model.attention]
hidden = 4
[training]
epochs = 1
batch_tokens = 100
threads = 1
[decoding]
max_length = 5
"""
GOOD = "".join(f"the {word} falls\tle {word} tombe\n" for word in "abcdefghij" * 3)
LONG = " ".join(["the"] * 100_000)


def here(*words: str | Path, stdin: str | bytes = "") -> Done:
    """The entry point in this process."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with (
        patch.object(sys, "argv", ["heedful", *map(str, words)]),
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(data))),
        patch.object(sys, "stdout", out),
        patch.object(sys, "stderr", err),
        patch.dict(os.environ),
        pytest.raises(SystemExit) as end,
    ):
        main()
    said = []
    for stream in (out, err):
        stream.flush()
        stream.seek(0)
        said.append(stream.read())
    return subprocess.CompletedProcess(words, int(end.value.code or 0), *said)


def stopped(*words: str | Path) -> None:
    """A training that somebody stops (Ctrl-C) after its first validation; its state is kept."""
    written = Log.write

    def write(log: Log, report: Report) -> None:
        written(log, report)
        signal.raise_signal(signal.SIGINT)

    with patch.object(Log, "write", write):
        done = here(*words)
    assert "stopped at step" in done.stderr, done.stderr


def complaint(*words: str | Path, stdin: str | bytes = "") -> str:
    """As `refused` of test_cli, in this process."""
    done = here(*words, stdin=stdin)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def contents(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def recipe(folder: Path, data: str) -> Path:
    (folder / "r.toml").write_text(f"[data]\n{data}\n{MODEL}", encoding="utf-8")
    return folder / "r.toml"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A folder with good data and a recipe for it."""
    (tmp_path / "good.tsv").write_text(GOOD)
    recipe(tmp_path, 'train = ["good.tsv"]\nvalid = ["good.tsv"]\ntest = ["good.tsv"]')
    return tmp_path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    (folder / "good.tsv").write_text(GOOD)
    made = recipe(folder, 'train = ["good.tsv"]\nvalid = ["good.tsv"]\ntest = ["good.tsv"]')
    done = heedful("train", made, "--out", folder / "m")
    assert done.returncode == 0, done.stderr
    return folder / "m"


@pytest.fixture
def model(trained: Path, tmp_path: Path) -> Path:
    """A copy of the trained model, to be damaged."""
    return Path(shutil.copytree(trained, tmp_path / "m"))


# Recipes


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("none.toml", None, "there is no such file"),
        (
            "a.toml",
            b"[data\nx = 1",
            "not valid TOML: Expected ']' at the end of a table declaration (at line 1",
        ),
        ("a.toml", b"\xff\xfe\x00", "not UTF-8 text (byte 0)"),
        ("a.toml", b"", "data: needed but not given"),
        ("a.toml", b"x = " + b"[" * 5_000, "not valid TOML: nested too deeply"),
        (".", None, "this is a folder; a recipe is a TOML file"),
    ],
)
def test_a_recipe_that_cannot_be_read(tmp_path: Path, name: str, content: bytes | None, words: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    before = contents(tmp_path)
    out = ("--out", tmp_path / "out")
    assert words in refused("check", tmp_path / name)
    assert words in complaint("train", tmp_path / name, *out)
    assert words in complaint("compare", tmp_path / name, "--vary", "model.dropout=0.1,0.2", *out)
    assert contents(tmp_path) == before


def test_the_mark_that_windows_puts_at_the_start_of_a_recipe_is_no_mistake(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text("\ufeff[data.world]\n", encoding="utf-8")
    assert heedful("check", tmp_path / "r.toml").returncode == 0


# Data, in each place where it is read

BAD_DATA: dict[str, tuple[dict[str, bytes], str]] = {
    "missing": ({"none.tsv": b""}, r'none.tsv is not there; did you mean "good.tsv"?'),
    "folder": ({".": b""}, "is a folder; a data file was expected"),
    "columns": ({"a.tsv": b"a\tb\nonly\n"}, "a.tsv, line 2: expected source, tab, target; found 1 column(s)"),
    "field": (
        {"a.jsonl": b'{"source": "a", "tgt": "b"}\n'},
        'line 1: no field "target"; there are: source, tgt',
    ),
    "empty": ({"a.tsv": b""}, "a.tsv: no pairs in it"),
    "blank": ({"a.tsv": b"\n \n\n"}, "a.tsv, line 1: blank"),
    "gz": ({"a.tsv.gz": gzip.compress(GOOD.encode())[:-20]}, "cannot be read: Compressed file ended before"),
    "UTF-8": ({"a.tsv": GOOD.encode() + b"a\xff\tb\n"}, "a.tsv, line 31: not UTF-8 (byte 1 of the line)"),
    "lengths": ({"a.en": b"a\nb\nc\n", "a.fr": b"a\nb\n"}, "a.fr has 2: they must agree"),
}


@pytest.mark.parametrize("what", BAD_DATA)
@pytest.mark.parametrize("split", ["train", "valid"])
def test_bad_data_is_refused_before_anything_is_written(corpus: Path, split: str, what: str) -> None:
    files, words = BAD_DATA[what]
    for name, content in files.items():
        if what not in ("missing", "folder"):
            (corpus / name).write_bytes(content)
    named = {"train": ["good.tsv"], "valid": ["good.tsv"], split: list(files)}
    made = recipe(corpus, "\n".join(f"{name} = {value}" for name, value in named.items()))
    before = contents(corpus)
    run = refused if (what, split) == ("lengths", "train") else complaint
    assert words in run("train", made, "--out", corpus / "out")
    assert contents(corpus) == before


@pytest.mark.parametrize("what", BAD_DATA)
def test_bad_data_to_measure_on_is_refused(corpus: Path, trained: Path, what: str) -> None:
    files, words = BAD_DATA[what]
    for name, content in files.items():
        if what not in ("missing", "folder"):
            (corpus / name).write_bytes(content)
    given = [word for name in files for word in ("--data", corpus / name)]
    run = refused if what == "columns" else complaint
    assert words in run("evaluate", "-m", trained, *given)


def test_other_mistakes_about_what_to_measure(corpus: Path, trained: Path) -> None:
    three: list[str | Path] = ["--data", corpus / "good.tsv"] * 3
    assert "--data: one TSV or JSONL, or a source and a target file; 3" in complaint(
        "evaluate", "-m", trained, *three
    )
    assert 'names no "tset" data; did you mean "test"?' in complaint(
        "evaluate", "-m", trained, "--split", "tset"
    )
    assert "--gallery is for captions" in complaint("evaluate", "-m", trained, "--gallery", corpus / "g.html")
    with patch("heedful.tasks.evaluate.measure") as work:  # what can be known at once is said at once
        assert 'did you mean "bleu"?' in complaint("evaluate", "-m", trained, "--metric", "blue")
        assert "no such model folder" in complaint("evaluate", "-m", trained, "--against", corpus / "none")
        assert not work.called
    with patch.dict(os.environ, HEEDFUL_DATA=str(corpus)):
        assert here("evaluate", "-m", trained, "--data", "data:good.tsv").returncode == 0


def test_a_recipe_without_validation_or_test_data(corpus: Path) -> None:
    made = recipe(corpus, 'train = ["good.tsv"]')
    before = contents(corpus)
    assert "give train and valid files, or a world" in complaint("train", made, "--out", corpus / "out")
    assert contents(corpus) == before
    made = recipe(corpus, 'train = ["good.tsv"]\nvalid = ["good.tsv"]')
    words: list[str | Path] = ["compare", made, "--vary", "model.dropout=0.1,0.2", "--out", corpus / "out"]
    assert "names no test data" in complaint(*words)  # before hours of training
    assert not (corpus / "out").exists()


@pytest.mark.parametrize("split", ["train", "valid"])
def test_broken_lines_are_skipped_where_asked_and_said(corpus: Path, split: str) -> None:
    (corpus / "u.tsv").write_bytes(GOOD.encode() + b"a\xff\tb\n\n")
    named = {"train": ["good.tsv"], "valid": ["good.tsv"], split: ["u.tsv"]}
    made = recipe(corpus, "\n".join(f"{name} = {value}" for name, value in named.items()))
    done = here("train", made, "data.broken=skip", "--out", corpus / "out")
    assert done.returncode == 0, done.stderr
    assert "2 broken line(s) skipped" in done.stderr
    assert "u.tsv, line 31: not UTF-8" in done.stderr


@pytest.mark.parametrize("split", ["train", "valid"])
@pytest.mark.parametrize("side", ["source", "target"])
def test_a_line_of_100_000_words_in_the_data(corpus: Path, split: str, side: str) -> None:
    line = f"{LONG}\tle\n" if side == "source" else f"the\t{LONG}\n"
    (corpus / "l.tsv").write_text(GOOD + line)
    named = {"train": ["good.tsv"], "valid": ["good.tsv"], split: ["l.tsv"]}
    made = recipe(corpus, "\n".join(f"{name} = {value}" for name, value in named.items()))
    before = contents(corpus)
    said = complaint("train", made, "--out", corpus / "out")
    assert f"l.tsv, line 31: the {side} has 100,000 tokens, more than data.max_{side} = 500" in said
    assert contents(corpus) == before
    for policy, words in (("skip", "1 pair(s) skipped for their length"), ("cut", "1 pair(s) cut")):
        done = here("train", made, f"data.longer={policy}", "--out", corpus / policy)
        assert done.returncode == 0, done.stderr
        assert words in done.stderr


# Where results go


def test_a_file_in_the_way_of_the_output(corpus: Path, trained: Path) -> None:
    (corpus / "file").write_text("mine")
    before = contents(corpus)
    vary = ("--vary", "model.dropout=0.1,0.2")
    for out, words in (
        (corpus / "file", "is a file; --out names a folder"),
        (corpus / "file" / "x", "Not a dir"),
    ):
        assert words in complaint("train", corpus / "r.toml", "--out", out)
        assert words in complaint("compare", corpus / "r.toml", *vary, "--out", out)
        assert words in refused("world", "phrases", "--n", "30", "--out", out)
        assert "Not a dir" in complaint("trace", "the a falls", "-m", trained, "-o", out / "t.json")
    assert "Is a directory" in complaint("trace", "the a falls", "-m", trained, "-o", corpus)
    assert contents(corpus) == before


def test_what_is_found_out_only_when_training_begins_leaves_nothing(corpus: Path) -> None:
    before = contents(corpus)
    out = ("--out", corpus / "out")
    assert "cannot be used here" in complaint("train", corpus / "r.toml", "training.device=mps", *out)
    wide = "model.embedding=1000000000000"
    assert "not enough memory" in complaint("train", corpus / "r.toml", wide, *out)
    assert contents(corpus) == before
    (corpus / "out").mkdir()
    (corpus / "out" / "notes.txt").write_text("mine")
    before = contents(corpus)
    complaint("train", corpus / "r.toml", "training.device=mps", *out)
    assert contents(corpus) == before


# Lines to be written


def test_input_that_cannot_be_read(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "u.txt").write_bytes(b"the a\na\xff\n")
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"the a\n" * 500)[:-12])
    (tmp_path / "false.gz").write_bytes(b"the a\n")
    translate = ("translate", "-m", trained)
    assert "stdin, line 2: not UTF-8 (byte 1 of the line)" in refused(*translate, stdin=b"the a\na\xff\n")
    assert "u.txt, line 2: not UTF-8" in complaint(*translate, tmp_path / "u.txt")
    assert "cannot be read: Compressed file ended" in complaint(*translate, tmp_path / "a.gz")
    assert "Not a gzipped file" in complaint(*translate, tmp_path / "false.gz")
    assert "there is no such file" in complaint(*translate, tmp_path / "u.txt", tmp_path / "none.txt")
    assert "is a folder" in complaint(*translate, tmp_path)
    assert "not UTF-8" in refused("trace", "a\udcff", "-m", trained, "-o", tmp_path / "t.json")
    assert not (tmp_path / "t.json").exists()


def policy(model: Path, longer: str) -> None:
    text = (model / "recipe.toml").read_text()
    (model / "recipe.toml").write_text(text.replace('longer = "refuse"', f'longer = "{longer}"', 1))


def test_a_line_of_100_000_words_to_be_written(model: Path) -> None:
    stdin = f"the a falls\n{LONG}\nthe b falls\n"
    said = refused("translate", "-m", model, stdin=stdin)
    assert 'line 2 ("the the the' in said
    assert "100,000 tokens, more than the 1,000" in said
    assert 'longer = "cut" or "skip" in' in said
    alone = here("translate", "-m", model, stdin="the a falls\nthe b falls\n").stdout.splitlines()
    policy(model, "cut")
    cut = here("translate", "-m", model, stdin=stdin)
    assert (cut.returncode, len(cut.stdout.splitlines())) == (0, 3), cut.stderr
    assert cut.stdout.splitlines()[::2] == alone
    assert cut.stderr.startswith('warning: line 2 ("the the the')
    assert "only the first 1,000" in cut.stderr
    (record,) = map(json.loads, here("translate", "--json", "-m", model, stdin=LONG).stdout.splitlines())
    assert len(record["tokens"]) == len(record["outputs"][0]["alignment"][0]) == 1_001
    text = (model / "recipe.toml").read_text()
    (model / "recipe.toml").write_text(text.replace('"cut"', '"skip"', 1))
    skipped = here("translate", "-m", model, stdin=stdin)
    assert skipped.stdout.splitlines() == [alone[0], "", alone[1]]
    assert 'warning: line 2 ("the the the' in skipped.stderr


def test_a_line_of_100_000_words_to_be_measured_or_traced(model: Path, tmp_path: Path) -> None:
    (tmp_path / "l.tsv").write_text(f"{GOOD}{LONG}\t{LONG}\n")
    words = ("evaluate", "-m", model, "--metric", "exact", "--data", tmp_path / "l.tsv")
    trace = ("trace", " ".join(["the"] * 5_000), "-m", model, "-o", tmp_path / "t.json")
    assert "line 31" in complaint(*words)
    assert "5,000 tokens" in complaint(*trace)
    policy(model, "cut")
    (tmp_path / "l.tsv").write_text(f"{GOOD}{LONG[:9_999]}\t{LONG[:9_999]}\n")
    assert here(*words).returncode == 0
    assert "only the first 1,000" in here(*trace).stderr
    assert len(json.loads((tmp_path / "t.json").read_text())["source"]["tokens"]) == 1_001
    (tmp_path / "l.tsv").write_text(GOOD + f"{' '.join(['the'] * 600)}\tle\n")  # longer than in training
    assert here(*words).returncode == 0


@pytest.mark.parametrize("kind", ["word", "character", "bpe"])
def test_what_grows_with_the_square_of_the_length_does_not_eat_all_memory(tmp_path: Path, kind: str) -> None:
    plan = Recipe.model_validate(
        {
            "data": {"world": {}, "longer": "cut"},
            "tokenizer": {"kind": kind, "size": 400},
            "model": small.preset("transformer").model_dump(),
            "decoding": {"max_length": 3},
        }
    )
    words = learn([TextPair("the cat", "le chat")], plan)
    torch.manual_seed(3)
    save_model(tmp_path / "m", plan, words, build(plan.model, len(words.source), len(words.target)), {})
    for line in (LONG if kind == "word" else LONG[:40_000], "the" * 10_000, "貓" * 10_000):
        done = here("translate", "-m", tmp_path / "m", "--json", stdin=f"{line}\n")
        assert done.returncode == 0, done.stderr
        assert 0 < len(json.loads(done.stdout)["tokens"]) <= 1_001


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--temperature", "nan", "--sample"], "temperature = nan: expected a finite number"),
        (["--temperature", "-1", "--sample"], "temperature = -1.0: must be more than 0"),
        (["--top-p", "-1", "--sample"], "top_p = -1.0: must be more than 0"),
        (["--top-p", "7", "--sample"], "top_p = 7.0: must be at most 1"),
        (["--length-penalty", "nan", "--beam", "2"], "alpha = nan: expected a finite number"),
        (["--beam", "0"], "greater than or equal to 1"),
        (["--modle"], "No such option: --modle"),
    ],
)
def test_options_that_mean_nothing(trained: Path, options: list[str], words: str) -> None:
    assert words in complaint("translate", "-m", trained, *options, stdin="the a\n")


def test_any_whole_number_is_a_seed(trained: Path, corpus: Path) -> None:
    huge = "9" * 30
    done = here("translate", "-m", trained, "--sample", "--seed", huge, stdin="the a\n")
    assert done.returncode == 0
    done = here("train", corpus / "r.toml", f"training.seed={huge}", "--out", corpus / "out")
    assert done.returncode == 0, done.stderr


# Model folders

PARTS = ("model.json", "model.safetensors", "recipe.toml", "source.tokenizer.json", "target.tokenizer.json")
NAMED = {
    "missing": {
        "model.json": "not a finished model (no model.json in it)",
        **{name: f"incomplete: {name} is missing; copy the folder again" for name in PARTS[1:]},
    },
    "damaged": {
        "model.json": "model.json: damaged: not the card of a model; copy the folder again",
        "model.safetensors": "model.safetensors: damaged, or not this recipe's: ",
        "recipe.toml": "its recipe cannot be used by this heedful",
        "source.tokenizer.json": "source.tokenizer.json: not a tokeniser",
        "target.tokenizer.json": "target.tokenizer.json: not a tokeniser",
    },
}


def uses(model: Path, elsewhere: Path) -> list[tuple[str | Path, ...]]:
    return [
        ("translate", "-m", model),
        ("evaluate", "-m", model),
        ("trace", "the a falls", "-m", model, "-o", elsewhere / "t.json"),
        ("evaluate", "-m", elsewhere / "whole", "--against", model, "--metric", "exact"),
    ]


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    path.unlink()
    if how != "missing":
        half = content[: len(content) // 2]
        if path.suffix == ".toml":  # cut between two lines it would be a recipe still, of another model
            half = half[: half.rindex(b"=") + 1]
        path.write_bytes({"half": half, "empty": b"", "garbage": b"\x00\xffgarbage" * 99}[how])


@pytest.mark.parametrize("how", ["missing", "half", "empty", "garbage"])
@pytest.mark.parametrize("part", PARTS)
def test_a_missing_or_damaged_part_is_named(
    model: Path, trained: Path, tmp_path: Path, part: str, how: str
) -> None:
    shutil.copytree(trained, tmp_path / "whole")
    damage(model / part, how)
    before = contents(tmp_path)
    words = NAMED["missing" if how == "missing" else "damaged"][part]
    for use in uses(model, tmp_path):
        assert words in complaint(*use, stdin="the a\n")
    if (how, part) == ("half", "model.safetensors"):
        assert words in refused("translate", "-m", model, stdin="the a\n")
    assert contents(tmp_path) == before


def test_folders_that_hold_no_model(tmp_path: Path, trained: Path) -> None:
    shutil.copytree(trained, tmp_path / "whole")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("mine")
    cases = {
        "none": "there is no such model folder",
        "empty": "no model.json in it",
        "file": "is a file; a model",
    }
    before = contents(tmp_path)
    for name, words in cases.items():
        for use in uses(tmp_path / name, tmp_path):
            assert words in complaint(*use, stdin="the a\n")
    assert contents(tmp_path) == before


def test_a_folder_from_the_future(model: Path) -> None:
    card = json.loads((model / "model.json").read_text())
    (model / "model.json").write_text(json.dumps({**card, "format": 99}))
    said = refused("translate", "-m", model, stdin="the a\n")
    assert "model.json: format 99, but this heedful reads format 1; it needs a newer heedful" in said
    (model / "model.json").write_text(json.dumps(card))
    text = (model / "recipe.toml").read_text()
    (model / "recipe.toml").write_text(text.replace("[training]", "[training]\nwarp = 9"))
    said = complaint("translate", "-m", model, stdin="the a\n")
    assert "its recipe cannot be used by this heedful" in said
    assert "warp: no such setting" in said
    (model / "recipe.toml").write_text(text.replace("hidden = 4", "hidden = 5", 1))
    assert "size mismatch for" in complaint("translate", "-m", model, stdin="the a\n")


def test_models_that_do_not_belong_together(model: Path, trained: Path, tmp_path: Path) -> None:
    both = ("translate", "-m", trained, "-m", model)
    text = (model / "recipe.toml").read_text()
    (model / "recipe.toml").write_text(text.replace('kind = "translate"', 'kind = "reply"'))
    said = complaint(*both, stdin="the a\n")
    assert "were trained for different tasks (translate, reply), so they cannot write as one" in said
    assert "was trained to reply; use heedful reply" in complaint("translate", "-m", model, stdin="the a\n")
    (model / "recipe.toml").write_text(text)
    names = (model / "source.tokenizer.json").read_text()
    (model / "source.tokenizer.json").write_text(names.replace('"falls"', '"sings"'))
    assert "have different vocabularies" in complaint(*both, stdin="the a\n")


def test_training_into_a_damaged_folder(corpus: Path) -> None:
    train = ("train", corpus / "r.toml", "--out", corpus / "out")
    stopped(*train)
    (corpus / "out" / "source.tokenizer.json").write_text("{")
    before = contents(corpus)
    assert "source.tokenizer.json: not a tokeniser" in complaint(*train)
    assert "its training is under way" in complaint("translate", "-m", corpus / "out", stdin="the a\n")
    (corpus / "out" / "recipe.toml").write_text("[")
    assert "recipe.toml cannot be used" in complaint(*train)
    assert set(contents(corpus)) == set(before)


# Numbers that are none

WILD = ("training.rate=1e37", "training.warmup=0")
TAME = ("training.rate=0.1", "training.warmup=0")
SGD = ("training.optimizer=sgd", "training.clip=0.0", "training.batch_tokens=20")


def weights(folder: Path) -> dict[str, bytes]:
    return {name: t.numpy().tobytes() for name, t in load_file(folder / "model.safetensors").items()}


def states(folder: Path) -> list[int]:
    return sorted(int(path.stem.partition("-")[2]) for path in (folder / "resume").glob("step-*.pt"))


def test_a_loss_that_is_no_number_keeps_the_last_good_state(corpus: Path) -> None:
    train = ("train", corpus / "r.toml", *SGD, "training.epochs=3", "--out")
    assert here(*train, corpus / "whole", *TAME).returncode == 0
    stopped(*train, corpus / "out", *TAME)
    before = states(corpus / "out")
    said = refused(*train, corpus / "out", *WILD)
    assert "with changed settings: training.rate: 0.1 -> 1e+37" in said
    assert re.search("the (loss|gradient) became (nan|inf) at step ", said)
    assert (
        f"a lower training.rate may help: with it, the same command goes on from step {before[-1]} " in said
    )
    assert not (corpus / "out" / "model.json").exists()
    assert states(corpus / "out") == before
    done = here(*train, corpus / "out", *TAME)
    assert done.returncode == 0, done.stderr
    assert f"going on from step {before[-1]} " in done.stderr
    assert weights(corpus / "out") == weights(corpus / "whole")


def test_a_state_that_leads_to_no_number_is_not_kept(corpus: Path) -> None:
    every = "training.checkpoint_every=1"
    train = ("train", corpus / "r.toml", *SGD, every, "training.epochs=3", "--out", corpus / "out")
    stopped(*train, *TAME)
    said = complaint(*train, *WILD)
    (failed,), (kept,) = re.findall(r" at step (\d+);", said), re.findall(r"goes on from step (\d+) ", said)
    assert states(corpus / "out")[-1] == int(kept) < int(failed) - 1


@pytest.mark.parametrize("every", [500, 1])
def test_a_loss_that_is_no_number_before_there_is_a_good_state(corpus: Path, every: int) -> None:
    before, saved = contents(corpus), f"training.checkpoint_every={every}"
    said = complaint("train", corpus / "r.toml", "--out", corpus / "out", *WILD, *SGD, saved)
    assert "with it, the same command begins again: there is no good state yet" in said
    assert contents(corpus) == before


@pytest.mark.parametrize("rate", ["3e38", "1e38"])
def test_weights_that_are_no_numbers_make_no_model(corpus: Path, rate: str) -> None:
    before = contents(corpus)
    train = ("train", corpus / "r.toml", "--out", corpus / "out", "training.max_steps=1", "training.warmup=0")
    said = complaint(*train, f"training.rate={rate}")
    assert "at step 1; a lower training.rate may help" in said
    assert contents(corpus) == before


def test_a_run_under_way_takes_other_training_settings_and_no_others(corpus: Path) -> None:
    train = ("train", corpus / "r.toml", "--out", corpus / "out")
    stopped(*train)
    before = contents(corpus)
    assert "training.seed: 1 -> 2" in complaint(*train, "training.seed=2")
    assert "model.dropout: 0.0 -> 0.1" in complaint(*train, "model.dropout=0.1")
    assert contents(corpus) == before
    assert here(*train, "training.rate=0.01").returncode == 0
    assert "training.rate: 0.01 -> 0.002" in complaint(*train)  # finished: another model


# Traces, worlds, comparisons


def test_traces_that_cannot_be_shown(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    small.trace().save(path)
    good = path.read_text()
    tree = json.loads(good)
    (site,) = tree["sites"]
    cases: list[tuple[str | bytes, str]] = [
        (good[: len(good) // 2], "not a trace of schema attn-trace/1: the file: Invalid JSON: EOF"),
        ("", "Invalid JSON: EOF"),
        (b"\x00\xff", "not UTF-8 text, so not a trace"),
        (good.replace("attn-trace/1", "attn-trace/9"), "schema: Input should be 'attn-trace/1'"),
        (
            json.dumps({**tree, "target": {**tree["target"], "tokens": tree["target"]["tokens"][1:]}}),
            "3 output tokens but 4 steps",
        ),
        (json.dumps({**tree, "source": {**tree["source"], "tokens": []}}), "source.tokens: "),
        (json.dumps({**tree, "sites": [{**site, "heads": 0}]}), "sites.0.heads: "),
        (
            json.dumps({**tree, "sites": [{**site, "weight": "other"}]}),
            "the tensor other is not in the trace",
        ),
        (
            json.dumps({**tree, "tensors": {"weight": {**tree["tensors"]["weight"], "data": "AAAA"}}}),
            "bytes of data",
        ),
    ]
    for content, words in cases:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        assert words in complaint("show", path)
        assert words in complaint("show", path, "-o", tmp_path / "t.png")
    assert words in refused("show", path)
    path.write_text(good)
    assert "No such file" in complaint("show", tmp_path / "none.json")
    assert "Is a directory" in complaint("show", tmp_path)
    assert "cannot draw as '.gif'; known: .png" in complaint("show", path, "-o", tmp_path / "t.gif")
    assert "No such file" in complaint("show", path, "-o", tmp_path / "none" / "t.png")
    assert list(tmp_path.iterdir()) == [path]


def test_gold_links_beyond_the_sentence(trained: Path, tmp_path: Path) -> None:
    asked = ("trace", "the a falls", "-m", trained, "-o", tmp_path / "t.json")
    told = complaint(*asked, "--gold", "0-0 9-0")
    assert '--gold "9-0": the text does not reach so far, the last of its 3 words is number 2' in told
    told = complaint(*asked, "--gold", "0-9", "--target", "le a tombe")
    assert '--gold "0-9": the output does not reach so far, the last of its 3 words is number 2' in told
    assert "the output does not reach so far, it has no words" in complaint(
        *asked, "--gold", "0-0", "--target", ""
    )
    assert not list(tmp_path.iterdir())
    done = here(*asked, "--gold", "0-99")  # of what it wrote itself nobody knows the length before
    assert done.returncode == 0
    assert "such links are not drawn" in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["phrases", "--n", "2"], "n is 2: it must be a whole number of at least 3"),
        (["phrases", "--n", "x"], "Invalid value for '--n'"),
        (["phrases", "--n", "9", "--valid", "9"], "leave nothing to train on"),
        (["phrases", "--n", "9", "--min-words", "9", "--max-words", "3"], "max_words is 3"),
        (["scenes", "--n", "9", "--size", "5"], "size is 5: it must be a whole number from 48 to 1024"),
        (["tastes", "--n", "9", "--seed", "-1"], "seed is -1"),
        (["moods", "--n", "9", "--classes", "5"], "classes is 5: it must be 2"),
        (["phrasse", "--n", "9"], "No such command 'phrasse'"),
    ],
)
def test_worlds_that_cannot_be_made(tmp_path: Path, options: list[str], words: str) -> None:
    assert words in refused("world", *options, "--out", tmp_path / "w")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_somebody_elses_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    assert "give another folder" in refused("world", "moods", "--n", "9", "--out", tmp_path)
    (tmp_path / "README.md").unlink()
    (tmp_path / "README.md").mkdir()
    assert "README.md: Is a directory" in refused("world", "moods", "--n", "9", "--out", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


def test_comparisons_that_cannot_be_made(corpus: Path) -> None:
    before = contents(corpus)
    compare = ("compare", corpus / "r.toml", "--out", corpus / "out", "--seeds", "1")
    vary = ("--vary", "model.dropout=0.1,0.2")
    for budget in ("soon", "0s", "-5m", "nanm", "infm", ""):
        assert "expected a time such as 90s" in complaint(*compare, *vary, "--budget", budget)
    assert "expected section.key=value" in complaint(*compare, "--vary", "model.dropout")
    assert "no such setting" in complaint(*compare, "--vary", "model.dropuot=0.1,0.2")
    assert "model.dropout: given twice" in complaint(*compare, *vary, *vary)
    recipe(corpus, 'train = ["good.tsv"]\nvalid = ["good.tsv"]\ntest = ["none.tsv"]')
    assert "none.tsv is not there" in complaint(*compare, *vary)
    (corpus / "r.toml").unlink()
    before.pop(corpus / "r.toml")
    assert contents(corpus) == before


def test_a_comparison_whose_parts_are_bad(corpus: Path, trained: Path) -> None:
    compare = ("compare", corpus / "r.toml", "--seeds", "1", "--vary", "model.dropout=0.1,0.2", "--out")
    for number in range(4):  # two variants and two baselines, trained before
        shutil.copytree(trained, corpus / "old" / f"{number:02d}-seed1")
    with patch("heedful.studies.compare.Trainings.train"):
        said = here(*compare, corpus / "old").stderr
    assert "00-seed1: metrics.jsonl or cost.json is missing or damaged; remove that folder" in said
    (corpus / "a.tsv").write_text("a\tb\nonly\n")
    recipe(corpus, 'train = ["a.tsv"]\nvalid = ["good.tsv"]\ntest = ["good.tsv"]')
    done = here(*compare, corpus / "new", "--budget", "1s")
    assert (done.returncode, done.stdout) == (2, "")
    assert "dropout=0.1, seed 1 could not be trained" in done.stderr
    assert "a.tsv, line 2: expected source, tab, target" in done.stderr
    assert not (corpus / "new").exists()
