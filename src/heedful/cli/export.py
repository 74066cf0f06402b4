"""`heedful export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Model
from heedful.errors import ModelError, nearest

FORMATS = ("ctranslate2",)


def export(
    *,
    model: Model = None,
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help="Format: ctranslate2.")] = "ctranslate2",
    lines: Annotated[
        Path | None,
        typer.Option("--lines", metavar="FILE", help="Inputs to compare outputs on, one per line (default: random)."),
    ] = None,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FOLDER", help="Folder to write.", show_default=False)],
) -> None:
    """Export a Transformer for another program, and compare size, speed and outputs. Needs an extra."""
    from heedful.data.lines import read_lines
    from heedful.integrations.ctranslate2 import export_ctranslate2
    from heedful.tasks.open_model import is_from_elsewhere, open_model

    if to not in FORMATS:
        raise ModelError(f'--to "{to}": no such format; {nearest(to, FORMATS)}')
    if is_from_elsewhere(model) and str(model).startswith("hf:"):
        raise ModelError(f"{model}: a model of transformers is exported by its own tools (ct2-transformers-converter)")
    inputs = [] if lines is None else [line for line in read_lines(lines) if line.strip()]
    print(export_ctranslate2(open_model(model, "translate"), out, inputs))
