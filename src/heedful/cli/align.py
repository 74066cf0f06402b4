"""`heedful align`: word links of parallel data, by a statistical aligner."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.console import print_json
from heedful.cli.options import JsonReport
from heedful.errors import DataError

if TYPE_CHECKING:
    from heedful.section import Column


class PriorChoice(StrEnum):
    DIAGONAL = "diagonal"
    IBM1 = "ibm1"


class SymmetrizationChoice(StrEnum):
    GROW_DIAG_FINAL_AND = "grow-diag-final-and"
    GROW_DIAG = "grow-diag"
    INTERSECTION = "intersection"
    UNION = "union"
    FORWARD = "forward"
    REVERSE = "reverse"


def align(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE [FILE]",
            help="Sentence pairs: one table (CSV, TSV, JSONL, JSON, Parquet), or a source and a target text file."
            " Words are what white space separates.",
            show_default=False,
        ),
    ],
    *,
    extra: Annotated[
        list[str] | None,
        typer.Option("--extra", metavar="FILE", help="Table of more pairs to learn from, not printed. Repeatable."),
    ] = None,
    columns: Annotated[
        str,
        typer.Option(
            metavar="SOURCE,TARGET", help="Columns of the tables, by name or number from 1 (default: found by name)."
        ),
    ] = "",
    model: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--model",
            metavar="MODEL",
            help="Model folder or bundled model whose attention gives the links, instead of the statistical aligner:"
            " the source word with the largest weight for each target word.",
            show_default=False,
        ),
    ] = None,
    prior: Annotated[
        PriorChoice, typer.Option(help="Word order: diagonal favors equal positions (Dyer 2013), ibm1 ignores it.")
    ] = PriorChoice.DIAGONAL,
    symmetrize: Annotated[
        SymmetrizationChoice,
        typer.Option(help="How both directions are joined; forward: one source word per target word."),
    ] = SymmetrizationChoice.GROW_DIAG_FINAL_AND,
    iterations: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="Iterations of EM.")] = 5,
    keep_case: Annotated[bool, typer.Option("--keep-case", help="Tell words apart by case.")] = False,
    prefix: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Tell words apart by their first n characters only; 0: by all of them."),
    ] = 0,
    gold: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Gold word alignment of the same pairs (3-4: sure link, 3p4: possible link). Prints alignment error"
            " rate, precision and recall instead of the links.",
        ),
    ] = None,
    gold_base: Annotated[
        int, typer.Option(metavar="N", min=0, max=1, help="Word numbers in the gold file start at 0 or 1.")
    ] = 0,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="Write the links to a file.", show_default=False)
    ] = None,
    json: JsonReport = False,
) -> None:
    """Align the words of sentence pairs. Prints one line of links per pair, such as 0-0 1-2 (Pharaoh format)."""
    if len(files) > 2:
        raise DataError(f"expected one table or two parallel files, got {len(files)} files; more tables: --extra")
    if json and gold is None:
        raise DataError("--json: prints the scores of --gold; without --gold there are only links")
    from heedful.alignment import SYMMETRIZATIONS, AlignerOptions
    from heedful.alignment.symmetrize import symmetrize as join
    from heedful.api.alignment import align_files, align_with_model
    from heedful.metrics.alignment import score_alignment
    from heedful.trace.schema import read_links

    gold_links = read_links(gold, gold_base) if gold is not None else None
    if model is not None:
        if extra:
            raise DataError("--extra: is what the statistical aligner learns from; a model has learned already")
        alignment = align_with_model(model, files, _parse_columns(columns))
        method = SymmetrizationChoice.FORWARD
    else:
        options = AlignerOptions(prior.value, iterations, symmetrize.value, not keep_case, prefix)
        tables = [[name] for name in extra or []]
        alignment = align_files(files, tables, _parse_columns(columns), options, _log)
        method = symmetrize
    if out is not None:
        alignment.save(out)
    if gold_links is None:
        if out is None:
            for line in alignment.lines:
                print(line)
        return
    scores = {}
    for name in SYMMETRIZATIONS if model is None else ("forward",):
        links = [join(pair.forward, pair.reverse, name) for pair in alignment.pairs]
        scores[name] = score_alignment(links, gold_links)
    if json:
        print_json({"pairs": len(alignment), **{name: score._asdict() for name, score in scores.items()}})
        return
    score = scores[method.value]
    metrics = f"AER {score.aer:.2f}  precision {score.precision:.2f}  recall {score.recall:.2f}"
    print(f"{metrics}  ({score.links:,} links)")


def _log(text: str) -> None:
    if sys.stderr.isatty() or not text.startswith(("source to target", "target to source")):
        print(text, file=sys.stderr)


def _parse_columns(text: str) -> list[Column]:
    """Return the columns of "1,2" or "en,fr".

    >>> _parse_columns("en, 2")
    ['en', 2]
    """
    from heedful.data.lines import parse_column

    names = [name.strip() for name in text.split(",")] if text else []
    if names and (len(names) != 2 or not all(names)):
        raise DataError(f'--columns "{text}": expected the columns of source and target, such as en,fr or 2,3')
    return [parse_column(name) or name for name in names]
