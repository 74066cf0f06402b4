"""`heedful export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Model
from heedful.errors import ModelError, nearest

FORMATS = ("onnx", "ctranslate2")


def export(
    *,
    model: Model = None,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="onnx: translators, captioners and classifiers, with all attention weights as outputs;"
            " ctranslate2: Transformers, without them.",
        ),
    ] = "onnx",
    lines: Annotated[
        Path | None,
        typer.Option("--lines", metavar="FILE", help="Inputs to compare outputs on, one per line (default: random)."),
    ] = None,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FOLDER", help="Folder to write.", show_default=False)],
) -> None:
    """Export a model for another program, and compare size, speed, outputs and weights. Needs an extra."""
    if to not in FORMATS:
        raise ModelError(f'--to "{to}": no such format; {nearest(to, FORMATS)}')
    from heedful.data.lines import read_lines
    from heedful.integrations.extras import require
    from heedful.tasks.model_names import is_from_elsewhere
    from heedful.tasks.open_model import open_model

    if is_from_elsewhere(model) and str(model).startswith("hf:"):
        tool = {"onnx": "optimum-cli export onnx", "ctranslate2": "ct2-transformers-converter"}[to]
        raise ModelError(f"{model}: a model of transformers is exported by its own tools ({tool})")
    inputs = [] if lines is None else [line for line in read_lines(lines) if line.strip()]
    loaded = open_model(model, "translate")
    if to == "onnx":
        for package in ("onnx", "onnxscript", "onnxruntime"):
            require(package, "onnx", "the export to ONNX")
        from heedful.integrations.onnx.export import export_onnx

        print(export_onnx(loaded, out, inputs))
    else:
        from heedful.integrations.ctranslate2 import export_ctranslate2

        print(export_ctranslate2(loaded, out, inputs))
