"""Recipes made for data: columns and sizes follow from the files, overrides win, and errors come before training."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.config import Recipe, load_recipe
from heedful.config.auto import BY_TASK, DataSize, auto_settings
from heedful.config.unused import unused_settings
from heedful.data.pairs import LABEL_ROLES, open_pairs
from heedful.errors import ConfigError, DataError
from heedful.tasks.auto import make_recipe


def write_texts(folder: Path, name: str = "a.csv", header: str = "text,label\n", rows: int = 300) -> str:
    """Write texts of several words with one of three labels, sorted by label, and return the file's name."""
    rng = random.Random(1)
    labels = sorted(rng.choice(("good", "bad", "dull")) for _ in range(rows))
    lines = [f'"film {n}, seen {rng.random():.5f} times",{label}\n' for n, label in enumerate(labels)]
    (folder / name).write_text(header + "".join(lines))
    return name


def make(task: str, *files: str, base: Path, overrides: tuple[str, ...] = ()) -> Recipe:
    return make_recipe(task, files, overrides, base).loaded.recipe


@pytest.mark.parametrize("task", BY_TASK)
@pytest.mark.parametrize("rows", [1, 300, 20_000, 3_000_000])
def test_the_settings_of_every_task_and_size_make_a_recipe_that_uses_all_of_them(
    task: str, rows: int, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("".join(f"one{n} two\tthree four\n" for n in range(40)))
    (tmp_path / "images").mkdir()
    files = ["images", "a.txt"] if task == "caption" else ["a.txt"]
    made = make_recipe(task, files, (), tmp_path)
    assert not unused_settings(made.loaded)
    settings = auto_settings(task, DataSize(rows, 8.0, 8.0))
    assert settings["training"]["keep_best"]
    assert settings["training"]["epochs"] >= 3
    assert set(made.loaded.origins.values()) <= {"auto", "preset"}


def test_settings_follow_the_size_of_the_data() -> None:
    small, large = (auto_settings("translate", DataSize(rows, 8.0, 8.0)) for rows in (2_000, 200_000))
    assert small["training"]["epochs"] > large["training"]["epochs"]
    assert small["training"]["batch_tokens"] < large["training"]["batch_tokens"]
    assert small["tokenizer"]["vocab_size"] < large["tokenizer"]["vocab_size"]
    assert small["model"]["dropout"] > large["model"]["dropout"]
    tiny = auto_settings("translate", DataSize(20, 8.0, 8.0))["training"]
    steps = tiny["epochs"] * 20 * 8 / tiny["batch_tokens"]
    assert tiny["warmup_steps"] <= steps / 4


@pytest.mark.parametrize(
    ("header", "columns"),
    [("text,label\n", ("text", "label")), ("", (1, 2)), ("q,w\n", ("q", "w")), ("foo id,file\n", ("foo id", "file"))],
)
def test_the_columns_of_text_and_label_are_found(tmp_path: Path, header: str, columns: tuple[object, ...]) -> None:
    name = write_texts(tmp_path, header=header)
    assert make("classify", name, base=tmp_path).data.columns == columns


def test_a_label_before_its_text_is_found(tmp_path: Path) -> None:
    lines = [f"{n % 3}\ta text of several words {n}\t{n}\n" for n in range(100)]
    (tmp_path / "a.tsv").write_text("".join(lines))
    assert make("classify", "a.tsv", base=tmp_path).data.columns == (2, 1)
    rows = [{"id": n, "y": n % 3, "body text": f"a text of several words {n}"} for n in range(100)]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    assert make("classify", "a.json", base=tmp_path).data.columns == ("body text", "y")


def test_the_columns_of_pairs_and_ratings_are_found(tmp_path: Path) -> None:
    rows = [{"id": n, "translation": {"en": f"the cat {n}", "vi": f"con mèo {n}"}} for n in range(50)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert make("translate", "a.jsonl", base=tmp_path).data.columns == ("translation.en", "translation.vi")
    (tmp_path / "r.dat").write_text("".join(f"{n % 9}::{n}::5::{978_300_000 + n}\n" for n in range(60)))
    ratings = make("recommend", "r.dat", base=tmp_path, overrides=("data.separator=::",))
    assert (ratings.data.columns, ratings.data.ratings.hold_out) == ((1, 2, 4), "last")  # type: ignore[union-attr]
    (tmp_path / "r.csv").write_text("".join(f"{n % 9},{n},{n % 5}\n" for n in range(60)))
    assert make("recommend", "r.csv", base=tmp_path).data.columns == (1, 2)


def test_a_long_column_of_something_else_is_not_taken_for_a_translation(tmp_path: Path) -> None:
    rows = [f"Hi {n}.,Chào {n}.,Attribution: somebody on some page number {n}" for n in range(50)]
    (tmp_path / "a.csv").write_text("\n".join(["English,Vietnamese,attribution", *rows]))
    assert make("translate", "a.csv", base=tmp_path).data.columns == ("English", "Vietnamese")
    (tmp_path / "a.csv").write_text(
        "\n".join(["id,original,ours,split", *(f"{n},Hi {n}.,Chào {n}.,x" for n in range(50))])
    )
    assert make("translate", "a.csv", base=tmp_path).data.columns == ("original", "ours")
    (tmp_path / "a.csv").write_text("\n".join(["content_id,a_text,message", *rows]))
    with pytest.raises(
        DataError, match=r"set data.columns .* source and target; its columns are: content_id, a_text, mess"
    ):
        make("translate", "a.csv", base=tmp_path)


def test_overrides_win_and_change_what_depends_on_them(tmp_path: Path) -> None:
    name = write_texts(tmp_path)
    write_texts(tmp_path, "dev.csv")
    overrides = ("data.valid=dev.csv", "tokenizer.kind=word", "training.epochs=2", 'data.columns=["label", "text"]')
    recipe = make("classify", name, base=tmp_path, overrides=overrides)
    assert (recipe.data.valid, recipe.data.split_valid) == (("dev.csv",), 0.0)
    assert (recipe.tokenizer.kind, recipe.training.epochs, recipe.data.columns) == ("word", 2, ("label", "text"))
    with pytest.raises(ConfigError, match=r"epoch: no such setting; did you mean \"epochs\""):
        make("classify", name, base=tmp_path, overrides=("training.epoch=2",))


def test_a_part_of_a_split_by_hash_is_split_again(tmp_path: Path) -> None:
    write_texts(tmp_path)
    first = load_recipe(_recipe(tmp_path)).recipe.data
    rows = [f"{pair.source}\t{pair.target}\n" for pair in open_pairs(first, tmp_path, LABEL_ROLES)["train"]]
    (tmp_path / "train.tsv").write_text("".join(rows))
    again = make("classify", "train.tsv", base=tmp_path).data
    assert 10 < len(list(open_pairs(again, tmp_path, LABEL_ROLES)["valid"])) < 60


def _recipe(folder: Path) -> Path:
    path = folder / "r.toml"
    path.write_text(
        '[task]\nkind = "classify"\n[data]\ntrain = "a.csv"\nsplit_valid = 0.1\n[model]\npreset = "classify-learned"\n'
    )
    return path


@pytest.mark.parametrize(
    ("task", "files", "message"),
    [
        ("classfy", ["a.csv"], 'no such task; did you mean "classify"'),
        ("classify", ["b.csv"], r"b\.csv does not exist"),
        ("classify", ["a.csv", "a.csv", "a.csv"], "expected one table .* got 3 files"),
        ("caption", ["a.csv", "a.csv"], "expected a folder of images and a table of captions"),
        ("read", ["a.csv", "a.csv"], "expected one text file"),
        ("translate", ["empty.csv"], "contains no pairs"),
    ],
)
def test_wrong_data_is_an_error(tmp_path: Path, task: str, files: list[str], message: str) -> None:
    write_texts(tmp_path)
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(DataError, match=message):
        make_recipe(task, files, (), tmp_path)


TEXT, LABELS = "the soup was cold", ("good", "bad")
ROWS = "text,label\n" + "".join(f"{TEXT} {n},{LABELS[n % 2]}\n" for n in range(40))


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("excel.csv", ROWS.encode("utf-16"), r"excel\.csv: UTF-16, not UTF-8; save the file as UTF-8"),
        (
            "latin.csv",
            ROWS.replace("soup", "café").encode("latin-1"),
            r"(?s)not UTF-8 \(byte 7 of the line\).*\nsave .* as UTF-8",
        ),
        ("book.xlsx", b"PK\x03\x04" + bytes(range(256)), "a spreadsheet or zip archive, not text; export .* CSV"),
        ("a.csv.txt", b"\x1f\x8b" + bytes(range(256)), r"compressed by gzip; end its name in \.gz"),
        ("head.csv", b"text,label\n", r"head\.csv: contains no pairs"),
        (
            "half.jsonl",
            b'{"text": "a", "label": "b"}\n{"text"\n' * 30,
            r"30 of 60 lines cannot be used; to train on the",
        ),
    ],
)
def test_a_file_that_is_something_else_is_an_error_at_once(
    tmp_path: Path, name: str, data: bytes, message: str
) -> None:
    """Bad lines are skipped without a recipe, but not most of a file: nothing is trained on the rest of it."""
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=message):
        make_recipe("classify", [name], (), tmp_path)


def test_most_lines_may_be_skipped_when_asked(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a", "label": "b"}\n{"text"\n{"text"\n' * 30)
    note = make_recipe("classify", ["a.jsonl"], ["data.on_error=skip"], tmp_path).note
    assert note.startswith("settings for 30 texts")


@pytest.mark.parametrize(
    ("preset", "message"),
    [("cgru", 'preset = "cgru": not a preset for classify; known: classify-'), ("learned", "no such preset")],
)
def test_presets_of_other_tasks_are_one_problem_that_names_the_right_ones(
    tmp_path: Path, preset: str, message: str
) -> None:
    write_texts(tmp_path)
    with pytest.raises(ConfigError, match=message) as error:
        make_recipe("classify", ["a.csv"], [f"model.preset={preset}"], tmp_path)
    assert "decoder" not in str(error.value)


def test_no_torch_is_imported(tmp_path: Path) -> None:
    write_texts(tmp_path)
    code = (
        "import sys; from pathlib import Path; from heedful.tasks.auto import make_recipe\n"
        "make_recipe('classify', ['a.csv'], (), Path()); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
