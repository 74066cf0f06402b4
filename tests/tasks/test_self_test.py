"""Self-tests: every model computes the numbers of its card again, and no changed model does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import small_classifiers
import small_models
from changed_models import change_card, write_hashes
from command_line import here
from heedful.config.presets import ENCODER_DECODERS
from heedful.errors import ModelError
from heedful.tasks.bundled import bundled_models
from heedful.tasks.model_card import read_card
from heedful.tasks.model_folder import load_model, save_model
from heedful.tasks.self_test import run_self_test
from small_models import random_model_folder, small_preset

pytestmark = pytest.mark.usefixtures("as_users_run")
MODELS = [*((name, {}) for name in ENCODER_DECODERS), *small_models.VARIANTS]
OTHER_TASKS = {
    "recommend": '[task]\nkind = "recommend"\n[data.world]\nname = "tastes"\ntrain = 40\nvalid = 5\ntest = 5\n',
    "read": '[task]\nkind = "read"\n[data.world]\ntrain = 20\nvalid = 5\ntest = 5\n',
    "caption": '[task]\nkind = "caption"\n[data.world]\nname = "scenes"\ntrain = 6\nvalid = 3\ntest = 3\npixels = 48\n'
    '[data.images]\nbackbone = "toy-patches"\n',
}
PRESETS = (
    ("recommend", "nais-prod"),
    ("recommend", "popularity"),
    ("recommend", "fism"),
    ("read", "read-lstmn"),
    ("read", "read-transformer"),
    ("caption", "caption-soft"),
)


def check_outputs(folder: Path) -> None:
    """Check that a loaded model computes the outputs of its card."""
    stored = read_card(folder)["self_test"]
    assert len(stored["outputs"]) >= 2
    difference = run_self_test(load_model(folder))
    assert difference is not None
    assert difference < 1e-5


@pytest.mark.parametrize(("name", "changes"), MODELS)
def test_translators(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    random_model_folder(tmp_path / "m", small_preset(name, **changes))
    check_outputs(tmp_path / "m")


@pytest.mark.parametrize(("name", "changes"), small_classifiers.ALL)
def test_classifiers(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    small_classifiers.random_model_folder(tmp_path / "m", small_classifiers.small_preset(name, **changes))
    check_outputs(tmp_path / "m")


@pytest.mark.parametrize(("task", "preset"), PRESETS)
def test_models_of_other_tasks(task: str, preset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "r.toml").write_text(f'{OTHER_TASKS[task]}[model]\npreset = "{preset}"\n')
    steps = ("training.max_steps=2", "training.threads=1")
    done = here("train", tmp_path / "r.toml", *steps, "--out", tmp_path / "m")
    assert done.returncode == 0, done.stderr
    check_outputs(tmp_path / "m")


@pytest.mark.parametrize("name", bundled_models())
def test_bundled_models(name: str) -> None:
    check_outputs(bundled_models()[name])
    assert set(read_card(bundled_models()[name])["files"]) == {
        path.name for path in bundled_models()[name].iterdir() if path.name != "model.json"
    }


def test_a_model_in_another_precision_is_tested_as_it_will_be_loaded(tmp_path: Path) -> None:
    loaded = random_model_folder(tmp_path / "m", small_preset("cgru"))
    save_model(tmp_path / "h", loaded.recipe, loaded.assets, loaded.model.bfloat16(), {})
    assert load_file(tmp_path / "h" / "model.safetensors")["embedding.weight"].dtype == torch.bfloat16
    check_outputs(tmp_path / "h")


def test_a_changed_model_fails(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    random_model_folder(folder, small_preset("cgru"))
    weights = load_file(folder / "model.safetensors")
    save_file({name: 1.1 * weight for name, weight in weights.items()}, folder / "model.safetensors")
    write_hashes(folder)
    with pytest.raises(ModelError, match=r"m: the self-test fails: an output differs by .* more than 0\.001"):
        run_self_test(load_model(folder))
    assert "the self-test fails" in complaint_of_check(folder)


def complaint_of_check(folder: Path) -> str:
    done = here("check", folder)
    assert done.returncode == 2
    return done.stderr


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"outputs": [], "tolerance": 1},
        {"outputs": ["a"], "tolerance": 1},
        {"outputs": [1.0], "tolerance": None},
        {"outputs": [1.0], "tolerance": 1.0, "input": None},
        {"outputs": [1.0], "tolerance": 1.0, "input": {"source": 7, "target": 7}},
        {"outputs": [1.0], "tolerance": 1.0, "input": {"source": "a", "target": "b"}},
    ],
)
def test_a_damaged_self_test_is_an_error(stored: dict[str, Any], tmp_path: Path) -> None:
    random_model_folder(tmp_path / "m", small_preset("cgru"))
    change_card(tmp_path / "m", self_test=stored)
    assert "self" in complaint_of_check(tmp_path / "m")


def test_sampled_attention_has_no_self_test(tmp_path: Path) -> None:
    sampled = {"attention__placement": "hard", "attention__hard_inference": "sample"}
    random_model_folder(tmp_path / "m", small_preset("bigru-gru", **sampled))
    assert "self_test" not in read_card(tmp_path / "m")
    assert here("check", tmp_path / "m").stdout.endswith("self-test  not in the card\n")
