"""Inputs that are unlike the training data are noted, in the terminal, in JSON and in Python."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import small_models
from command_line import heedful
from heedful.api import load as heedful_load
from heedful.data.images.image_statistics import FILE_NAME as IMAGE_FILE
from heedful.data.images.image_statistics import ImageStatistics
from heedful.data.token_statistics import FILE_NAME, TokenStatistics, is_unlike_training
from heedful.data.tokenizer import END, UNK
from heedful.errors import ArgumentError, ModelError
from heedful.tasks.bundled import bundled_models
from heedful.tasks.classify.api import Classifier
from heedful.tasks.classify.predict import classify_lines
from heedful.tasks.generation_result import MAX_NOTES, Generation, UnlikeNotes
from heedful.tasks.model_folder import load_model
from heedful.tasks.seq2seq.predict import generate_records, make_predictor

LINES = ["ab cd ef"] * 20
IDS = [[5, 6, 7, END]] * 20


def fit_tokens() -> TokenStatistics:
    statistics = TokenStatistics.fit(IDS, LINES, IDS, 12)
    assert statistics is not None
    return statistics


def test_rare_tokens_short_tokens_and_unknown_words_are_unlike_the_training_text() -> None:
    statistics = fit_tokens()
    assert is_unlike_training("ab cd ef", [5, 6, 7, END], statistics) is False
    assert is_unlike_training("gh ij kl", [8, 9, 10, END], statistics) is True, "tokens that never occur"
    assert is_unlike_training("xyz", [UNK, END], statistics) is True
    assert is_unlike_training("gh ij", [8, 9, END], None) is None, "not known without statistics"
    assert is_unlike_training("gh ij", [UNK, UNK, END], None) is True


def test_one_unknown_word_among_many_is_no_reason_for_a_note() -> None:
    assert is_unlike_training("ab cd ef ab cd xy", [5, 6, 7, 5, 6, UNK, END], fit_tokens()) is False


def test_token_statistics_are_stored_and_impossible_ones_are_refused(tmp_path: Path) -> None:
    statistics = fit_tokens()
    statistics.save(tmp_path)
    stored = TokenStatistics.load(tmp_path, 12)
    assert stored is not None
    assert stored.threshold == statistics.threshold
    np.testing.assert_array_equal(stored.bits, statistics.bits)
    content = json.loads((tmp_path / FILE_NAME).read_text())
    for change in ({"threshold": float("nan")}, {"threshold": True}, {"units": [1] * 11}, {"units": [-1] * 12}):
        (tmp_path / FILE_NAME).write_text(json.dumps({**content, **change}))
        with pytest.raises(ModelError, match="not the statistics of 12 tokens"):
            TokenStatistics.load(tmp_path, 12)


def test_images_outside_the_subspace_of_training_images_are_unlike_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    basis = rng.normal(size=(4, 32))
    train, valid = (rng.normal(size=(n, 4)) @ basis + 0.05 * rng.normal(size=(n, 32)) for n in (200, 100))
    fitted = ImageStatistics.fit(train, valid)
    assert fitted is not None
    fitted.save(tmp_path)
    statistics = ImageStatistics.load(tmp_path, 32)
    assert statistics is not None
    assert (statistics.scores(valid) > statistics.threshold).mean() == pytest.approx(0.07, abs=0.01)
    assert (statistics.scores(rng.normal(size=(50, 32))) > statistics.threshold).all()
    with pytest.raises(ModelError, match="not the statistics of features of width 31"):
        ImageStatistics.load(tmp_path, 31)
    for components in (np.full((2, 32), np.nan), np.zeros((65, 32)), np.zeros((0, 32))):
        statistics._replace(components=components).save(tmp_path)
        with pytest.raises(ModelError, match="damaged"):
            ImageStatistics.load(tmp_path, 32)
    (tmp_path / IMAGE_FILE).write_bytes(b"\xff" * 100)
    with pytest.raises(ModelError, match="damaged"):
        ImageStatistics.load(tmp_path, 32)


def test_notes_name_the_first_inputs_and_count_the_others() -> None:
    logged: list[str] = []
    notes = UnlikeNotes(log=logged.append)
    for number in range(1, MAX_NOTES + 4):
        notes.add(f"line {number}", "strange")
    notes.finish()
    assert len(logged) == MAX_NOTES + 1
    assert logged[0] == "line 1: strange; the output may be meaningless"
    assert logged[-1] == "3 more lines are unlike the training data"


def test_a_folder_without_statistics_still_notes_unknown_words(tmp_path: Path) -> None:
    loaded = small_models.random_model_folder(tmp_path / "m", small_models.small_preset("cgru"))
    assert load_model(tmp_path / "m").assets.statistics is None
    options = loaded.recipe.decoding.model_copy(update={"max_length": 5})
    records = generate_records(make_predictor([loaded]), ["the black cat", "qq rr ss", ""], options)
    assert [record["unlike_training"] for record in records] == [None, True, False]
    assert 0 < records[0]["confidence"] <= 1
    assert records[2]["confidence"] is None


def test_classifiers_of_subwords_note_texts_of_another_language(tmp_path: Path) -> None:
    loaded = load_model(bundled_models()["intents"])
    lines = [
        "My card was swallowed by the machine.",
        "Die Karte wurde vom Automaten geschluckt.",
        "xqzt vbnm qwrp zzkl",
    ]
    notes: list[str] = []
    results = classify_lines(loaded, [*lines, *lines[1:] * 3], log=notes.append)
    assert [result.unlike_training for result in results[:3] if result is not None] == [False, True, True]
    assert notes[0].endswith('"): most of this text is unlike the training data; its label is a guess')
    assert notes[0].startswith('line 2 ("Die Karte')
    assert notes[-1] == "3 more lines are unlike the training data"
    assert len(notes) == MAX_NOTES + 1
    done = heedful("classify", "--json", stdin=f"{lines[0]}\n{lines[1]}\n", HEEDFUL_CACHE=str(tmp_path))
    assert [json.loads(line)["unlike_training"] for line in done.stdout.splitlines()] == [False, True]
    assert "line 2" in done.stderr


def test_results_are_short_to_print_and_wrong_arguments_are_named() -> None:
    classifier = heedful_load(task="classify")
    assert isinstance(classifier, Classifier)
    assert len(repr(classifier.explain("I lost my card. " * 20))) < 200
    recommender = heedful_load(task="recommend")
    (first, *_) = recommender(items=["The Matrix"])
    assert repr(first).startswith(f"<{first.title!r}: score ")
    assert len(repr(first)) < 200
    with pytest.raises(ArgumentError, match=r"^n: no such argument; .*known: user, items, top"):
        recommender(items=["The Matrix"], n=3)
    with pytest.raises(ArgumentError, match=r"^top='3': expected a whole number"):
        recommender(items=["The Matrix"], top="3")
    with pytest.raises(ArgumentError, match=r"^beam: no such argument; intents was trained to classify"):
        classifier("I lost my card.", beam=3)
    record = {"outputs": [{"text": "Oui."}], "confidence": 0.5, "unlike_training": False, "alignment": [[0.1] * 99]}
    assert repr(Generation.from_record(record)) == "Generation('Oui.', confidence=0.5, unlike_training=False)"


def test_the_bundled_translator_notes_another_language(tmp_path: Path) -> None:
    lines = "The cat sleeps on the chair.\nDas ist ein sehr schönes altes Haus.\n"
    done = heedful("translate", "--json", stdin=lines, HEEDFUL_CACHE=str(tmp_path))
    english, german = map(json.loads, done.stdout.splitlines())
    assert (english["unlike_training"], german["unlike_training"]) == (False, True)
    assert english["confidence"] == english["outputs"][0]["confidence"] > german["confidence"]
    assert "line 2: most of this text is unlike the training data" in done.stderr
    assert "line 1" not in done.stderr
