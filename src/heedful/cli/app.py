"""The program `heedful`: every command with its name. A call imports only the command that it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated

import typer

EXIT_STATUS = (
    "Exit status: 0 done; 1 some inputs failed; 2 an error that you can correct; 130 interrupted; 141 the program that"
    " reads the output has ended."
)
# The first sentence of every command's help, so that the list of commands is printed without importing them.
COMMANDS: Mapping[str, str] = {
    "check": "Check a recipe or a trained model.",
    "train": "Train a model from a recipe, or from data.",
    "translate": "Translate text.",
    "summarize": "Summarize text.",
    "reply": "Reply to utterances.",
    "transduce": "Rewrite strings, such as spelling to pronunciation.",
    "caption": "Caption images.",
    "classify": "Classify text.",
    "recommend": "Recommend items to a user.",
    "read": "Score text with a language model.",
    "batch": "Process any number of files: one output file per part, in order.",
    "evaluate": "Evaluate a model.",
    "compare": "Compare variants of a recipe, or trained models.",
    "bench": "Measure generation speed.",
    "measure": "Measure attention: alignment error and faithfulness.",
    "align": "Align the words of sentence pairs.",
    "trace": "Record every step of a model on one input.",
    "show": "Show a trace.",
    "serve": "Answer HTTP requests: all commands that use models, and traces.",
    "studio": "Open the studio in the browser: type, see where the model looks, change a weight, compare, train.",
    "export": "Export a model for another program, and compare size, speed, outputs and weights.",
    "models": "List the bundled models: what they do, test metrics, limits, size and license.",
    "world": "Generate synthetic data with known gold attention.",
}
ALIASES = {"summarise": "summarize"}
GENERATING = ("translate", "summarize", "reply", "transduce")
FUNCTIONS = {"models": "list_models"}  # the others have the name of their command


def _print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version as package_version  # slow to import

        print(f"heedful {package_version('heedful')}")
        raise typer.Exit


def _heedful(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Train, use, visualize and measure attention models."""


def build_app(arguments: Sequence[str] | None = None) -> typer.Typer:
    """Return the program; for the arguments of a call, with only what the call needs.

    A call of a command needs that command, a call for help or the version the names and summaries of all.
    """
    app = typer.Typer(
        name="heedful",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        epilog=EXIT_STATUS,
    )
    app.callback()(_heedful)
    first = arguments[0] if arguments else ""
    if arguments is not None and (not first or first.startswith("-")):
        for name, summary in COMMANDS.items():
            app.command(name, help=summary)(_summary_only)
        return app
    for name in [first] if first in COMMANDS or first in ALIASES else [*COMMANDS, *ALIASES]:
        _add_command(app, name)
    return app


def _summary_only() -> None:
    """Stand for a command in the list of commands."""


def _add_command(app: typer.Typer, name: str) -> None:
    """Import a command and add it; an alias is hidden."""
    task = ALIASES.get(name, name)
    if task in GENERATING:
        generate = import_module("heedful.cli.generate")
        app.command(name, help=generate.COMMANDS[task], hidden=name in ALIASES)(generate.make_command(task))
    elif name == "world":
        app.add_typer(import_module("heedful.cli.world").worlds, name=name)
    else:
        app.command(name)(getattr(import_module(f"heedful.cli.{name}"), FUNCTIONS.get(name, name)))
