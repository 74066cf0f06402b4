"""Classifiers as users see them: trained on the world of moods, asked, measured, traced and drawn."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import numpy as np
import pytest

import heedful as package
from heedful.errors import ModelError
from heedful.record import Trace
from test_cli import heedful, refused

RECIPE = Path(__file__).parents[2] / "recipes" / "world-moods.toml"
SENTENCE = "that soup was never dull and perfect"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained as the recipe says, which takes some seconds."""
    out = tmp_path_factory.mktemp("moods") / "model"
    done = heedful("train", RECIPE, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "6,000 texts, 2 labels (negative 50%, positive 50%)" in done.stderr
    return out


def test_attention_finds_the_words_that_decide(model: Path) -> None:
    done = heedful("measure", "-m", model, "--test", "permutation", "--test", "uniform", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["gold"]["mass on gold"] >= 0.9
    assert found["gold"]["mass on gold, uniform"] < 0.25
    tests = found["tests"]
    assert (tests["decision"], tests["decisions"]) == ("label", 500)
    assert tests["outputs"]["as it is"] >= 97
    assert tests["outputs"]["uniform"] < 80, "here the weights matter"


def test_lines_in_labels_out(model: Path) -> None:
    done = heedful("classify", "-m", model, stdin=f"{SENTENCE}\n\nqq zz\nthe film felt dreadful\n")
    first, second, third, fourth = done.stdout.rstrip("\n").split("\n")
    label, p = first.split("\t")
    assert (label, second) == ("positive", "")
    assert 0.5 < float(p) <= 1
    assert third.split("\t")[0] in ("positive", "negative")
    assert fourth.startswith("negative\t")
    assert done.stderr.count("\n") == 1
    assert 'line 3 ("qq zz"): the model knows none of its words; its label is a guess' in done.stderr
    plain = [
        json.loads(line)
        for line in heedful("classify", "-m", model, "--json", stdin=f"{SENTENCE}\n\n").stdout.splitlines()
    ]
    assert plain[0]["label"] == "positive"
    assert sum(plain[0]["probabilities"].values()) == pytest.approx(1)
    assert plain[0]["words"] == SENTENCE.split()
    assert sum(plain[0]["weights"]) == pytest.approx(1, abs=1e-5)
    assert plain[1] == {"text": "", "label": None}


def test_a_label_that_training_never_saw_is_never_right(model: Path, tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("the film felt dreadful\tnegative\nour soup was lovely\tsour\n")
    words = ("evaluate", "-m", model, "--data", tmp_path / "t.tsv")
    done = heedful(*words)
    assert "sour (not in the training data)" in done.stdout
    plain = json.loads(heedful(*words, "--json", "--against", model).stdout)
    assert plain["not_in_training"] == ["sour"]
    assert [m["name"] for m in plain["metrics"]] == ["accuracy", "macro F1", "weighted F1"]
    assert plain["metrics"][0]["value"] == 50.0
    assert plain["confusion"]["labels"] == ["negative", "positive", "sour"]
    assert plain["against"]["comparison"]["difference"] == 0.0
    assert "a classifier searches and draws nothing" in refused(*words, "--beam", "3")
    assert '"bleu": is not for labels; known: accuracy' in refused(*words, "--metric", "bleu")


def test_a_trace_is_computed_twice_and_drawn(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "t.json"
    done = heedful(
        "trace", SENTENCE, "-m", model, "--replay", "--what-if", "--gold", "3-0 4-0 6-0", "-o", out
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("positive\n")
    trace = Trace.load(out)
    assert (trace.target.words, len(trace.steps)) == (["positive"], 1)
    assert trace.checks is not None
    for value in (trace.checks.score, trace.checks.softmax, trace.checks.context, trace.checks.output):
        assert value is not None
        assert value < 1e-5
    assert trace.checks.top_first
    assert trace.table(specials=False).columns == SENTENCE.split()
    assert {what.position for what in trace.whatif} == set(range(7))
    shown = heedful("show", out, COLUMNS="100").stdout
    assert shown.startswith("positive   (positive ")
    assert "never*" in shown
    assert "a word that decides" in shown
    for kind, start in (
        ("png", b"\x89PNG"),
        ("svg", b"<?xml"),
        ("pdf", b"%PDF"),
        ("html", b"<!doctype html>"),
    ):
        assert heedful("show", out, "-o", tmp_path / f"t.{kind}").returncode == 0
        assert (tmp_path / f"t.{kind}").read_bytes().startswith(start)
    page = (tmp_path / "t.html").read_text()
    assert page.count('class="word') == 7
    assert page.count('class="word gold"') == 3
    assert "src=" not in page
    assert "script" not in page


def test_what_if_it_looked_elsewhere(model: Path) -> None:
    ours = package.load(model, task="classify")
    assert ours(SENTENCE) == "positive"
    assert ours([SENTENCE, ""]) == ["positive", ""]
    seen = ours.look(SENTENCE)
    trace = ours.trace(SENTENCE)
    assert np.allclose(trace.table(specials=False).weights[0], seen.weights or [], atol=1e-5)
    other = ours.trace(SENTENCE, edits=["onehot:position=1"])
    assert other.weights()[0, 0].tolist() == [0, 1, 0, 0, 0, 0, 0, 0]
    assert other.parent == trace.id
    assert other.steps[0].top != trace.steps[0].top
    replaced = ours.trace(SENTENCE, edits=["source:position=3"])
    assert replaced.source.words == "that soup was dull and perfect".split()
    assert package.load(model)(SENTENCE) == "positive"
    with pytest.raises(ModelError, match="was trained to classify, not to translate"):
        package.load(model, task="translate")
    with pytest.raises(TypeError, match="beam: such settings are for models that write"):
        ours(SENTENCE, beam=3)


def test_other_verbs_say_which_is_meant(model: Path, tmp_path: Path) -> None:
    assert "was trained to classify; use heedful classify" in refused("translate", "-m", model, stdin="a\n")
    assert "was trained to classify; use heedful classify" in refused("bench", "-m", model)
    assert "empty sentence" in refused("trace", " ", "-m", model, "-o", tmp_path / "o.json")
    assert "not written word by word" in refused(
        "trace", "a b", "-m", model, "--set", "prefix:text=good", "-o", tmp_path / "o.json"
    )
    said = refused("trace", "a b", "-m", model, "--target", "positiv", "-o", tmp_path / "o.json")
    assert 'did you mean "positive"?' in said
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts of two to four sentences, one of which says what the text is held to be."""
    folder, rng = tmp_path_factory.mktemp("sentences"), Random(1)
    words = {"kind": "good great lovely".split(), "unkind": "bad poor awful".split()}

    def said(chosen: str) -> str:
        filler = [rng.choice("the we they film soup saw near today again was".split()) for _ in range(5)]
        return " ".join([*filler[: rng.randint(2, 5)], *([chosen] if chosen else []), rng.choice(".!")])

    for split, count in (("train", 1500), ("valid", 100), ("test", 200)):
        lines = []
        for _ in range(count):
            label, many = rng.choice(sorted(words)), rng.randint(2, 4)
            at, chosen = rng.randrange(many), rng.choice(words[label])
            lines.append(" ".join(said(chosen if i == at else "") for i in range(many)) + f"\t{label}\n")
        (folder / f"{split}.tsv").write_text("".join(lines))
    (folder / "r.toml").write_text(
        '[task]\nkind = "classify"\n[data]\ntrain = ["train.tsv"]\nvalid = ["valid.tsv"]\n'
        'test = ["test.tsv"]\n'
        '[model]\npreset = "classify-sentences"\nembedding = 16\n[model.encoder]\nhidden = 16\n'
        "[training]\nepochs = 4\nbatch_tokens = 800\nrate = 0.01\nthreads = 1\n"
    )
    done = heedful("train", folder / "r.toml", "--out", folder / "m")
    assert done.returncode == 0, done.stderr
    return folder / "m"


def test_words_then_sentences(sentences: Path, tmp_path: Path) -> None:
    """Trained, measured, asked, traced and drawn by the verbs of all others."""
    done = heedful("evaluate", "-m", sentences, "--json")
    assert json.loads(done.stdout)["metrics"][0]["value"] >= 95, done.stderr
    done = heedful("measure", "-m", sentences, "--limit", "60", "--json")
    tests = json.loads(done.stdout)["tests"]
    assert tests["outputs"]["as it is"] >= 95, done.stderr
    assert tests["words"]["decisions"] == 60
    text, path = "we saw the soup . near the awful film ! again .", tmp_path / "t.json"
    found = json.loads(heedful("classify", "-m", sentences, "--json", stdin=text).stdout)
    assert found["label"] == "unkind"
    assert sum(found["weights"]) == pytest.approx(1, abs=1e-5)
    done = heedful("trace", text, "-m", sentences, "--replay", "--detail", "full", "-o", path)
    assert done.returncode == 0, done.stderr
    trace = Trace.load(path)
    assert trace.looks().through == "enc.words"
    assert np.flatnonzero(trace.weights()[0, 0]).tolist() == [4, 9, 11], "sentences are read at their ends"
    assert trace.matrix()[0, :12].tolist() == pytest.approx(found["weights"], abs=1e-5)
    assert trace.checks is not None
    for what in ("row_sum", "score", "softmax", "context", "said", "output"):
        assert getattr(trace.checks, what) < 1e-5, what
    for picture in ("t.png", "t.html"):
        assert heedful("show", path, "-o", tmp_path / picture).returncode == 0
    assert "awful" in heedful("show", path).stdout
    assert "awful" in heedful("show", path, "--site", "enc.words").stdout
    done = heedful("trace", text, "-m", sentences, "--set", "onehot:position=0", "-o", path)
    assert (done.returncode, "may not be read; open: 4, 9, 11" in done.stderr) == (2, True)
    for edit in ("uniform@enc.words", "permute@enc.words", "zero@enc.words:step=4,position=3"):
        done = heedful(
            "trace", text, "-m", sentences, "--set", edit, "--replay", "--detail", "full", "-o", path
        )
        assert done.returncode == 0, done.stderr
        checks = Trace.load(path).checks
        assert checks is not None
        assert max(checks.softmax or 0, checks.context or 0, checks.said or 0, checks.output or 0) < 1e-5, (
            edit
        )
