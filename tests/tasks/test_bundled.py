"""Models that come with the package: by name, by task, and in words when there is none."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib
import pytest

from heedful.errors import ModelError
from heedful.tasks import bundled
from test_cli import heedful, refused


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(bundled, "SHELF", tmp_path)
    for name, task in (("en-fr", "translate"), ("headlines", "summarise")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.json").write_text(json.dumps({"format": 1, "task": task}))
    (tmp_path / "half").mkdir()
    return tmp_path


def test_by_name_by_task_and_by_folder(shelf: Path, tmp_path: Path) -> None:
    assert bundled.find([Path("headlines")], "translate") == [shelf / "headlines"]
    assert bundled.find([], "summarise") == [shelf / "headlines"]
    assert bundled.find([tmp_path / "half", Path("en-fr")], "translate") == [shelf / "half", shelf / "en-fr"]
    assert bundled.find([Path("runs/x")], "translate") == [Path("runs/x")], "a path is left as it is"


def test_a_name_that_is_none(shelf: Path) -> None:
    assert shelf.is_dir()
    with pytest.raises(ModelError, match=r'en-rf: .*did you mean "en-fr"\?'):
        bundled.find([Path("en-rf")], "translate")
    with pytest.raises(
        ModelError, match=r"no model to reply with comes with heedful yet: give a folder with -m"
    ):
        bundled.find([], "reply")


def test_through_the_command_line() -> None:
    assert "no model to reply with comes with heedful yet" in refused("reply", stdin="hello\n")


def test_a_real_translator_is_in_the_package() -> None:
    done = heedful("translate", stdin="The black cat sleeps on the old chair.\n")
    assert done.stdout == "Le chat noir dort sur la vieille chaise.\n", done.stderr
    folder = bundled.bundled()["en-fr"]
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 15_000_000
    card = json.loads((folder / "model.json").read_text())
    assert card["licence"] == "CC BY 2.0 FR"
    assert "tatoeba.org" in card["attribution"]
    told = heedful("models").stdout
    assert "en-fr" in told
    assert "CC BY 2.0 FR" in told


def test_a_real_captioner_is_in_the_package(tmp_path: Path) -> None:
    photo = Path(matplotlib.get_data_path()) / "sample_data" / "grace_hopper.jpg"
    first = heedful("caption", photo, HEEDFUL_CACHE=str(tmp_path))
    assert len(first.stdout.split()) >= 4, first.stderr
    assert "<unk>" not in first.stdout
    assert "non-commercial" in first.stderr, "said on first use"
    again = heedful("caption", photo, HEEDFUL_CACHE=str(tmp_path))
    assert again.stdout == first.stdout
    assert "non-commercial" not in again.stderr, "and once only"
    traced = heedful("trace", photo, "-o", tmp_path / "t.json", HEEDFUL_CACHE=str(tmp_path))
    assert traced.stdout.split() == first.stdout.split(), "a picture needs no -m"
    assert "no recommender comes with heedful" in refused("trace", "user:7", "-o", tmp_path / "u.json")
    folder = bundled.bundled()["photos"]
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 10_000_000
    card = json.loads((folder / "model.json").read_text())
    assert "non-commercial" in card["licence"]
    assert "Flickr8k" in card["attribution"]
