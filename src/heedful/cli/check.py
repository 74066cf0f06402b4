"""`heedful check`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Overrides
from heedful.errors import DataError


def check(
    recipe: Annotated[
        Path,
        typer.Argument(
            metavar="RECIPE|MODEL",
            help="Recipe file (TOML), or a model: its folder, or the name of a bundled model.",
            show_default=False,
        ),
    ],
    overrides: Overrides = None,
) -> None:
    """Check a recipe or a trained model.

    Prints every setting of a recipe with its value, its meaning, its choices and where it was set. Of a model, checks
    that its files are as they were written, that its weights are finite, and that it computes the same outputs as when
    it was saved.
    """
    if (recipe / "model.json").exists() or (not recipe.exists() and _is_bundled(recipe)):
        if overrides:
            raise DataError(f"{overrides[0]}: overrides are for recipes; {recipe} is a model")
        _check_model(recipe)
        return
    from heedful.config import load_recipe, recipe_toml
    from heedful.config.unused import unused_settings

    loaded = load_recipe(recipe, overrides or [])
    print(recipe_toml(loaded.recipe, loaded.origins), end="")
    for sentence in unused_settings(loaded):
        print(f"note: {sentence}", file=sys.stderr)


def _is_bundled(name: Path) -> bool:
    if len(name.parts) != 1 or name.suffix:  # a path; saves importing torch for a recipe that does not exist
        return False
    from heedful.tasks.bundled import bundled_models

    return str(name) in bundled_models()


def _check_model(name: Path) -> None:
    from heedful.tasks.bundled import find_models
    from heedful.tasks.model_card import check_files, read_card
    from heedful.tasks.model_folder import load_model
    from heedful.tasks.self_test import run_self_test

    (folder,) = find_models([name], "")
    count = check_files(folder, read_card(folder))
    print(f"files      {f'{count} as in the card' if count else 'not checked: the card lists no hashes'}")
    loaded = load_model(folder)
    tensors = {id(tensor): tensor for tensor in loaded.model.state_dict(keep_vars=True).values()}  # some are shared
    numbers = sum(tensor.numel() for tensor in tensors.values())
    print(f"weights    {numbers:,} finite numbers, of the sizes that the recipe asks for")
    difference = run_self_test(loaded)
    result = "not in the card" if difference is None else f"passed, largest difference {difference:.1g}"
    print(f"self-test  {result}")
