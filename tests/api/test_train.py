"""Training, evaluating, measuring and saving from Python."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import heedful
from command_line import here
from heedful.errors import ArgumentError, ConfigError, DataError, HeedfulError, ModelError
from heedful.training.types import Callbacks, Report

PAIRS = [(f"{a} {b}", f"{b} {a}") for a in "abcdefghij" for b in "abcdefghij"]
SMALL: dict[str, Any] = {
    "tokenizer": {"kind": "word", "vocab_size": 50},
    "model": {"embedding": 8, "encoder": {"hidden": 4}, "decoder": {"hidden": 8}, "attention": {"hidden": 6}},
}


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))


def train(data: Any = PAIRS, **options: Any) -> heedful.Model:
    """Train a small model for two steps."""
    return heedful.train(data, settings=SMALL | options.pop("settings", {}), **{"max_steps": 2, **options})


def weights(model: heedful.Model) -> bytes:
    return b"".join(tensor.numpy().tobytes() for tensor in model.loaded.model.state_dict().values())


def test_pairs_tables_and_files_train_the_same_model(tmp_path: Path) -> None:
    first = train()
    assert first.task == "translate"
    assert first.recipe.model.preset == "cgru"
    assert isinstance(first("a b"), str)
    frame = pd.DataFrame(PAIRS, columns=["source", "target"])
    frame.to_csv(tmp_path / "pairs.csv", index=False)
    for name, side in zip(("en.txt", "fr.txt"), zip(*PAIRS, strict=True), strict=True):
        (tmp_path / name).write_text("\n".join(side) + "\n", encoding="utf-8")
    names, columns = (tmp_path / "en.txt", tmp_path / "fr.txt"), tuple(map(list, zip(*PAIRS, strict=True)))
    for data in (frame, tmp_path / "pairs.csv", names, iter(PAIRS), columns, (columns[0], frame["target"])):
        assert weights(train(data)) == weights(first), type(data)


def test_settings_are_keywords_dotted_names_or_nested() -> None:
    recipe = train(
        preset="rnnsearch", learning_rate=0.5, settings={"decoding.beam": 3}, model__dropout=0.25, seed=9
    ).recipe
    assert recipe.model.preset == "rnnsearch"
    assert (recipe.training.learning_rate, recipe.training.seed) == (0.5, 9)
    assert recipe.decoding.beam == 3
    assert recipe.model.dropout == 0.25
    assert recipe.model.encoder.hidden == 4


def test_validation_and_test_data_are_given_or_held_out() -> None:
    held_out = train()
    assert held_out.recipe.data.split_valid > 0
    given = train(PAIRS[:80], valid=PAIRS[80:90], test=PAIRS[90:])
    assert given.recipe.data.split_valid == 0
    assert given.evaluate().count == 10
    assert given.evaluate(split="valid").count == 10
    splits = train({"train": PAIRS[:80], "validation": PAIRS[80:95], "test": PAIRS[95:]})
    assert (splits.evaluate(split="valid").count, splits.evaluate().count) == (15, 5)


def test_any_recipe_is_trained_as_on_the_command_line(tmp_path: Path) -> None:
    settings = SMALL | {"data": {"world": {"train": 60, "valid": 5, "test": 5}}, "training": {"max_steps": 2}}
    recipe = heedful.Recipe.from_dict({**settings, "model.preset": "luong"})
    recipe.save(tmp_path / "recipe.toml")
    assert here("train", tmp_path / "recipe.toml", "--out", tmp_path / "m").returncode == 0
    expected = weights(heedful.load(tmp_path / "m"))
    assert weights(heedful.train(recipe)) == expected
    assert weights(heedful.train(tmp_path / "recipe.toml")) == expected
    assert weights(heedful.train(heedful.Recipe.load(tmp_path / "recipe.toml"), out=tmp_path / "n")) == expected
    changed = heedful.Recipe.load(tmp_path / "recipe.toml", {"training.seed": 5})
    assert weights(heedful.train(changed)) != expected
    assert weights(heedful.train(recipe, seed=5)) == weights(heedful.train(changed))


def test_a_recipe_of_plain_sections_gets_its_preset() -> None:
    recipe = heedful.Recipe.model_validate({"data": {"world": {"train": 40, "valid": 4, "test": 4}}})
    trained = heedful.train(recipe, preset="cgru", settings=SMALL, max_steps=1).recipe
    assert trained.model.decoder.step_order == "conditional"


def test_paths_of_a_recipe_file_start_at_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "t.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in PAIRS), encoding="utf-8")
    heedful.Recipe.from_dict(SMALL | {"data": {"train": ["t.tsv"], "split_valid": 0.1}}).save(tmp_path / "here/r.toml")
    monkeypatch.chdir(tmp_path)
    recipe = heedful.Recipe.load("here/r.toml")
    assert repr(recipe) == "<Recipe translate: preset bigru-gru, data t.tsv>"
    assert "[training]" in str(recipe)
    assert heedful.train(recipe, max_steps=1).recipe.data.train == (str(tmp_path / "here" / "t.tsv"),)


def test_progress_is_reported() -> None:
    lines: list[str] = []
    train(callbacks=lines.append)
    assert lines[0].startswith("settings for 100 pairs: preset cgru")
    assert any(line.startswith("epoch 1, step 2: training loss") for line in lines)
    reports: list[Report] = []
    steps: list[int] = []
    train(callbacks={"on_validation": reports.append, "on_step": lambda step, _: steps.append(step)})
    train(callbacks=Callbacks(on_validation=reports.append))
    assert [report.step for report in reports] == [2, 2]
    assert steps[-1] == 2


def test_a_model_without_a_folder_is_saved_or_goes_away(tmp_path: Path) -> None:
    model = train()
    folder, answer = model.loaded.path, model("a b")
    model.save(str(tmp_path / "saved"))
    model.save(tmp_path / "saved")  # the same model again
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ModelError, match="the folder is not empty"):
        model.save(tmp_path / "other")
    del model
    gc.collect()
    assert not folder.exists()
    assert heedful.load(tmp_path / "saved")("a b") == answer


def test_an_existing_folder_is_not_trained_again(tmp_path: Path) -> None:
    first = train(out=tmp_path / "m")
    assert first.name == "m"
    assert weights(train(out=str(tmp_path / "m"))) == weights(first)
    with pytest.raises(HeedfulError, match="holds a model of another recipe; give another out"):
        train(out=tmp_path / "m", seed=2)


def test_an_evaluation_is_a_table_of_metrics() -> None:
    model = train()
    result = model.evaluate(PAIRS[:7], metrics=["exact", "bleu"], beam=2)
    assert repr(result).startswith("<Evaluation of model on 7 pairs: exact match ")
    assert set(result) == {"exact match", "BLEU", "perplexity"}
    assert result["bleu"] == result["BLEU"] == dict(result.items())["BLEU"]
    assert "source words" in str(result)
    assert result.to_dict()["pairs"] == 7
    assert result.compare_to(model.evaluate(PAIRS[:7], metrics=["exact", "bleu"])).difference == 0
    frame = pd.DataFrame(PAIRS[:7], columns=["source", "target"])
    assert model.evaluate(frame)["perplexity"] == pytest.approx(result["perplexity"])
    by_name = train(pd.DataFrame(PAIRS, columns=["source", "target"]))
    assert by_name.evaluate(PAIRS[:7])["perplexity"] == pytest.approx(by_name.evaluate(frame)["perplexity"])
    with pytest.raises(KeyError, match='did you mean "BLEU"'):
        result["blue"]


def test_a_measurement_has_numbers_and_sentences() -> None:
    result = train().measure(PAIRS[:4], tests="permutation", limit=3)
    assert repr(result) == "<Measurement of model on 3 sentences: attention, faithfulness>"
    assert 0 <= result["faithfulness"]["permutation"]["median_tvd"]["mean"] <= 1
    assert str(result).splitlines()[1].startswith("- Permuting the weights ")
    assert result.to_dict()["items"] == 3
    assert "faithfulness" not in train().measure(PAIRS[:4], tests="none")


def test_other_tasks_are_trained_from_python() -> None:
    texts = [(f"{word} {n} thing", "yes" if word == "good" else "no") for n in range(60) for word in ("good", "bad")]
    classifier = heedful.train(texts, "classify", epochs=12, learning_rate=0.01, model__encoder__hidden=8, ema=0.0)
    assert classifier.evaluate(texts)["accuracy"] > 90
    ratings = [(user, item, user + item) for user in range(30) for item in range(user % 7, 20, 2)]
    recommender = heedful.train(ratings, "recommend", max_steps=2)
    assert len(recommender(user=3, top=2)) == 2
    assert recommender(items=[2, 4], top=1)[0].id not in ("2", "4")
    reader = heedful.train([source for source, _ in PAIRS], "read", max_steps=1, model__language_model__hidden=8)
    assert [word for word, _ in reader("a b")] == ["a", "b", "</s>"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"epoch": 3}, ArgumentError, '^epoch: no such argument; did you mean "epochs"'),
        ({"epochs": -3}, ConfigError, "epochs = -3: must be more than 0"),
        ({"settings": {"trainig.epochs": 3}}, ArgumentError, 'no section "trainig.epochs"; did you mean "training"'),
        ({"model__hidden": object()}, ArgumentError, "model.hidden: expected text, a number"),
        ({"task": "translat"}, DataError, 'task="translat": no such task; did you mean "translate"'),
        ({"data": "missing.csv"}, DataError, "missing.csv does not exist"),
        ({"data": None}, DataError, "expected a file name, .* got None"),
        (
            {"data": ["a line", "another", "a third"]},
            DataError,
            r'rows such as \("source", "target"\).* got text: "a line"',
        ),
        ({"data": (["a"] * 4, ["b"] * 3)}, DataError, "two columns of different length, 4 and 3"),
        ({"data": PAIRS[:1]}, DataError, "data.split_valid = 0.1 puts no row there; .* or give valid="),
        (
            {"epochs": "three"},
            ConfigError,
            '^the setting training.epochs cannot be used:\n  - epochs = "three": expected',
        ),
        (
            {"preset": "transfomer"},
            ConfigError,
            '^the setting model.preset cannot .*\n.* did you mean "transformer".*$',
        ),
        ({"data": 3}, DataError, "expected a file name, a list of tuples or dicts, .* got int"),
        ({"data": "r.toml", "task": "read"}, ArgumentError, "^task: a recipe names its task and data"),
        ({"callbacks": {"on_stp": print}}, ArgumentError, 'no on_stp; did you mean "on_step"'),
        ({"callbacks": 3}, ArgumentError, "callbacks: expected a function or a dict of functions, got int"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        train(**{"data": PAIRS, **arguments})


def test_training_takes_any_seed_and_leaves_numpy_numbers_alone() -> None:
    assert train(seed=np.int64(4)).recipe.training.seed == 4
