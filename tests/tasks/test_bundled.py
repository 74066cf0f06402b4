"""Bundled models: by name, by task, and the error if there is none."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib
import pytest

from command_line import complaint, heedful, refused
from heedful.errors import ModelError
from heedful.tasks import bundled
from heedful.tasks.bundled import bundled_models, find_models
from heedful.tasks.model_card import read_card

ROOT = Path(__file__).parents[2]


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of bundled models for two tasks, and of one that is not finished."""
    folder = tmp_path / "bundled"
    monkeypatch.setattr(bundled, "BUNDLED_FOLDER", folder)
    for name, task in (("en-fr", "translate"), ("headlines", "summarize")):
        (folder / name).mkdir(parents=True)
        (folder / name / "model.json").write_text(json.dumps({"format": 2, "task": task}))
    (folder / "half").mkdir()
    return folder


def test_models_are_found_by_name_by_task_and_by_path(shelf: Path) -> None:
    assert find_models(["headlines"], "translate") == [shelf / "headlines"]
    assert find_models([], "summarize") == [shelf / "headlines"]
    assert find_models([shelf / "half", "en-fr"], "translate") == [shelf / "half", shelf / "en-fr"]
    assert find_models(["runs/x"], "translate") == [Path("runs/x")], "a path is not looked up"


def test_a_bundled_name_wins_over_a_folder_of_that_name(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "en-fr").mkdir()
    assert find_models(["en-fr"], "translate") == [shelf / "en-fr"]
    assert find_models(["./en-fr"], "translate") == [Path("en-fr")]
    assert "en-fr: not a finished model" in complaint("translate", "-m", "./en-fr", stdin="a\n")


@pytest.mark.usefixtures("shelf")
def test_an_unknown_name_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(ModelError, match=r'en-rf: no such model folder or bundled model; did you mean "en-fr"\?'):
        find_models(["en-rf"], "translate")
    with pytest.raises(ModelError, match="no bundled model for transduce; pass one with -m"):
        find_models([], "transduce")


def test_a_task_without_a_bundled_model_needs_m() -> None:
    assert "no bundled model for transduce; pass one with -m" in complaint("transduce", stdin="hello\n")


def test_a_translator_is_bundled_and_shows_its_license_once(tmp_path: Path) -> None:
    line = "The black cat sleeps on the old chair.\n"
    first, second = (heedful("translate", stdin=line, HEEDFUL_CACHE=str(tmp_path)) for _ in range(2))
    assert first.stdout == second.stdout == "Le chat noir dort sur la vieille chaise.\n", first.stderr
    assert first.stderr.startswith("en-fr: CC BY 2.0 FR, CC BY-SA 3.0 and others"), first.stderr
    assert "trained on sentences of tatoeba.org" in first.stderr, "the attribution"
    assert (len(first.stderr.splitlines()), second.stderr) == (1, "")
    folder = bundled_models()["en-fr"]
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 15_000_000
    assert "tatoeba.org" in read_card(folder)["attribution"]
    listed = heedful("models").stdout
    assert "en-fr" in listed
    assert "CC BY 2.0 FR" in listed


@pytest.mark.parametrize(
    ("command", "line", "output", "name", "license_name"),
    [("read", "She sat down by the fire.\n", "attends to", "novels", "public domain")],
)
def test_small_models_are_bundled_and_show_their_license_once(
    command: str, line: str, output: str, name: str, license_name: str, tmp_path: Path
) -> None:
    first, second = (heedful(command, stdin=line, HEEDFUL_CACHE=str(tmp_path)) for _ in range(2))
    assert output in first.stdout, first.stderr
    assert first.stdout == second.stdout
    assert first.stderr == f"{name}: {license_name}; {read_card(bundled_models()[name])['attribution']}\n"
    assert second.stderr == ""
    folder = bundled_models()[name]
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 6_000_000
    assert read_card(folder)["license"] == license_name
    assert f"{name} (src/heedful/bundled/{name})" in (ROOT / "LICENSE-MODELS").read_text(encoding="utf-8")


def test_a_recommender_is_bundled_with_titles_and_shows_its_license_once(tmp_path: Path) -> None:
    first, second = (
        heedful("recommend", "--items", "gravity; RUSH", "--top", "3", HEEDFUL_CACHE=str(tmp_path)) for _ in range(2)
    )
    assert first.stdout == second.stdout
    assert len(first.stdout.splitlines()) == 3, first.stderr
    assert all("Gravity (2013)" in line for line in first.stdout.splitlines()), "the films that are the reasons"
    assert "films: MIT; trained on MovieTweetings" in first.stderr
    assert "films: MIT" not in second.stderr
    folder = bundled_models()["films"]
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 1_000_000
    assert "films (src/heedful/bundled/films)" in (ROOT / "LICENSE-MODELS").read_text(encoding="utf-8")


def test_a_captioner_is_bundled_and_shows_its_license_once(tmp_path: Path) -> None:
    photo = Path(matplotlib.get_data_path()) / "sample_data" / "grace_hopper.jpg"
    first, second = (heedful("caption", photo, HEEDFUL_CACHE=str(tmp_path)) for _ in range(2))
    assert len(first.stdout.split()) >= 4, first.stderr
    assert "<unk>" not in first.stdout
    assert "non-commercial" in first.stderr
    assert second.stdout == first.stdout
    assert "non-commercial" not in second.stderr
    trace = heedful("trace", photo, "-o", tmp_path / "t.json", HEEDFUL_CACHE=str(tmp_path))
    assert trace.stdout.split() == first.stdout.split(), "an image file selects the bundled captioner"
    assert 'no user "seven"' in refused("trace", "user:seven", "-o", tmp_path / "u.json"), (
        "users select the recommender"
    )
    folder = bundled_models()["photos"]
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 10_000_000
    card = read_card(folder)
    assert "non-commercial" in card["license"]
    assert "Flickr8k" in card["attribution"]
