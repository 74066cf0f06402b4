"""Classifiers on the command line and in Python: trained on the moods world, evaluated, measured, traced, drawn."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from unittest.mock import patch

import numpy as np
import pytest

import heedful
import small_classifiers
from command_line import complaint, here
from command_line import heedful as run_forked
from heedful.errors import DecodingError, ModelError
from heedful.tasks.base import EvaluationRequest
from heedful.tasks.classify.api import Classifier
from heedful.tasks.classify.evaluate import evaluate_models
from heedful.tasks.classify.predict import classify_lines
from heedful.tasks.model_folder import load_model
from heedful.trace.schema import Trace

pytestmark = pytest.mark.usefixtures("as_users_run")
RECIPE = Path(__file__).parents[2] / "recipes" / "world-moods.toml"
SENTENCE = "that soup was never dull and perfect"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train the recipe of the moods world, which takes some seconds."""
    out = tmp_path_factory.mktemp("moods") / "model"
    done = run_forked("train", RECIPE, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "6,000 texts, 2 labels (negative 50%, positive 50%)" in done.stderr
    return out


def test_attention_finds_the_decisive_words(model: Path) -> None:
    done = here("measure", "-m", model, "--test", "permutation", "--test", "uniform", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["gold"]["gold_weight"] >= 0.9
    assert report["gold"]["gold_weight_uniform"] < 0.25
    tests = report["faithfulness"]
    assert (tests["decision"], tests["decisions"]) == ("label", 500)
    assert tests["outputs"]["unchanged"] >= 97
    assert tests["outputs"]["uniform"] < 80, "the weights matter"


def test_each_line_gets_a_label_and_its_probability(model: Path) -> None:
    done = here("classify", "-m", model, stdin=f"{SENTENCE}\n\nqq zz\nthe film felt dreadful\n")
    first, second, third, fourth = done.stdout.rstrip("\n").split("\n")
    label, p = first.split("\t")
    assert (label, second) == ("positive", "")
    assert 0.5 < float(p) <= 1
    assert third.split("\t")[0] in ("positive", "negative")
    assert fourth.startswith("negative\t")
    assert done.stderr.count("\n") == 1
    assert 'line 3 ("qq zz"): the model knows none of its words; its label is a guess' in done.stderr
    done = here("classify", "-m", model, "--json", stdin=f"{SENTENCE}\n\n")
    record, blank = map(json.loads, done.stdout.splitlines())
    assert record["label"] == "positive"
    assert sum(record["probabilities"].values()) == pytest.approx(1)
    assert record["words"] == SENTENCE.split()
    assert sum(record["weights"]) == pytest.approx(1, abs=1e-5)
    assert blank == {"text": "", "label": None}


def test_a_text_of_mostly_unknown_words_is_noted_and_less_confident(tmp_path: Path) -> None:
    loaded = small_classifiers.random_model_folder(tmp_path, small_classifiers.small_preset("classify-learned"))
    notes: list[str] = []
    known, mostly, half = classify_lines(loaded, ["the soup was", "qq zz soup", "qq soup"], log=notes.append)
    assert notes == ['line 2 ("qq zz soup"): the model does not know 2 of its 3 words; its label is uncertain']
    assert known is not None
    assert mostly is not None
    assert half is not None
    assert known.to_dict()["confidence"] == pytest.approx(known.p)
    assert mostly.to_dict()["confidence"] == pytest.approx(mostly.p / 3)
    assert half.to_dict()["confidence"] == pytest.approx(half.p / 2)


def test_a_label_outside_the_training_data_is_an_error_of_the_model(model: Path, tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("the film felt dreadful\tnegative\nour soup was lovely\tsour\n")
    words = ("evaluate", "-m", model, "--data", tmp_path / "t.tsv")
    assert "sour (not in the training data)" in here(*words).stdout
    report = json.loads(here(*words, "--json", "--against", model).stdout)
    assert report["not_in_training"] == ["sour"]
    assert [m["name"] for m in report["metrics"]] == ["accuracy", "macro F1", "weighted F1"]
    assert report["metrics"][0]["value"] == 50.0
    assert report["confusion"]["labels"] == ["negative", "positive", "sour"]
    assert report["against"]["comparison"]["difference"] == 0.0
    assert "a classifier generates no text" in complaint(*words, "--beam", "3")
    assert '"bleu": not a metric for classification; known: accuracy' in complaint(*words, "--metric", "bleu")


def test_a_trace_is_replayed_and_drawn(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "t.json"
    done = here("trace", SENTENCE, "-m", model, "--replay", "--what-if", "--gold", "3-0 4-0 6-0", "-o", out)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("positive\n")
    trace = Trace.load(out)
    assert (trace.target.words, len(trace.steps)) == (["positive"], 1)
    assert trace.checks is not None
    for value in (trace.checks.scores, trace.checks.weights, trace.checks.context, trace.checks.output):
        assert value is not None
        assert value < 1e-5
    assert trace.checks.greedy_is_argmax
    assert trace.table(specials=False).columns == SENTENCE.split()
    assert {effect.position for effect in trace.counterfactuals} == set(range(7))
    table = here("show", out).stdout
    assert table.startswith("positive   (positive ")
    assert "never*" in table
    for kind, start in (
        ("png", b"\x89PNG"),
        ("svg", b"<?xml"),
        ("pdf", b"%PDF"),
        ("html", b"<!doctype html>"),
    ):
        assert here("show", out, "-o", tmp_path / f"t.{kind}").returncode == 0
        assert (tmp_path / f"t.{kind}").read_bytes().startswith(start)
    page = (tmp_path / "t.html").read_text()
    assert "#/walk" in page, "a classifier has the page of all tasks"
    assert "src=" not in page.partition("<body>")[0], "the page makes no requests"


def test_edits_change_the_trace_of_a_classifier_in_python(model: Path) -> None:
    classifier = heedful.load(model, task="classify")
    assert isinstance(classifier, Classifier)
    assert classifier(SENTENCE) == "positive"
    assert classifier([SENTENCE, ""]) == ["positive", ""]
    trace = classifier.trace(SENTENCE)
    weights = classifier.explain(SENTENCE).weights
    assert np.allclose(trace.table(specials=False).weights[0], weights or [], atol=1e-5)
    edited = classifier.trace(SENTENCE, edits=["onehot:position=1"])
    assert edited.weights()[0, 0].tolist() == [0, 1, 0, 0, 0, 0, 0, 0]
    assert edited.parent == trace.id
    assert edited.steps[0].top != trace.steps[0].top
    replaced = classifier.trace(SENTENCE, edits=["source:position=3"])
    assert replaced.source.words == "that soup was dull and perfect".split()
    assert heedful.load(model)(SENTENCE) == "positive"
    with pytest.raises(ModelError, match="was trained to classify, not to translate"):
        heedful.load(model, task="translate")
    with pytest.raises(TypeError, match="beam: no such argument; model was trained to classify"):
        classifier(SENTENCE, beam=3)


def test_requests_that_do_not_fit_a_classifier_are_complaint(model: Path, tmp_path: Path) -> None:
    assert "was trained to classify; use heedful classify" in complaint("translate", "-m", model, stdin="a\n")
    assert "was trained to classify; use heedful classify" in complaint("bench", "-m", model)
    assert "the sentence is empty" in complaint("trace", " ", "-m", model, "-o", tmp_path / "o.json")
    assert "not generated word by word" in complaint(
        "trace", "a b", "-m", model, "--set", "prefix:text=good", "-o", tmp_path / "o.json"
    )
    error = complaint("trace", "a b", "-m", model, "--target", "positiv", "-o", tmp_path / "o.json")
    assert 'did you mean "positive"?' in error
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train on texts of two to four sentences, one of which has the word that decides."""
    folder, rng = tmp_path_factory.mktemp("sentences"), Random(1)
    words = {"kind": "good great lovely".split(), "unkind": "bad poor awful".split()}

    def make_sentence(word: str) -> str:
        filler = [rng.choice("the we they film soup saw near today again was".split()) for _ in range(5)]
        return " ".join([*filler[: rng.randint(2, 5)], *([word] if word else []), rng.choice(".!")])

    for split, count in (("train", 1500), ("valid", 100), ("test", 200)):
        lines = []
        for _ in range(count):
            label, count_sentences = rng.choice(sorted(words)), rng.randint(2, 4)
            at, word = rng.randrange(count_sentences), rng.choice(words[label])
            sentences = (make_sentence(word if i == at else "") for i in range(count_sentences))
            lines.append(" ".join(sentences) + f"\t{label}\n")
        (folder / f"{split}.tsv").write_text("".join(lines))
    (folder / "r.toml").write_text(
        '[task]\nkind = "classify"\n[data]\ntrain = ["train.tsv"]\nvalid = ["valid.tsv"]\n'
        'test = ["test.tsv"]\n'
        '[model]\npreset = "classify-sentences"\nembedding = 16\n[model.encoder]\nhidden = 16\n'
        "[training]\nepochs = 4\nbatch_tokens = 800\nlearning_rate = 0.01\nthreads = 1\n"
    )
    done = run_forked("train", folder / "r.toml", "--out", folder / "m")
    assert done.returncode == 0, done.stderr
    return folder / "m"


def test_hierarchical_attention_works_with_all_commands(sentences: Path, tmp_path: Path) -> None:
    done = here("evaluate", "-m", sentences, "--json")
    assert json.loads(done.stdout)["metrics"][0]["value"] >= 95, done.stderr
    done = here("measure", "-m", sentences, "--limit", "20", "--json")
    tests = json.loads(done.stdout)["faithfulness"]
    assert tests["outputs"]["unchanged"] >= 95, done.stderr
    assert tests["input_erasure"]["decisions"] == 20
    text, path = "we saw the soup . near the awful film ! again .", tmp_path / "t.json"
    record = json.loads(here("classify", "-m", sentences, "--json", stdin=text).stdout)
    assert record["label"] == "unkind"
    assert sum(record["weights"]) == pytest.approx(1, abs=1e-5)
    done = here("trace", text, "-m", sentences, "--replay", "--detail", "full", "-o", path)
    assert done.returncode == 0, done.stderr
    trace = Trace.load(path)
    assert trace.site().keys_from == "enc.words"
    assert np.flatnonzero(trace.weights()[0, 0]).tolist() == [4, 9, 11], "sentences are attended to at their ends"
    assert trace.matrix()[0, :12].tolist() == pytest.approx(record["weights"], abs=1e-5)
    assert trace.checks is not None
    for name in ("row_sum", "scores", "weights", "context", "features", "output"):
        assert getattr(trace.checks, name) < 1e-5, name
    for name in ("t.png", "t.html"):
        assert here("show", path, "-o", tmp_path / name).returncode == 0
    assert "awful" in here("show", path).stdout
    assert "awful" in here("show", path, "--site", "enc.words").stdout
    done = here("trace", text, "-m", sentences, "--set", "onehot:position=0", "-o", path)
    assert (done.returncode, "may not be attended to; allowed: 4, 9, 11" in done.stderr) == (2, True)
    for edit in ("uniform@enc.words", "permute@enc.words", "zero@enc.words:step=4,position=3"):
        done = here("trace", text, "-m", sentences, "--set", edit, "--replay", "--detail", "full", "-o", path)
        assert done.returncode == 0, done.stderr
        checks = Trace.load(path).checks
        assert checks is not None
        assert max(checks.weights or 0, checks.context or 0, checks.features or 0, checks.output or 0) < 1e-5, edit


def test_probabilities_that_are_not_finite_are_an_error(model: Path) -> None:
    loaded = load_model(model)
    for parameter in loaded.model.parameters():
        parameter.data.fill_(float("inf"))
    with pytest.raises(DecodingError, match="line 2: the output of model is not finite; its weights are damaged"):
        classify_lines(loaded, ["", SENTENCE])
    with (
        patch("heedful.tasks.classify.evaluate.load_model_for", lambda *_: loaded),
        pytest.raises(DecodingError, match="the texts: the output of model is not finite"),
    ):
        evaluate_models([model], EvaluationRequest())


def test_lines_that_cannot_be_read_are_reported_and_the_others_classified(model: Path) -> None:
    done = here("classify", "-m", model, "--json", stdin=f"{SENTENCE}\n".encode() + b"\xff\n")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: stdin, line 2: not UTF-8 (byte 0 of the line)",
        "1 of 2 lines could not be read",
    ]
    first, second = map(json.loads, done.stdout.splitlines())
    assert "error" not in first
    assert second == {"text": "", "label": None, "error": "stdin, line 2: not UTF-8 (byte 0 of the line)"}
