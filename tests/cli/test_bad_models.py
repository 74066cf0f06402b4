"""Model folders and checkpoints that are missing, damaged or of another model; losses that are not finite."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file

from changed_models import change_card, forget_hashes
from cli.corpus import contents
from command_line import complaint, here, refused, stopped

pytestmark = pytest.mark.usefixtures("as_users_run")


PARTS = ("model.json", "model.safetensors", "recipe.toml", "source.tokenizer.json", "target.tokenizer.json")
MESSAGES = {
    "missing": {
        "model.json": "not a finished model: model.json is missing",
        **{name: f"incomplete: {name} is missing; copy the folder again" for name in PARTS[1:]},
    },
    "damaged": {
        "model.json": "model.json: damaged: not a model card; copy the folder again",
        "model.safetensors": "model.safetensors: damaged, or does not match its recipe: ",
        "recipe.toml": "this version of heedful cannot use its recipe",
        "source.tokenizer.json": "source.tokenizer.json: not a tokenizer",
        "target.tokenizer.json": "target.tokenizer.json: not a tokenizer",
    },
}


def commands(model: Path, folder: Path) -> list[tuple[str | Path, ...]]:
    return [
        ("translate", "-m", model),
        ("evaluate", "-m", model),
        ("trace", "the a falls", "-m", model, "-o", folder / "t.json"),
        ("evaluate", "-m", folder / "intact", "--against", model, "--metric", "exact"),
    ]


def damage(path: Path, damage_kind: str) -> None:
    content = path.read_bytes()
    path.unlink()
    if damage_kind != "missing":
        half = content[: len(content) // 2]
        if path.suffix == ".toml":  # cut between two lines it would be a recipe still, of another model
            half = half[: half.rindex(b"=") + 1]
        path.write_bytes({"half": half, "empty": b"", "garbage": b"\x00\xffgarbage" * 99}[damage_kind])


@pytest.mark.parametrize("damage_kind", ["missing", "half", "empty", "garbage"])
@pytest.mark.parametrize("part", PARTS)
def test_the_missing_or_damaged_file_of_a_model_folder_is_named(
    model: Path, trained: Path, tmp_path: Path, part: str, damage_kind: str
) -> None:
    shutil.copytree(trained, tmp_path / "intact")
    forget_hashes(model)
    damage(model / part, damage_kind)
    before = contents(tmp_path)
    words = MESSAGES["missing" if damage_kind == "missing" else "damaged"][part]
    for command in commands(model, tmp_path):
        assert words in complaint(*command, stdin="the a\n")
    if (damage_kind, part) == ("half", "model.safetensors"):
        assert words in refused("translate", "-m", model, stdin="the a\n")
    assert contents(tmp_path) == before


@pytest.mark.parametrize("part", PARTS[1:])
def test_a_changed_file_is_refused_by_its_hash(model: Path, part: str) -> None:
    content = (model / part).read_bytes()
    (model / part).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    message = (
        f"{part}: damaged: its SHA-256 differs from the card's; copy the folder again, or train the model again"
        ' (changed on purpose? remove its entry in "files" from model.json)'
    )
    for command in (("translate", "-m", model), ("check", model)):
        assert message in complaint(*command, stdin="the a\n")


def test_a_link_out_of_the_folder_is_not_followed(model: Path, trained: Path, tmp_path: Path) -> None:
    for part in PARTS:
        (model / part).unlink()
        (model / part).symlink_to(trained / part)
        assert f"{part}: a link out of the model folder" in complaint("translate", "-m", model, stdin="the a\n")
        assert f"{part}: a link out of the model folder" in complaint("check", model)
        (model / part).unlink()
        shutil.copy(trained / part, model / f"other-{part}")
        (model / part).symlink_to(f"other-{part}")  # within the folder
        assert here("translate", "-m", model, stdin="the a\n").returncode == 0
    (tmp_path / "link").symlink_to(model)
    assert here("translate", "-m", tmp_path / "link", stdin="the a\n").returncode == 0


def test_check_reports_on_a_model(model: Path) -> None:
    done = here("check", model)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "files      5 as in the card"
    assert lines[1].startswith("weights    ")
    assert lines[2].startswith("self-test  passed, largest difference ")
    assert "overrides are for recipes" in complaint("check", model, "training.epochs=1")
    forget_hashes(model)
    change_card(model, self_test=None)
    lines = here("check", model).stdout.splitlines()
    assert lines[0] == "files      not checked: the card lists no hashes"
    assert lines[2] == "self-test  not in the card"


def test_a_folder_without_a_model_is_refused(tmp_path: Path, trained: Path) -> None:
    shutil.copytree(trained, tmp_path / "intact")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("notes of the user")
    cases = {
        "none": "no such model folder",
        "empty": "model.json is missing",
        "file": "is a file; a model",
    }
    before = contents(tmp_path)
    for name, words in cases.items():
        for command in commands(tmp_path / name, tmp_path):
            assert words in complaint(*command, stdin="the a\n")
    assert contents(tmp_path) == before


def test_a_model_of_a_newer_format_is_refused(model: Path) -> None:
    card = json.loads((model / "model.json").read_text())
    (model / "model.json").write_text(json.dumps({**card, "format": 99}))
    error = refused("translate", "-m", model, stdin="the a\n")
    assert "model.json: format 99, but this version of heedful reads formats 1 to 2; update heedful" in error
    (model / "model.json").write_text(json.dumps(card))
    forget_hashes(model)
    text = (model / "recipe.toml").read_text()
    (model / "recipe.toml").write_text(text.replace("[training]", "[training]\nwarp = 9"))
    error = complaint("translate", "-m", model, stdin="the a\n")
    assert "this version of heedful cannot use its recipe" in error
    assert "warp: no such setting" in error
    (model / "recipe.toml").write_text(text.replace("hidden = 4", "hidden = 5", 1))
    assert "size mismatch for" in complaint("translate", "-m", model, stdin="the a\n")


def test_models_of_different_tasks_or_vocabularies_form_no_ensemble(model: Path, trained: Path, tmp_path: Path) -> None:
    ensemble = ("translate", "-m", trained, "-m", model)
    forget_hashes(model)
    text = (model / "recipe.toml").read_text()
    (model / "recipe.toml").write_text(text.replace('kind = "translate"', 'kind = "reply"'))
    error = complaint(*ensemble, stdin="the a\n")
    assert "were trained for different tasks (translate, reply) and cannot form an ensemble" in error
    assert "was trained for reply; use heedful reply" in complaint("translate", "-m", model, stdin="the a\n")
    (model / "recipe.toml").write_text(text)
    names = (model / "source.tokenizer.json").read_text()
    (model / "source.tokenizer.json").write_text(names.replace('"falls"', '"sings"'))
    assert "have different vocabularies" in complaint(*ensemble, stdin="the a\n")


def test_training_into_a_damaged_folder_is_refused(corpus: Path) -> None:
    train = ("train", corpus / "r.toml", "--out", corpus / "out")
    stopped(*train)
    (corpus / "out" / "source.tokenizer.json").write_text("{")
    before = contents(corpus)
    assert "source.tokenizer.json: not a tokenizer" in complaint(*train)
    assert "training is not finished; resume it with heedful train" in complaint(
        "translate", "-m", corpus / "out", stdin="the a\n"
    )
    (corpus / "out" / "recipe.toml").write_text("[")
    assert "recipe.toml cannot be used" in complaint(*train)
    assert set(contents(corpus)) == set(before)


DIVERGING = ("training.learning_rate=1e37", "training.warmup_steps=0")
STABLE = ("training.learning_rate=0.1", "training.warmup_steps=0")
SGD = ("training.optimizer=sgd", "training.grad_clip=0.0", "training.batch_tokens=20")


def read_weights(folder: Path) -> dict[str, bytes]:
    return {name: t.numpy().tobytes() for name, t in load_file(folder / "model.safetensors").items()}


def checkpoint_steps(folder: Path) -> list[int]:
    return sorted(int(path.stem.partition("-")[2]) for path in (folder / "resume").glob("step-*.pt"))


def test_a_nonfinite_loss_keeps_the_last_good_checkpoint(corpus: Path) -> None:
    train = ("train", corpus / "r.toml", *SGD, "training.epochs=3", "--out")
    assert here(*train, corpus / "intact", *STABLE).returncode == 0
    stopped(*train, corpus / "out", *STABLE)
    before = checkpoint_steps(corpus / "out")
    error = refused(*train, corpus / "out", *DIVERGING)
    assert "with changed settings: training.learning_rate: 0.1 -> 1e+37" in error
    assert re.search("the (loss|gradient) became (nan|inf) at step ", error)
    assert f"try a lower training.learning_rate: with it, the same command resumes from step {before[-1]} " in error
    assert not (corpus / "out" / "model.json").exists()
    assert checkpoint_steps(corpus / "out") == before
    done = here(*train, corpus / "out", *STABLE)
    assert done.returncode == 0, done.stderr
    assert f"resuming from step {before[-1]} " in done.stderr
    assert read_weights(corpus / "out") == read_weights(corpus / "intact")


def test_a_checkpoint_that_leads_to_a_nonfinite_loss_is_removed(corpus: Path) -> None:
    every = "training.checkpoint_every=1"
    train = ("train", corpus / "r.toml", *SGD, every, "training.epochs=3", "--out", corpus / "out")
    stopped(*train, *STABLE)
    error = complaint(*train, *DIVERGING)
    (failed,), (kept,) = re.findall(r" at step (\d+);", error), re.findall(r"resumes from step (\d+) ", error)
    assert checkpoint_steps(corpus / "out")[-1] == int(kept) < int(failed) - 1


@pytest.mark.parametrize("every", [500, 1])
def test_a_nonfinite_loss_before_the_first_checkpoint_leaves_nothing(corpus: Path, every: int) -> None:
    before, saved = contents(corpus), f"training.checkpoint_every={every}"
    error = complaint("train", corpus / "r.toml", "--out", corpus / "out", *DIVERGING, *SGD, saved)
    assert "with it, the same command starts over, because there is no good checkpoint yet" in error
    assert contents(corpus) == before


@pytest.mark.parametrize("rate", ["3e38", "1e38"])
def test_nonfinite_weights_are_not_saved(corpus: Path, rate: str) -> None:
    before = contents(corpus)
    train = ("train", corpus / "r.toml", "--out", corpus / "out", "training.max_steps=1", "training.warmup_steps=0")
    error = complaint(*train, f"training.learning_rate={rate}")
    assert "at step 1; try a lower training.learning_rate" in error
    assert contents(corpus) == before


def test_an_interrupted_run_accepts_new_training_settings_only(corpus: Path) -> None:
    train = ("train", corpus / "r.toml", "--out", corpus / "out")
    stopped(*train)
    before = contents(corpus)
    assert "training.seed: 1 -> 2" in complaint(*train, "training.seed=2")
    assert "model.dropout: 0.0 -> 0.1" in complaint(*train, "model.dropout=0.1")
    assert contents(corpus) == before
    assert here(*train, "training.learning_rate=0.01").returncode == 0
    assert "training.learning_rate: 0.01 -> 0.002" in complaint(*train)  # finished: another model
