"""The verbs. What is heavy is imported inside them, so that `--help` answers at once."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.world import worlds

app = typer.Typer(
    name="heedful",
    help="Train, use, see and measure models that decide where to look.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(worlds, name="world")

RecipeFile = Annotated[
    Path, typer.Argument(metavar="RECIPE", help="A recipe: a TOML file.", show_default=False)
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="[SECTION.KEY=VALUE]...", help="Settings that win over the recipe's."),
]
Model = Annotated[Path, typer.Option("-m", "--model", help="A model folder.", show_default=False)]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"heedful {version('heedful')}")
        raise typer.Exit


@app.callback()
def heedful(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Train, use, see and measure models that decide where to look."""


@app.command()
def check(recipe: RecipeFile, overrides: Overrides = None) -> None:
    """Check a recipe and print every resolved value, what it means and where it was set."""
    from heedful.config import load_recipe, recipe_toml

    loaded = load_recipe(recipe, overrides or [])
    print(recipe_toml(loaded.recipe, loaded.origins), end="")


@app.command()
def train(
    recipe: RecipeFile,
    overrides: Overrides = None,
    *,
    out: Annotated[Path, typer.Option("-o", "--out", help="Where the model goes.", show_default=False)],
) -> None:
    """Train a model as a recipe says."""
    from heedful.config import load_recipe

    loaded = load_recipe(recipe, overrides or [])
    from heedful.cli.progress import training
    from heedful.tasks.train import run

    with training() as listener:
        new = run(loaded, out, listener)
    print(f"the model is in {out}" if new else f"{out} is already trained to the end of this recipe")


@app.command()
def translate(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Text, one sentence a line (default: stdin).")
    ] = None,
    *,
    model: Model,
) -> None:
    """Translate: one line in, one line out; empty lines stay empty."""
    lines = _lines(files or [])
    from heedful.tasks.folder import open_model
    from heedful.tasks.text import translate as run

    opened = open_model(model)
    full = [line for line in lines if line.strip()]
    outputs = iter(run(opened.model, full, opened.words, opened.recipe))
    for line in lines:
        print(next(outputs) if line.strip() else "")


def _lines(files: list[Path]) -> list[str]:
    from heedful.data.readers import read_lines
    from heedful.errors import DataError

    if not files:
        try:
            return sys.stdin.buffer.read().decode("utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise DataError(f"stdin: not UTF-8 (byte {error.start})") from None
    for file in files:
        if not file.is_file():
            raise DataError(f"{file}: there is no such file")
    return [line for file in files for line in read_lines(file)]


@app.command()
def trace(
    text: Annotated[str, typer.Argument(help="A sentence.", show_default=False)],
    *,
    model: Model,
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Where the trace goes (JSON).", show_default=False)
    ],
) -> None:
    """Translate one sentence and write down where the model looked."""
    from heedful.errors import DataError

    if not text.strip():
        raise DataError("there is nothing to trace in an empty sentence")
    from heedful.tasks.folder import open_model
    from heedful.tasks.text import trace as run

    opened = open_model(model)
    run(opened.model, text, opened.words, opened.recipe, opened.name).save(out)


@app.command()
def show(
    file: Annotated[Path, typer.Argument(metavar="TRACE", help="A trace.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Draw to a .png, .svg or .pdf instead.", show_default=False),
    ] = None,
) -> None:
    """Draw a trace: in the terminal, or as a picture."""
    from heedful.record import Trace

    found = Trace.load(file)
    if out is not None:
        from heedful.view.figure import draw_alignment

        draw_alignment(found, out)
        return
    from rich.console import Console

    from heedful.view import alignment_text

    console = Console(highlight=False)
    console.print(
        alignment_text(found, console.width, "utf" in console.encoding.lower()), end="", soft_wrap=True
    )
