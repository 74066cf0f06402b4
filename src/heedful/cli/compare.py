"""`heedful compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import RecipeFile


def compare(
    recipe: RecipeFile,
    *,
    vary: Annotated[
        list[str] | None,
        typer.Option("--vary", help="Setting and its values: section.key=value,value,...; may be repeated."),
    ] = None,
    variant: Annotated[
        list[str] | None,
        typer.Option("--variant", help='One variant by its settings: "a.b=1 c.d=2"; may be repeated.'),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Trainings per variant, with different seeds.")] = 3,
    budget: Annotated[str, typer.Option(help="Budget per training: 90s, 10m, 1h or 2000steps.")] = "10m",
    jobs: Annotated[int, typer.Option(min=1, help="Trainings at the same time; they share the CPU cores.")] = 1,
    baselines: Annotated[bool, typer.Option(help="Include baselines without attention.")] = True,
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for models and results.", show_default=False)],
) -> None:
    """Compare variants of a recipe. All have the same budget and data order; reports quality and cost."""
    from rich.console import Console

    from heedful.analysis.compare import compare as run_compare
    from heedful.analysis.compare_report import markdown

    log = Console(stderr=True, highlight=False).print
    rows = run_compare(recipe, vary or [], seeds, budget, out, log, variant or [], jobs, baselines)
    print(markdown(rows), end="")
