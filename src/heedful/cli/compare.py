"""`heedful compare`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import DataFiles
from heedful.errors import DataError


def compare(
    recipe: Annotated[
        Path | None, typer.Argument(metavar="RECIPE", help="Recipe file (TOML) to train.", show_default=False)
    ] = None,
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
        Path | None,
        typer.Option("-o", "--out", metavar="FOLDER", help="Folder for models and results.", show_default=False),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "-m",
            "--model",
            metavar="MODEL",
            help="Instead of a recipe: a trained model, the name of a bundled one, or hf:FOLDER_OR_ID; repeat it.",
            show_default=False,
        ),
    ] = None,
    data: DataFiles = None,
    gold: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With -m: gold word alignment, for the alignment error rate.")
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=0, help="With -m: use the first n examples; 0: all.")] = 500,
) -> None:
    """Compare variants of a recipe, or trained models.

    Variants are trained with the same budget and data order. Models (-m) are compared on --data: quality of their
    outputs, alignment error, entropy of their attention, and the effect of uniform weights on their decisions (TVD).
    """
    if (recipe is None) == (model is None):
        raise DataError("give either a recipe, whose variants are trained, or trained models with -m")
    if model is not None:
        print(_compare_models(model, data or [], gold, limit), end="")
        return
    if out is None:
        raise DataError("--out: needed for the models that are trained")
    assert recipe is not None
    from heedful.analysis.compare import compare as run_compare
    from heedful.analysis.compare_report import markdown
    from heedful.cli.console import make_console

    log = make_console(stderr=True).print
    rows = run_compare(recipe, vary or [], seeds, budget, out, log, variant or [], jobs, baselines)
    print(markdown(rows), end="")


def _compare_models(names: Sequence[str], data: Sequence[str], gold: Path | None, limit: int) -> str:
    """Return a table of models that exist already."""
    import heedful
    from heedful.analysis.compare_models import ComparedModel, compare_models, models_table

    if not data:
        raise DataError("--data: needed to compare models; a file of pairs, or of texts with labels")
    models = [heedful.load(name) for name in names]
    compared = [ComparedModel(model.loaded, model.task, model) for model in models]
    return models_table(compare_models(compared, data, gold, limit))
