"""Options that several commands share. The decoding options are defined here once."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from heedful.config import DecodingOptions

Command = TypeVar("Command", bound=Callable[..., None])


class OnTooLongChoice(StrEnum):
    CUT = "cut"
    SKIP = "skip"
    ERROR = "error"


RecipeFile = Annotated[Path, typer.Argument(metavar="RECIPE", help="Recipe file (TOML).", show_default=False)]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="SECTION.KEY=VALUE", help="Override recipe settings, such as training.epochs=10."),
]
Model = Annotated[
    str | None,
    typer.Option(
        "-m",
        "--model",
        metavar="MODEL",
        help="Model folder, the name of a bundled model, or hf:FOLDER_OR_ID of transformers (default: the bundled model"
        " for this task).",
        show_default=False,
    ),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "-m",
        "--model",
        metavar="MODEL",
        help="Model folder, or the name of a bundled model; repeat for an ensemble"
        " (default: the bundled model for this task).",
        show_default=False,
    ),
]
ModelsOfAnyTask = Annotated[
    list[str] | None,
    typer.Option(
        "-m",
        "--model",
        metavar="MODEL",
        help="Model folder, or the name of a bundled model; repeat for an ensemble"
        " (default: the bundled translation model).",
        show_default=False,
    ),
]
InputFiles = Annotated[
    list[Path] | None, typer.Argument(metavar="FILE", help="Text files, one input per line (default: stdin).")
]
DataFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        metavar="FILE",
        help="Data to use instead of the recipe's: one table (CSV, TSV, JSONL, JSON, Parquet). Repeat for a source"
        " and a target file, or"
        " for an image folder and a captions file.",
    ),
]
Split = Annotated[str, typer.Option(metavar="SPLIT", help="Split of the recipe's data: train, valid or test.")]
Threads = Annotated[int, typer.Option(metavar="N", min=0, help="Number of CPU threads; 0: all available.")]
Int8 = Annotated[
    bool,
    typer.Option(
        "--int8",
        help="Quantize large weight matrices to int8: nearly identical output; faster on CPUs with AVX2 or NEON.",
    ),
]
OnTooLong = Annotated[
    OnTooLongChoice,
    typer.Option("--on-too-long", help="Input lines too long for the model: cut, skip or stop with an error."),
]
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object per line, with all details.")]
JsonReport = Annotated[bool, typer.Option("--json", help="Print the whole result as one JSON object.")]
Figure = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--out",
        metavar="FILE",
        help="Write the attention to a figure (.png, .svg, .pdf) or an interactive page (.html).",
        show_default=False,
    ),
]


def _check_seconds(value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value > 0):
        raise typer.BadParameter("expected a number of seconds above 0")
    return value


def _decoding_template(
    *,
    beam: Annotated[int | None, typer.Option(metavar="N", min=1, help="Beam size; 1 is greedy search.")] = None,
    n_best: Annotated[int | None, typer.Option(metavar="N", min=1, help="Number of outputs per input.")] = None,
    length_penalty: Annotated[
        float | None, typer.Option(metavar="X", help="Beam search: exponent of the length penalty; 0 disables it.")
    ] = None,
    coverage_penalty: Annotated[
        float | None, typer.Option(metavar="X", help="Beam search: weight of the coverage penalty; 0 disables it.")
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Beam search: continue until no better hypothesis is possible; slower.")
    ] = False,
    sample: Annotated[
        bool, typer.Option("--sample", help="Sample the output instead of searching for the most likely one.")
    ] = False,
    temperature: Annotated[
        float | None,
        typer.Option(metavar="X", help="Sampling: below 1 sharpens the distribution, above 1 flattens it."),
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(metavar="K", min=0, help="Sampling: only from the k most likely tokens; 0: from all.")
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(metavar="P", help="Sampling: only from the most likely tokens whose probabilities sum to p."),
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Sampling: random seed.")] = None,
    max_length: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Maximum output length, in tokens.")
    ] = None,
    replace_unknown: Annotated[
        bool,
        typer.Option(
            "--replace-unknown", help="Replace each <unk> by the source word with the largest attention weight."
        ),
    ] = False,
    capitals: Annotated[
        str | None,
        typer.Option(
            metavar="keep|recase",
            help="Lines written all in capitals; recase: read them in lower case and write the output in capitals.",
        ),
    ] = None,
    batch_size: Annotated[int | None, typer.Option(metavar="N", min=1, help="Inputs per batch.")] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option(metavar="S", callback=_check_seconds, help="Time limit in seconds; what takes longer is stopped."),
    ] = None,
) -> None:
    """Define the decoding options as parameters; `with_decoding` adds them to commands."""


def with_decoding(*, without: tuple[str, ...] = ()) -> Callable[[Command], Command]:
    """Replace the parameter `**decoding` of a command by the decoding options, except those in `without`."""
    options = [
        parameter
        for name, parameter in inspect.signature(_decoding_template, eval_str=True).parameters.items()
        if name not in without
    ]

    def decorate(command: Command) -> Command:
        signature = inspect.signature(command, eval_str=True)
        command_parameters = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        command.__signature__ = signature.replace(parameters=[*command_parameters, *options])  # type: ignore[attr-defined]
        return command

    return decorate


def parse_decoding(values: Mapping[str, Any]) -> DecodingOptions:
    """Return the decoding options that were given on the command line; the others stay unset.

    `max_seconds` is none of them: it starts when the model is loaded.
    """
    from heedful.config import decoding_options

    given = {name: value or None if isinstance(value, bool) else value for name, value in values.items()}
    given.pop("max_seconds", None)
    method = "sample" if given.pop("sample", None) else None
    return decoding_options({"method": method, **given}, "the command line")


def warn_if_int8_is_slow(int8: bool) -> None:
    """Warn on stderr if int8 is slower than float32 on this machine; imports torch."""
    if not int8:
        return
    from heedful import kernels

    if not kernels.has_fast_int8():
        reason = "it needs the compiled kernels and a CPU with AVX2 or the dot product of ARMv8.2"
        print(f"warning: --int8 is slower than float32 on this machine: {reason}", file=sys.stderr)
