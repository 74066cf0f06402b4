"""The program `heedful`: every command with its name."""

from __future__ import annotations

from importlib.metadata import version as package_version
from typing import Annotated

import typer

from heedful.cli import generate
from heedful.cli.align import align
from heedful.cli.batch import batch
from heedful.cli.bench import bench
from heedful.cli.caption import caption
from heedful.cli.check import check
from heedful.cli.classify import classify
from heedful.cli.compare import compare
from heedful.cli.evaluate import evaluate
from heedful.cli.export import export
from heedful.cli.measure import measure
from heedful.cli.models import list_models
from heedful.cli.read import read
from heedful.cli.recommend import recommend
from heedful.cli.serve import serve
from heedful.cli.show import show
from heedful.cli.studio import studio
from heedful.cli.trace import trace
from heedful.cli.train import train
from heedful.cli.world import worlds

EXIT_STATUS = (
    "Exit status: 0 done; 1 some inputs failed; 2 an error that you can correct; 130 interrupted; 141 the program that"
    " reads the output has ended."
)

app = typer.Typer(
    name="heedful",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog=EXIT_STATUS,
)


def _print_version(requested: bool) -> None:
    if requested:
        print(f"heedful {package_version('heedful')}")
        raise typer.Exit


@app.callback()
def heedful(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Train, use, visualize and measure attention models."""


app.command()(check)
app.command()(train)
for task, text in generate.COMMANDS.items():
    app.command(task, help=text)(generate.make_command(task))
app.command("summarise", hidden=True, help=generate.COMMANDS["summarize"])(generate.make_command("summarize"))
for command in (
    caption,
    classify,
    recommend,
    read,
    batch,
    evaluate,
    compare,
    bench,
    measure,
    align,
    trace,
    show,
    serve,
    studio,
    export,
):
    app.command()(command)
app.command("models")(list_models)
app.add_typer(worlds, name="world")
