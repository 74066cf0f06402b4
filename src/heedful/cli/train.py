"""`heedful train`."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from heedful.config import LoadedRecipe

INPUTS = {"caption": "photo.jpg", "recommend": "--user ID"}  # task -> the arguments of its command; others read stdin
OVERRIDE = re.compile(r"[a-z_]+(\.[a-z_0-9]+)+\s*=", re.IGNORECASE)


def train(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="RECIPE|DATA... [SECTION.KEY=VALUE...]",
            help="Recipe file (TOML), or with --task the data itself: a table (CSV, TSV, JSONL, JSON, Parquet), two"
            " parallel text files, or a folder of images and a table of captions; then settings such as"
            " training.epochs=10.",
            show_default=False,
        ),
    ],
    *,
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="FOLDER", help="Model folder to write.", show_default=False)
    ],
    task: Annotated[
        str,
        typer.Option(
            "--task",
            metavar="TASK",
            help="Train on data without a recipe: translate, summarize, reply, transduce, classify, recommend, caption"
            " or read. All settings follow from the data.",
            show_default=False,
        ),
    ] = "",
) -> None:
    """Train a model from a recipe, or from data. To resume an interrupted run, repeat the command."""
    loaded, note = open_recipe(files, task)  # before torch is imported, so that errors are reported at once
    from heedful.cli.progress import training_progress
    from heedful.tasks.train import train_recipe

    with training_progress() as callbacks:
        if note:
            callbacks.log(note)
        trained = train_recipe(loaded, out, callbacks)
    print(f"model written to {out}" if trained else f"{out}: already trained with this recipe")
    print(f"next: {next_command(loaded.recipe.task.kind, out)}", file=sys.stderr)


def next_command(task: str, out: Path) -> str:
    """Return the command that uses a trained model.

    >>> next_command("classify", Path("my model"))
    "echo 'A text.' | heedful classify -m 'my model'"
    >>> next_command("recommend", Path("m"))
    'heedful recommend -m m --user ID'
    """
    command = f"heedful {task} -m {shlex.quote(str(out))}"
    return f"{command} {INPUTS[task]}" if task in INPUTS else f"echo 'A text.' | {command}"


def open_recipe(arguments: list[str], task: str) -> tuple[LoadedRecipe, str]:
    """Return the recipe of a file or, with a task, one made for the given data, and a line that describes that."""
    from heedful.config import load_recipe
    from heedful.errors import DataError

    overrides = [text for text in arguments if OVERRIDE.match(text)]
    files = [text for text in arguments if text not in overrides]
    if not files:
        raise DataError("expected a recipe, or data and --task")
    is_recipe = files[0].lower().endswith(".toml")
    if task and is_recipe:
        raise DataError(f"--task {task}: {files[0]} is a recipe, which names its task; give data, or leave out --task")
    if task:
        from heedful.tasks.auto import make_recipe

        return make_recipe(task, files, overrides)
    if not is_recipe and Path(files[0]).is_file():
        raise DataError(f"{files[0]}: a recipe is named .toml; to train on data without a recipe give --task")
    return load_recipe(files[0], [*overrides, *files[1:]]), ""
