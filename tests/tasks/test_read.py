"""Reading: trained, measured, asked and drawn through the command line, against plain sums."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import heedful
from heedful.config import load_recipe
from heedful.data.lines import encoded, open_lines
from heedful.errors import ConfigError
from heedful.record import Trace
from heedful.studies.compare import variants
from heedful.tasks.folder import open_model
from heedful.tasks.read import KIND, ReaderModel, ReadTask, first_of, foreseen
from heedful.training.types import Ears
from test_bad_input import here

pytestmark = pytest.mark.usefixtures("as_users_run")
RECIPE = """
[task]
kind = "read"
[data]
max_source = 12
[data.world]
train = 300
valid = 30
test = 40
max_words = 7
[model]
preset = "read-lstmn"
embedding = 12
dropout = 0.1
[model.reader]
hidden = 12
heads = 2
feedforward = 16
[training]
epochs = 3
batch_tokens = 150
rate = 0.02
warmup = 5
threads = 1
"""
CONTIGUOUS = ("data.reading.protocol=contiguous", "data.reading.window=8", "data.reading.lead=5")
KINDS: dict[str, tuple[str, ...]] = {
    "lstmn": (),
    "slot": (
        "model.reader.zero_slot=true",
        "model.reader.recency=true",
        "model.reader.layers=2",
        "model.embedding=10",
    ),
    "two-step": ("model.reader.common=20", "model.reader.recency=true"),
    "lstm": ("model.reader.kind=lstm",),
    "transformer": ("model.reader.kind=transformer", "model.reader.layers=2", "training.rate=0.01"),
    "running": CONTIGUOUS,
    "running-lstm": ("model.reader.kind=lstm", *CONTIGUOUS),
    "letters": ("tokenizer.kind=character", "training.max_steps=3", "data.max_source=60"),
}
SENTENCE = "the black cat sleeps"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("readers")
    (folder / "r.toml").write_text(RECIPE)
    return folder


@pytest.fixture(scope="module")
def models(home: Path) -> dict[str, Path]:
    """A small model of every kind."""
    made = {}
    for name, overrides in KINDS.items():
        done = here("train", home / "r.toml", *overrides, "--out", home / name)
        assert done.returncode == 0, done.stderr
        made[name] = home / name
    return made


def measured(folder: Path, *more: str | Path) -> dict[str, Any]:
    done = here("evaluate", "-m", folder, "--json", *more)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def refused(*words: str | Path, stdin: str = "") -> str:
    done = here(*words, stdin=stdin)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def lines_of(opened: ReaderModel) -> list[str]:
    return list(open_lines(opened.recipe.data, Path())["test"])


@torch.inference_mode()
def nats(opened: ReaderModel, given: list[int], wanted: list[int]) -> list[float]:
    """-log p of the wanted tokens, each by the whole softmax."""
    scores = opened.model(torch.tensor([given]))[0].double()
    return [-float(row.log_softmax(-1)[i]) for row, i in zip(scores, wanted, strict=True)]


@pytest.mark.parametrize("name", ["lstmn", "slot", "two-step", "lstm", "transformer", "letters"])
def test_perplexity_is_of_every_line_by_itself(models: dict[str, Path], name: str) -> None:
    opened, found = open_model(models[name]), measured(models[name])
    every: list[list[float]] = []
    for line in lines_of(opened):
        ids = opened.words.text.encode(line)
        every.append(nats(opened, [2, *ids[:-1]], ids))
    flat = [value for line in every for value in line]
    perplexity, *bits = found["metrics"]
    assert perplexity["value"] == pytest.approx(math.exp(sum(flat) / len(flat)), rel=1e-4)
    assert perplexity["signature"] == f"log:e|tokens:{len(flat)}|end:counted|protocol:sentences"
    assert bool(bits) == (found["unknown"] == 0) == (name == "letters")
    if bits:
        characters = sum(len(line) + 1 for line in lines_of(opened))
        assert bits[0]["value"] == pytest.approx(sum(flat) / math.log(2) / characters, rel=1e-4)
    third = next(place for place in found["by_position"] if (place["low"], place["high"]) == (3, 3))
    wanted = [line[2] for line in every if len(line) > 2]
    assert third["tokens"] == len(wanted)
    assert third["perplexity"] == pytest.approx(math.exp(sum(wanted) / len(wanted)), rel=1e-4)
    learnt = 1 if name == "letters" else 2  # it had three steps
    assert perplexity["value"] < len(opened.words.text) / learnt


@pytest.mark.parametrize("name", ["running", "running-lstm"])
def test_one_long_text_goes_on_from_window_to_window(models: dict[str, Path], name: str) -> None:
    opened, found = open_model(models[name]), measured(models[name])
    ids = [i for line in lines_of(opened) for i in opened.words.text.encode(line)]
    perplexity = found["metrics"][0]
    carried = "tape of 128" if name == "running" else "state"
    assert perplexity["signature"].endswith(f"protocol:contiguous|window:8|carried:{carried}")
    if name == "running":  # the tape forgets what is too far back
        path, kept = models[name].parent / "short.txt", lines_of(opened)[:12]
        path.write_text("\n".join(kept))
        ids = [i for line in kept for i in opened.words.text.encode(line)]
        assert 64 < len(ids) <= 128
        perplexity = measured(models[name], "--data", path)["metrics"][0]
    flat = nats(opened, [3, *ids[:-1]], ids)
    assert perplexity["value"] == pytest.approx(math.exp(sum(flat) / len(flat)), rel=1e-4)


def test_two_readers_are_compared_line_by_line(models: dict[str, Path]) -> None:
    found = measured(models["lstm"], "--against", models["lstmn"], "--metric", "perplexity")
    compared = found["against"]["comparison"]
    assert [m["name"] for m in found["metrics"]] == ["perplexity"]
    assert compared["first"]["value"] == found["metrics"][0]["value"]
    assert compared["difference"] == pytest.approx(compared["first"]["value"] - compared["second"]["value"])
    assert compared["low"] <= compared["difference"] <= compared["high"]
    assert "different tokens" in refused("evaluate", "-m", models["lstm"], "--against", models["letters"])


def test_what_cannot_be_measured_is_refused(models: dict[str, Path], home: Path) -> None:
    assert 'did you mean "perplexity"?' in refused("evaluate", "-m", models["lstm"], "--metric", "perplexty")
    both = ("-m", models["lstm"], "-m", models["lstmn"])
    assert "one at a time" in refused("evaluate", *both)
    assert "a reader writes nothing" in refused("evaluate", "-m", models["lstm"], "--beam", "3")
    assert 'names no "tset" data' in refused("evaluate", "-m", models["lstm"], "--split", "tset")
    assert "--test permutation or uniform" in refused("measure", "-m", models["lstmn"], "--test", "erasure")
    assert "one model at a time; 2" in refused("measure", "-m", models["lstm"], "-m", models["lstmn"])
    trace = ("trace", SENTENCE, "-m", models["lstmn"], "-o", home / "t.json")
    assert "trained to read, and searches nothing" in refused(*trace, "--beam", "3")
    assert "was trained to read" in refused("bench", "-m", models["lstm"])
    trained = ("train", home / "r.toml", "training.metric=bleu", "--out", home / "never")
    assert 'training.metric = "bleu": this task has no such figure' in refused(*trained)
    assert not (home / "never").exists()
    strange = home / "strange.txt"
    strange.write_text("the zebra yawns\n")
    words = ("evaluate", "-m", models["lstm"], "--data", strange)
    assert "unknown" in refused(*words, "--metric", "bits-per-character")
    found = measured(models["lstm"], "--data", strange)
    assert found["unknown"] == 2
    assert [m["name"] for m in found["metrics"]] == ["perplexity"]


def read_json(*words: str | Path, stdin: str = "") -> list[dict[str, Any]]:
    done = here("read", *words, "--json", stdin=stdin)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("name", ["lstmn", "slot", "lstm", "transformer", "running", "letters"])
def test_every_word_has_its_surprisal_and_what_it_read(models: dict[str, Path], name: str) -> None:
    opened = open_model(models[name])
    (line,) = read_json(SENTENCE, "-m", models[name])
    ids = opened.words.text.encode(SENTENCE)
    flat = nats(opened, [first_of(opened.recipe), *ids[:-1]], ids)
    assert line["bits"] == pytest.approx(sum(flat) / math.log(2), rel=1e-4)
    assert line["perplexity"] == pytest.approx(math.exp(sum(flat) / len(flat)), rel=1e-4)
    assert [word["word"] for word in line["words"]] == [*SENTENCE.split(), "</s>"]
    assert sum(word["bits"] for word in line["words"]) == pytest.approx(line["bits"])
    for at, word in enumerate(line["words"][:-1]):
        assert len(word["reads"]) == (0 if name == "lstm" else at + 1)
        assert sum(word["reads"]) <= 1 + 1e-5
    if name == "lstmn":
        assert line["words"][0]["reads"] == [1.0]  # a tape with one slot
    assert line["words"][-1]["reads"] == []


def test_lines_come_from_an_argument_files_or_a_pipe(models: dict[str, Path], home: Path) -> None:
    (home / "two.txt").write_text("the cat\n\na dog\n")
    from_file = read_json(home / "two.txt", "-m", models["lstmn"])
    assert [line["text"] for line in from_file] == ["the cat", "", "a dog"]
    assert from_file[1] == {"text": "", "words": []}
    assert read_json("-m", models["lstmn"], stdin="the cat\n\na dog\n") == from_file
    assert read_json("the cat", "-m", models["lstmn"]) == from_file[:1]
    shown = here("read", SENTENCE, "-m", models["lstmn"]).stdout.splitlines()
    assert shown[0].split() == ["word", "bits", "read", "most"]
    assert shown[1].split()[0] == "the"
    assert "<s> 100%" in shown[1]
    assert "perplexity" in shown[6]


def test_unknown_empty_and_long_sentences_are_answered(models: dict[str, Path], home: Path) -> None:
    (line,) = read_json("the zebra sleeps", "-m", models["lstmn"])
    assert [word["unknown"] for word in line["words"]] == [False, True, False, False]
    done = here("read", "zebras yawn", "-m", models["lstmn"])
    assert done.returncode == 0
    assert "knows none of its words" in done.stderr
    assert "zebras (unknown)" in done.stdout
    for text in ("", "   "):
        assert "nothing to read in an empty sentence" in refused("read", text, "-m", models["lstmn"])
    long = refused("read", " ".join(["the"] * 1001), "-m", models["lstmn"])
    assert "has 1,001 tokens, more than the 1,000 that are read" in long
    assert "there is no such file" in refused("read", home / "none.txt", "-m", models["lstmn"])
    assert 'did you mean "matrix"?' in refused("read", SENTENCE, "-m", models["lstmn"], "--view", "matrx")
    out = home / "x.png"
    assert "ask for one of them" in refused("read", SENTENCE, "-m", models["lstmn"], "-o", out, "--json")
    assert "-o draws one sentence; 2" in refused("read", "a", "b", "-m", models["lstmn"], "-o", out)
    assert not out.exists()


def test_a_reader_is_no_translator(models: dict[str, Path]) -> None:
    assert "was trained to read; use heedful read" in refused("translate", "-m", models["lstm"], stdin="a\n")


@pytest.mark.parametrize("name", ["lstmn", "slot", "two-step", "transformer", "running"])
def test_a_trace_holds_what_was_read_and_can_be_computed_again(
    models: dict[str, Path], home: Path, name: str
) -> None:
    path = home / f"{name}.json"
    done = here("trace", SENTENCE, "-m", models[name], "-o", path, "--replay", "--detail", "full")
    assert done.returncode == 0, done.stderr
    trace = Trace.load(path)
    first = "</s>" if name == "running" else "<s>"
    assert [token.text for token in trace.source.tokens] == [first, *SENTENCE.split()]
    assert [token.text for token in trace.target.tokens] == [*SENTENCE.split(), "</s>"]
    (line,) = read_json(SENTENCE, "-m", models[name])
    for step, word in zip(trace.steps, line["words"], strict=True):
        assert -step.logp / math.log(2) == pytest.approx(word["bits"], rel=1e-4)
    for at, word in enumerate(line["words"][:-1]):
        assert trace.matrix()[at + 1, : at + 1].tolist() == pytest.approx(word["reads"], abs=1e-5)
    assert trace.checks is not None
    differences = trace.checks.model_dump()
    for what in ("row_sum", "score", "softmax", "context", "output"):
        assert differences[what] < 1e-5, what
    if name != "transformer":
        assert differences["said"] < 1e-5


@pytest.mark.parametrize("view", ["arcs", "alignment", "lines", "heads", "steps"])
def test_a_trace_is_drawn(models: dict[str, Path], home: Path, view: str) -> None:
    path, out = home / "drawn.json", home / f"{view}.svg"
    assert here("trace", SENTENCE, "-m", models["slot"], "-o", path).returncode == 0
    done = here("show", path, "-o", out, "--view", view)
    assert done.returncode == 0, done.stderr
    if view != "heads":
        assert "black" in out.read_text()


@pytest.mark.parametrize("more", [(), ("--view", "matrix")], ids=["arcs", "matrix"])
def test_a_sentence_is_drawn_at_once(models: dict[str, Path], home: Path, more: tuple[str, ...]) -> None:
    out = home / "read.svg"
    done = here("read", SENTENCE, "-m", models["transformer"], "-o", out, *more)
    assert done.returncode == 0, done.stderr
    assert ("bits of surprise" in out.read_text()) == (not more)


def test_the_terminal_shows_a_trace(models: dict[str, Path], home: Path) -> None:
    path = home / "shown.json"
    here("trace", SENTENCE, "-m", models["lstmn"], "-o", path)
    assert "sleeps" in here("show", path).stdout
    here("trace", SENTENCE, "-m", models["lstm"], "-o", path)
    assert "has no attention" in refused("show", path)


def test_what_if_it_had_read_something_else(models: dict[str, Path], home: Path) -> None:
    path = home / "edited.json"
    done = here("trace", SENTENCE, "-m", models["lstmn"], "-o", path, "--set", "onehot:step=3,position=1")
    assert done.returncode == 0, done.stderr
    edited = Trace.load(path)
    assert edited.parent
    assert edited.matrix()[3].tolist() == [0, 1, 0, 0, 0]
    here("trace", SENTENCE, "-m", models["lstmn"], "-o", path)
    plain = Trace.load(path)
    logp = [[step.logp for step in trace.steps] for trace in (plain, edited)]
    assert logp[0][:3] == logp[1][:3]
    assert logp[0][3] != logp[1][3]
    done = here("trace", SENTENCE, "-m", models["lstmn"], "-o", path, "--set", "onehot:position=1")
    assert done.returncode == 0, done.stderr
    assert Trace.load(path).matrix()[2:, 1].tolist() == [1, 1, 1]
    changed = here(
        "trace", SENTENCE, "-m", models["lstmn"], "-o", path, "--set", "source:position=1,text=small"
    )
    assert changed.returncode == 0, changed.stderr
    assert Trace.load(path).source.text == "the small cat sleeps"
    words = ("trace", SENTENCE, "-m", models["lstmn"], "-o", path)
    assert "a reader writes nothing" in refused(*words, "--target", "a")
    assert "a reader writes nothing" in refused(*words, "--set", "prefix:text=a")
    assert "is for models that write" in refused(*words, "--what-if")
    assert "never looks back" in refused(
        "trace", SENTENCE, "-m", models["lstm"], "-o", path, "--set", "uniform"
    )


@pytest.mark.parametrize("name", ["lstmn", "running"])
def test_a_run_can_be_taken_up_at_any_batch(home: Path, name: str) -> None:
    loaded = load_recipe(home / "r.toml", KINDS[name])
    task = KIND.start(loaded.recipe, loaded.base, None, Ears()).task
    assert isinstance(task, ReadTask)
    whole = list(task.batches(2))
    assert len(whole) in range(task.steps_per_epoch() - 1, task.steps_per_epoch() + 2)
    for mine, theirs in zip(task.batches(2, start=3), whole[3:], strict=True):
        assert torch.equal(mine.given.ids, theirs.given.ids)
        assert torch.equal(mine.wanted, theirs.wanted)
    halves = [list(task.batches(2, rank=rank, world=2)) for rank in (0, 1)]
    assert sum(map(len, halves)) == len(whole)
    parts = task.parts(whole[0], 2)
    assert sum(int((part.wanted != 0).sum()) for part in parts) == int((whole[0].wanted != 0).sum())


def test_a_model_trained_in_parts_learns_from_the_same_sum(models: dict[str, Path], home: Path) -> None:
    opened: ReaderModel = open_model(models["running"])
    loaded = load_recipe(home / "r.toml", KINDS["running"])
    task = KIND.start(loaded.recipe, loaded.base, opened.words, Ears()).task
    assert isinstance(task, ReadTask)
    batch = next(iter(task.batches(1)))
    with torch.inference_mode():
        whole = task.loss(opened.model, batch)
        parts = [task.loss(opened.model, part) for part in task.parts(batch, 2)]
    assert sum(part.tokens for part in parts) == whole.tokens
    assert sum(float(part.total) for part in parts) == pytest.approx(float(whole.total), rel=1e-5)


def test_the_texts_own_unknown_word_stands_for_all_of_them(home: Path) -> None:
    (home / "own.txt").write_text("the <unk> sleeps\nthe cat sleeps\n" * 20)
    overrides = ("model.embedding=4", "model.reader.hidden=4", "training.epochs=1")
    text = RECIPE[: RECIPE.index("[data.world]")] + RECIPE[RECIPE.index("[model]") :]
    text = text.replace("[data]", '[data]\ntrain = ["own.txt"]\nvalid = ["own.txt"]')
    (home / "own.toml").write_text(text)
    done = here("train", home / "own.toml", *overrides, "--out", home / "own")
    assert done.returncode == 0, done.stderr
    same, strange = (read_json(f"the {word} sleeps", "-m", home / "own")[0] for word in ("<unk>", "zebra"))
    assert [w["bits"] for w in same["words"]] == [w["bits"] for w in strange["words"]]
    assert [w["unknown"] for w in strange["words"]] == [False, True, False, False]
    assert not any(w["unknown"] for w in same["words"])


WRONG = {
    "is over all words at once": ("model.reader.common=9", "training.smoothing=0.1"),
    "not in one long text": ("model.reader.recency=true", *CONTIGUOUS),
    "places need training.precision": ("model.reader.recency=true", "training.precision=bf16-mixed"),
    'task.kind = "read": give a preset such as read-lstmn': ("model.preset=bigru-gru", "model.reader="),
    'tie = "all": a reader has one vocabulary': ("model.tie=all", "tokenizer.shared=true"),
    "encoder: a reader has no such part": ("model.encoder.layers=2",),
    "reader.heads = 5: does not divide reader.hidden = 12": (
        "model.reader.kind=transformer",
        "model.reader.heads=5",
    ),
    "training.sampling, training.even: a reader writes no words": ("training.even=1.0",),
    "tokenizer.target_kind, dropout: a reader has one text": ("tokenizer.target_kind=character",),
    'protocol = "lines": no such protocol': ("data.reading.protocol=lines",),
    'task.kind = "translate": has no section [model.reader]': ("task.kind=translate",),
}


@pytest.mark.parametrize("words", WRONG)
def test_what_does_not_fit_is_said(home: Path, words: str) -> None:
    text = RECIPE
    overrides = [o for o in WRONG[words] if o != "model.reader="]
    if len(overrides) < len(WRONG[words]):
        text = text[: text.index("[model.reader]")] + text[text.index("[training]") :]
    (home / "wrong.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_recipe(home / "wrong.toml", overrides)
    assert words in str(caught.value)


def test_the_baseline_of_a_comparison_is_an_lstm(home: Path) -> None:
    made = variants(["model.reader.layers=1,2"], load_recipe(home / "r.toml").recipe.model)
    assert [variant.name for variant in made] == ["layers=1", "layers=2", "baseline: a plain LSTM"]
    for variant in made:
        load_recipe(home / "r.toml", variant.overrides)


def test_a_reader_in_python(models: dict[str, Path]) -> None:
    ours = heedful.load(models["lstmn"], task="read")
    line = lines_of(open_model(models["lstmn"]))[0]
    told = read_json(line, "-m", models["lstmn"])[0]["words"]
    assert [word for word, _ in ours(line)] == [word["word"] for word in told]
    assert [bits for _, bits in ours(line)] == pytest.approx([word["bits"] for word in told])
    assert ours.trace(line).matrix().shape[0] == len(told)


@pytest.mark.parametrize("name", ["lstmn", "slot", "transformer"])
def test_looks_of_a_reader_are_measured(models: dict[str, Path], name: str) -> None:
    done = here("measure", "-m", models[name], "--limit", "25", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["sentences"], found["unit"]) == (25, "lines")
    assert 0 < found["looks"]["entropy ratio"] <= 1
    assert 0 < found["looks"]["weight on the word before"] < found["looks"]["largest weight"] + 1e-9
    outputs = found["tests"]["outputs"]
    opened: ReaderModel = open_model(models[name])
    text = encoded(lines_of(opened)[:25], opened.words.encode_all, opened.recipe.data, 500)
    costs = np.concatenate(foreseen(opened.model, text, opened.recipe))
    assert outputs["as it is"] == pytest.approx(math.exp(costs.mean()), rel=1e-5)
    assert len({outputs["as it is"], outputs["uniform"], outputs["permute"]}) == 3
    told = here("measure", "-m", models[name], "--limit", "5")
    assert "T3 perplexity, all weights uniform" in " ".join(told.stdout.split())
    assert "has no attention" in refused("measure", "-m", models["lstm"])
    assert "nobody knows" in refused("measure", "-m", models[name], "--gold", models[name] / "model.json")


def test_a_reader_is_taught_more(models: dict[str, Path], home: Path) -> None:
    first = f"training.start_from={models['lstmn']}"
    still = ("training.epochs=1", "training.rate=1e-12", "training.warmup=0", "data.world.seed=2")
    done = here("train", home / "r.toml", first, *still, "--out", home / "more")
    assert done.returncode == 0, done.stderr
    assert "begun with lstmn" in done.stdout + done.stderr
    mine, theirs = (load_file(folder / "model.safetensors") for folder in (home / "more", models["lstmn"]))
    assert all((mine[name] - theirs[name]).abs().max() < 1e-6 for name in theirs)
    wrong = refused("train", home / "r.toml", first, "model.reader.hidden=13", "--out", home / "wrong")
    assert "model.reader.hidden: 12 -> 13" in wrong
    wrong = refused("train", home / "r.toml", first, "model.reader.common=20", "--out", home / "wrong")
    assert "foresees with model.reader.common = 0, this recipe with 20" in wrong
