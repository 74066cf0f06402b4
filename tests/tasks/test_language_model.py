"""Language models on the command line and in Python, compared with plain sums over the full softmax."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch

import heedful
from command_line import complaint, here
from heedful.data.line_file import open_lines
from heedful.data.text import encode_text
from heedful.data.tokenizer import END, START
from heedful.errors import DecodingError
from heedful.tasks.base import EvaluationRequest
from heedful.tasks.language_model.assets import LoadedLanguageModel
from heedful.tasks.language_model.data import start_token
from heedful.tasks.language_model.evaluate import evaluate_models
from heedful.tasks.language_model.predict import Line, Word, exp2, read_lines
from heedful.tasks.language_model.score import token_surprisals
from heedful.tasks.model_folder import load_model
from heedful.trace.schema import Trace
from small_language_models import train_language_models

pytestmark = pytest.mark.usefixtures("as_users_run")
SENTENCE = "the black cat sleeps"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return train_language_models(tmp_path_factory.mktemp("language_models"))


def evaluate(folder: Path, *more: str | Path) -> dict[str, Any]:
    done = here("evaluate", "-m", folder, "--json", *more)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def read_json(*words: str | Path, stdin: str = "") -> list[dict[str, Any]]:
    done = here("read", *words, "--json", stdin=stdin)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def load_lines(loaded: LoadedLanguageModel) -> list[str]:
    return list(open_lines(loaded.recipe.data, Path())["test"])


@torch.inference_mode()
def surprisal(loaded: LoadedLanguageModel, inputs: list[int], targets: list[int]) -> list[float]:
    """Return -log p of the targets in nats, each by the full softmax."""
    output = loaded.model(torch.tensor([inputs]), torch.ones(1, len(inputs), dtype=torch.bool))
    logits = loaded.model.output(output.features)[0].double()
    return [-float(row.log_softmax(-1)[i]) for row, i in zip(logits, targets, strict=True)]


@pytest.mark.parametrize("name", ["lstmn", "slot", "two-step", "lstm", "transformer", "letters"])
def test_perplexity_is_that_of_separate_lines(models: dict[str, Path], name: str) -> None:
    loaded, report = load_model(models[name]), evaluate(models[name])
    by_line: list[list[float]] = []
    for line in load_lines(loaded):
        ids = loaded.assets.text.encode(line)
        by_line.append(surprisal(loaded, [START, *ids[:-1]], ids))
    nats = [value for line in by_line for value in line]
    perplexity, *bits = report["metrics"]
    assert perplexity["value"] == pytest.approx(math.exp(sum(nats) / len(nats)), rel=1e-4)
    assert perplexity["signature"] == f"log:e|tokens:{len(nats)}|end:counted|protocol:sentences"
    assert bool(bits) == (report["unknown"] == 0) == (name == "letters")
    if bits:
        characters = sum(len(line) + 1 for line in load_lines(loaded))
        assert bits[0]["value"] == pytest.approx(sum(nats) / math.log(2) / characters, rel=1e-4)
    third = next(group for group in report["by_position"] if (group["low"], group["high"]) == (3, 3))
    expected = [line[2] for line in by_line if len(line) > 2]
    assert third["tokens"] == len(expected)
    assert third["perplexity"] == pytest.approx(math.exp(sum(expected) / len(expected)), rel=1e-4)
    factor = 1 if name == "letters" else 2  # trained for three steps only
    assert perplexity["value"] < len(loaded.assets.text) / factor


@pytest.mark.parametrize("name", ["running", "running-lstm"])
def test_the_state_is_carried_from_window_to_window(models: dict[str, Path], name: str) -> None:
    loaded, report = load_model(models[name]), evaluate(models[name])
    ids = [i for line in load_lines(loaded) for i in loaded.assets.text.encode(line)]
    perplexity = report["metrics"][0]
    carried = "tape of 128" if name == "running" else "state"
    assert perplexity["signature"].endswith(f"protocol:contiguous|window:8|carried:{carried}")
    if name == "running":  # the tape holds 128 tokens
        path, lines = models[name].parent / "short.txt", load_lines(loaded)[:12]
        path.write_text("\n".join(lines))
        ids = [i for line in lines for i in loaded.assets.text.encode(line)]
        assert 64 < len(ids) <= 128
        perplexity = evaluate(models[name], "--data", path)["metrics"][0]
    nats = surprisal(loaded, [END, *ids[:-1]], ids)
    assert perplexity["value"] == pytest.approx(math.exp(sum(nats) / len(nats)), rel=1e-4)


def test_two_models_are_compared_over_lines(models: dict[str, Path]) -> None:
    report = evaluate(models["lstm"], "--against", models["lstmn"], "--metric", "perplexity")
    comparison = report["against"]["comparison"]
    assert [metric["name"] for metric in report["metrics"]] == ["perplexity"]
    assert comparison["first"]["value"] == report["metrics"][0]["value"]
    assert comparison["difference"] == pytest.approx(comparison["first"]["value"] - comparison["second"]["value"])
    assert comparison["low"] <= comparison["difference"] <= comparison["high"]
    error = complaint("evaluate", "-m", models["lstm"], "--against", models["letters"])
    assert "split the text into different tokens" in error


def test_unknown_words_have_no_bits_per_character(models: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "unknown.txt").write_text("the zebra yawns\n")
    words = ("--data", tmp_path / "unknown.txt")
    error = complaint("evaluate", "-m", models["lstm"], *words, "--metric", "bits-per-character")
    assert "2 words are unknown to lstm" in error
    report = evaluate(models["lstm"], *words)
    assert report["unknown"] == 2
    assert [metric["name"] for metric in report["metrics"]] == ["perplexity"]


def test_requests_that_do_not_fit_a_language_model_are_refused(models: dict[str, Path], tmp_path: Path) -> None:
    one, both = ("-m", models["lstm"]), ("-m", models["lstm"], "-m", models["lstmn"])
    assert 'did you mean "perplexity"?' in complaint("evaluate", *one, "--metric", "perplexty")
    assert "is not supported: give one model, got 2" in complaint("evaluate", *both)
    assert "scores text and generates none" in complaint("evaluate", *one, "--beam", "3")
    assert 'names no "tset" data' in complaint("evaluate", *one, "--split", "tset")
    assert "was trained to read" in complaint("bench", *one)
    assert "was trained to read; use heedful read" in complaint("translate", *one, stdin="a\n")
    assert "`measure` takes one model, got 2" in complaint("measure", *both)
    assert "has no attention" in complaint("measure", *one)
    lstmn = ("-m", models["lstmn"])
    assert "permutation" in complaint("measure", *lstmn, "--test", "erasure")
    assert "there are no gold links" in complaint("measure", *lstmn, "--gold", models["lstm"] / "model.json")
    trace = ("trace", SENTENCE, *lstmn, "-o", tmp_path / "t.json")
    assert "trained to read and generates no text" in complaint(*trace, "--beam", "3")
    assert "a language model generates no text" in complaint(*trace, "--target", "a")
    assert "a language model generates no text" in complaint(*trace, "--set", "prefix:text=a")
    untraceable = ("trace", SENTENCE, *one, "-o", tmp_path / "t.json", "--set", "uniform")
    assert "has no attention over its input" in complaint(*untraceable)


@pytest.mark.parametrize("name", ["lstmn", "slot", "lstm", "transformer", "running", "letters"])
def test_every_word_has_its_surprisal_and_its_weights(models: dict[str, Path], name: str) -> None:
    loaded = load_model(models[name])
    (line,) = read_json(SENTENCE, "-m", models[name])
    ids = loaded.assets.text.encode(SENTENCE)
    nats = surprisal(loaded, [start_token(loaded.recipe), *ids[:-1]], ids)
    assert line["bits"] == pytest.approx(sum(nats) / math.log(2), rel=1e-4)
    assert line["perplexity"] == pytest.approx(math.exp(sum(nats) / len(nats)), rel=1e-4)
    assert [word["word"] for word in line["words"]] == [*SENTENCE.split(), "</s>"]
    assert sum(word["bits"] for word in line["words"]) == pytest.approx(line["bits"])
    for at, word in enumerate(line["words"][:-1]):
        assert len(word["weights"]) == (0 if name == "lstm" else at + 1)
        assert sum(word["weights"]) <= 1 + 1e-5
    if name == "lstmn":
        assert line["words"][0]["weights"] == [1.0], "the tape has one slot"
    assert line["words"][-1]["weights"] == []


def test_lines_come_from_arguments_files_or_stdin(models: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "two.txt").write_text("the cat\n\na dog\n")
    from_file = read_json(tmp_path / "two.txt", "-m", models["lstmn"])
    assert [line["text"] for line in from_file] == ["the cat", "", "a dog"]
    assert from_file[1] == {"text": "", "words": []}
    assert read_json("-m", models["lstmn"], stdin="the cat\n\na dog\n") == from_file
    assert read_json("the cat", "-m", models["lstmn"]) == from_file[:1]
    table = here("read", SENTENCE, "-m", models["lstmn"]).stdout.splitlines()
    assert table[0].split() == ["word", "bits", "attends", "to"]
    assert table[1].split()[0] == "the"
    assert "<s> 100%" in table[1]
    assert "perplexity" in table[6]


def test_unknown_words_and_long_lines_are_read_with_a_warning(models: dict[str, Path]) -> None:
    (line,) = read_json("the zebra sleeps", "-m", models["lstmn"])
    assert [word["unknown"] for word in line["words"]] == [False, True, False, False]
    done = here("read", "zebras yawn", "-m", models["lstmn"])
    assert done.returncode == 0
    assert "knows none of its words" in done.stderr
    assert "zebras (unknown)" in done.stdout
    long = " ".join(["the"] * 1001)
    done = here("read", long, "-m", models["lstmn"], "--json")
    assert "has 1,001 tokens, but the model reads at most 1,000: cut to the first 1,000" in done.stderr
    assert len(json.loads(done.stdout)["words"]) == 1001, "the end is a word too"
    error = complaint("read", long, "-m", models["lstmn"], "--on-too-long", "error")
    assert "has 1,001 tokens, but the model reads at most 1,000" in error


def test_bad_requests_to_read_are_refused(models: dict[str, Path], tmp_path: Path) -> None:
    out, model = tmp_path / "x.png", ("-m", models["lstmn"])
    for text in ("", "   "):
        assert "the sentence is empty" in complaint("read", text, *model)
    assert "there is no such file" in complaint("read", tmp_path / "none.txt", *model)
    assert 'did you mean "matrix"?' in complaint("read", SENTENCE, *model, "--view", "matrx")
    assert "cannot be combined" in complaint("read", SENTENCE, *model, "-o", out, "--json")
    assert "-o takes one sentence, got 2" in complaint("read", "a", "b", *model, "-o", out)
    assert not out.exists()


@pytest.mark.parametrize("name", ["lstmn", "slot", "two-step", "transformer", "running"])
def test_a_trace_agrees_with_reading_and_is_replayed(models: dict[str, Path], tmp_path: Path, name: str) -> None:
    path = tmp_path / "t.json"
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
        assert trace.matrix()[at + 1, : at + 1].tolist() == pytest.approx(word["weights"], abs=1e-5)
    assert trace.checks is not None
    differences = trace.checks.model_dump()
    for check in ("row_sum", "scores", "weights", "context", "output"):
        assert differences[check] < 1e-5, check
    if name != "transformer":
        assert differences["features"] < 1e-5


@pytest.mark.parametrize("view", ["arcs", "alignment", "lines", "heads", "steps"])
def test_a_trace_is_drawn(models: dict[str, Path], tmp_path: Path, view: str) -> None:
    path, out = tmp_path / "drawn.json", tmp_path / f"{view}.svg"
    assert here("trace", SENTENCE, "-m", models["slot"], "-o", path).returncode == 0
    done = here("show", path, "-o", out, "--view", view)
    assert done.returncode == 0, done.stderr
    if view != "heads":
        assert "black" in out.read_text()


@pytest.mark.parametrize("more", [(), ("--view", "matrix")], ids=["arcs", "matrix"])
def test_a_sentence_is_drawn_without_a_trace_file(
    models: dict[str, Path], tmp_path: Path, more: tuple[str, ...]
) -> None:
    done = here("read", SENTENCE, "-m", models["transformer"], "-o", tmp_path / "read.svg", *more)
    assert done.returncode == 0, done.stderr
    assert ("bits" in (tmp_path / "read.svg").read_text()) == (not more)


def test_a_trace_is_shown_on_the_terminal(models: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    here("trace", SENTENCE, "-m", models["lstmn"], "-o", path)
    assert "sleeps" in here("show", path).stdout
    here("trace", SENTENCE, "-m", models["lstm"], "-o", path)
    assert "has no attention" in complaint("show", path)


def test_edits_change_the_attention_or_the_words(models: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "t.json"

    def trace(*more: str) -> Trace:
        done = here("trace", SENTENCE, "-m", models["lstmn"], "-o", path, *more)
        assert done.returncode == 0, done.stderr
        return Trace.load(path)

    original, edited = trace(), trace("--set", "onehot:step=3,position=1")
    assert edited.parent == original.id
    assert edited.matrix()[3].tolist() == [0, 1, 0, 0, 0]
    logp, edited_logp = ([step.logp for step in each.steps] for each in (original, edited))
    assert logp[:3] == edited_logp[:3]
    assert logp[3] != edited_logp[3]
    assert trace("--set", "onehot:position=1").matrix()[2:, 1].tolist() == [1, 1, 1], "as soon as it can be attended to"
    assert trace("--set", "source:position=1,text=small").source.text == "the small cat sleeps"


def test_a_language_model_in_python_gives_words_and_bits(models: dict[str, Path]) -> None:
    model = heedful.load(models["lstmn"], task="read")
    line = load_lines(load_model(models["lstmn"]))[0]
    words = read_json(line, "-m", models["lstmn"])[0]["words"]
    assert [word for word, _ in model(line)] == [word["word"] for word in words]
    assert [bits for _, bits in model(line)] == pytest.approx([word["bits"] for word in words])
    assert model.trace(line).matrix().shape[0] == len(words)


@pytest.mark.parametrize("name", ["lstmn", "slot", "transformer"])
def test_attention_is_measured_by_its_effect_on_the_perplexity(models: dict[str, Path], name: str) -> None:
    done = here("measure", "-m", models[name], "--limit", "10", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["items"], report["unit"]) == (10, "lines")
    attention = report["attention"]
    assert 0 < attention["entropy_ratio"] <= 1
    assert 0 < attention["previous_word_weight"] < attention["largest_weight"] + 1e-9
    outputs = report["faithfulness"]["outputs"]
    loaded: LoadedLanguageModel = load_model(models[name])
    text = encode_text(load_lines(loaded)[:10], loaded.assets.encode_all, loaded.recipe.data, 500)
    nats = np.concatenate(token_surprisals(loaded.model, text, loaded.recipe))
    assert outputs["unchanged"] == pytest.approx(math.exp(nats.mean()), rel=1e-5)
    assert len({outputs["unchanged"], outputs["uniform"], outputs["permuted"]}) == 3
    assert "perplexity" in here("measure", "-m", models[name], "--limit", "5").stdout


def test_numbers_that_are_not_finite_are_an_error_and_huge_ones_are_infinite(models: dict[str, Path]) -> None:
    loaded: LoadedLanguageModel = load_model(models["lstm"])
    assert exp2(3.0) == 8
    line = Line(SENTENCE, [Word("the", 1e5, False, ())], 1)
    assert line.perplexity == math.inf
    for parameter in loaded.model.parameters():
        parameter.data.fill_(math.nan)
    with pytest.raises(DecodingError, match="line 1: the output of lstm is not finite; its weights are damaged"):
        list(read_lines(loaded, [SENTENCE]))
    with (
        patch("heedful.tasks.language_model.evaluate.load_model", lambda _: loaded),
        pytest.raises(DecodingError, match="the text: the output of lstm is not finite"),
    ):
        evaluate_models([models["lstm"]], EvaluationRequest())
