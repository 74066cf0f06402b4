"""`heedful train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Overrides, RecipeFile


def train(
    recipe: RecipeFile,
    overrides: Overrides = None,
    *,
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="FOLDER", help="Model folder to write.", show_default=False)
    ],
) -> None:
    """Train a model from a recipe. To resume an interrupted run, repeat the command."""
    from heedful.config import load_recipe

    loaded = load_recipe(
        recipe, overrides or []
    )  # before torch is imported, so that errors in the recipe are reported at once
    from heedful.cli.progress import training_progress
    from heedful.tasks.train import train_recipe

    with training_progress() as callbacks:
        trained = train_recipe(loaded, out, callbacks)
    print(f"model written to {out}" if trained else f"{out}: already trained with this recipe")
