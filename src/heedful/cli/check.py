"""`heedful check`."""

from __future__ import annotations

import sys

from heedful.cli.options import Overrides, RecipeFile


def check(recipe: RecipeFile, overrides: Overrides = None) -> None:
    """Check a recipe. Prints every setting with its value, its meaning and where it was set."""
    from heedful.config import load_recipe, recipe_toml
    from heedful.config.unused import unused_settings

    loaded = load_recipe(recipe, overrides or [])
    print(recipe_toml(loaded.recipe, loaded.origins), end="")
    for sentence in unused_settings(loaded):
        print(f"note: {sentence}", file=sys.stderr)
