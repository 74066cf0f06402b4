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
        typer.Option(
            "--vary",
            metavar="SECTION.KEY=V1,V2",
            help="Recipe setting and the values to compare; may be repeated (all combinations are trained).",
        ),
    ] = None,
    variant: Annotated[
        list[str] | None,
        typer.Option(
            "--variant",
            metavar="SETTINGS",
            help='Several settings that make up one variant: "a.b=1 c.d=2"; may be repeated.',
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="Runs per variant, each with its own seed.")] = 3,
    budget: Annotated[
        str, typer.Option(metavar="BUDGET", help="Training budget per run, such as 90s, 10m, 1h or 2000steps.")
    ] = "10m",
    jobs: Annotated[int, typer.Option(metavar="N", min=1, help="Runs at the same time; they share the CPU cores.")] = 1,
    baselines: Annotated[bool, typer.Option(help="Also train baselines without attention.")] = True,
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="FOLDER", help="Folder for models and results.", show_default=False)
    ],
) -> None:
    """Compare variants of a recipe. Trains each with the same budget and data order; reports quality and cost."""
    from heedful.analysis.compare import compare as run_compare
    from heedful.analysis.compare_report import markdown
    from heedful.cli.console import make_console

    log = make_console(stderr=True).print
    rows = run_compare(recipe, vary or [], seeds, budget, out, log, variant or [], jobs, baselines)
    print(markdown(rows), end="")
