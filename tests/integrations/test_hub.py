"""Models on the hub, with a hub that is a folder: nothing is fetched in a test."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

import heedful
from heedful.errors import ModelError
from heedful.integrations import hub


class FolderHub:
    """Stands for `huggingface_hub.HfApi` and `snapshot_download`; repositories are folders."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.calls: list[tuple[str, Any]] = []

    def __call__(self, token: str | None = None) -> FolderHub:
        return self

    def create_repo(self, repo_id: str, **options: Any) -> None:
        self.calls.append(("create", options))
        (self.base / repo_id).mkdir(parents=True, exist_ok=True)

    def upload_folder(self, *, repo_id: str, folder_path: Path, **options: Any) -> None:
        shutil.copytree(folder_path, self.base / repo_id, dirs_exist_ok=True)

    def snapshot_download(self, repo_id: str, *, local_dir: Path, **options: Any) -> None:
        self.calls.append(("download", options))
        if not (self.base / repo_id).is_dir():
            raise OSError("We couldn't connect to the hub.\nCheck your connection")
        shutil.copytree(self.base / repo_id, local_dir, dirs_exist_ok=True)


@pytest.fixture
def folder_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FolderHub:
    fake = FolderHub(tmp_path / "hub")
    monkeypatch.setattr("huggingface_hub.HfApi", fake)
    monkeypatch.setattr("huggingface_hub.snapshot_download", fake.snapshot_download)
    monkeypatch.setattr(hub, "user_cache_dir", lambda _: str(tmp_path / "cache"))
    return fake


def test_a_model_goes_up_and_comes_back(folder_hub: FolderHub) -> None:
    model = heedful.load("en-fr")
    address = model.push_to_hub("someone/en-fr", private=True)
    assert address.endswith("/someone/en-fr")
    assert folder_hub.calls[0] == ("create", {"private": True, "exist_ok": True})
    fetched = heedful.load("hub:someone/en-fr")
    assert fetched.name == "en-fr"
    assert fetched("The cat sleeps.") == model("The cat sleeps.")
    patterns = folder_hub.calls[-1][1]["allow_patterns"]
    assert not any(name.endswith((".py", ".bin", "*")) for name in patterns)
    card = (folder_hub.base / "someone" / "en-fr" / "README.md").read_text(encoding="utf-8")
    front = yaml.safe_load(card.split("---")[1])
    assert front["license"] == "other"  # several licenses: the card names them
    assert front["language"] == ["en", "fr"]
    assert front["pipeline_tag"] == "translation"
    metrics = front["model-index"][0]["results"][0]["metrics"]
    assert metrics[0]["type"] == "bleu"
    assert metrics[0]["value"] > 40
    assert "tok:13a" in metrics[0]["name"]


def test_what_was_fetched_is_a_strangers_folder(folder_hub: FolderHub) -> None:
    heedful.load("en-fr").push_to_hub("someone/damaged")
    weights = folder_hub.base / "someone" / "damaged" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"abcd")
    with pytest.raises(ModelError, match="SHA-256 differs"):
        heedful.load("hub:someone/damaged")


def test_offline_and_wrong_names_are_clear_errors(folder_hub: FolderHub) -> None:
    with pytest.raises(ModelError, match=r"hub:someone/nothing: cannot be fetched: We couldn't connect to the hub\."):
        heedful.load("hub:someone/nothing")
    for name in ("hub:", "hub:nothing", "hub:../../etc/x"):
        with pytest.raises(ModelError, match="OWNER/NAME"):
            heedful.load(name)
    assert [call for call, _ in folder_hub.calls] == ["download"]


def test_save_pretrained_writes_a_folder_with_a_card(tmp_path: Path) -> None:
    heedful.load("en-fr").save_pretrained(tmp_path / "copy")
    assert (tmp_path / "copy" / "README.md").read_text(encoding="utf-8").startswith("---\nlibrary_name: heedful")
    assert heedful.load(tmp_path / "copy")("The cat sleeps.") == "Le chat dort."


@pytest.mark.parametrize("revision", ["../../../home", "/tmp", "v1/../..", "."])
def test_a_version_is_no_path(revision: str, folder_hub: FolderHub) -> None:
    with pytest.raises(ModelError, match="cannot be the name of a version"):
        heedful.load(f"hub:someone/en-fr@{revision}")
    assert folder_hub.calls == []
