"""`heedful batch`."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli.options import Int8, Model, parse_decoding, warn_if_int8_is_slow, with_decoding
from heedful.errors import DataError


class Verb(StrEnum):
    TRANSLATE = "translate"
    SUMMARIZE = "summarize"
    REPLY = "reply"
    TRANSDUCE = "transduce"
    CLASSIFY = "classify"
    CAPTION = "caption"
    READ = "read"
    RECOMMEND = "recommend"


@with_decoding(without=("max_seconds", "replace_unknown"))
def batch(
    verb: Annotated[Verb, typer.Argument(help="What to do with every row.")],
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="INPUT...",
            help="Files (text, CSV, TSV, JSONL, Parquet, also gzipped), folders of such files, or folders of images.",
        ),
    ],
    *,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Folder of the output files.")],
    model: Model = None,
    column: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of the text, by name or number (default: found by its name)."),
    ] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Write text, one line per row, in place of JSON lines.")
    ] = False,
    part_lines: Annotated[
        int, typer.Option(metavar="N", min=0, help="Divide files into parts of N rows; 0: one part per file.")
    ] = 0,
    workers: Annotated[
        int, typer.Option(metavar="N", min=0, help="Processes, with one thread each; 0: one per processor.")
    ] = 0,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Run on this Ray cluster (needs heedful[ray]); auto: the one this host belongs to, local: a new one.",
        ),
    ] = None,
    int8: Int8 = False,
    **decoding: Any,
) -> None:
    """Process any number of files: one output file per part, in order. The same command skips what is done."""
    options = parse_decoding(decoding)
    from heedful.batch.job import MANIFEST, Job
    from heedful.batch.parts import find_parts
    from heedful.batch.run import run_batch
    from heedful.data.lines import parse_column
    from heedful.parallel import available_cpus
    from heedful.tasks.bundled import find_models
    from heedful.tasks.model_card import read_card

    (folder,) = find_models([] if model is None else [model], verb.value)
    task = read_card(folder)["task"]
    if task != verb.value:
        raise DataError(f"{folder.name} was trained for {task}; use heedful batch {task}")
    warn_if_int8_is_slow(int8)
    chosen = None if column is None else parse_column(column) or column
    given = options.model_dump(mode="json", exclude_unset=True)
    job = Job(verb.value, folder.absolute(), out.absolute(), given, int8, plain, chosen)
    parts = find_parts(inputs, verb.value, part_lines)
    count = workers or (available_cpus() if ray in (None, "local") else len(parts))
    progress = _Progress()
    result = run_batch(job, parts, count, _engine(ray), progress.start, progress.advance)
    print(
        f"{result.rows:,} rows in {result.parts:,} part(s), {result.skipped:,} of them done before; {out / MANIFEST}",
        file=sys.stderr,
    )
    if result.failed:
        print(f"{result.failed:,} row(s) failed; they have an error in place of an answer", file=sys.stderr)
        raise typer.Exit(1)


def _engine(address: str | None) -> Any:
    if address is None:
        from heedful.batch import local

        return local.run_local
    from heedful.integrations.ray_batch import RayEngine

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
    return RayEngine(address)


class _Progress:
    """A line on stderr per part that is done."""

    def start(self, total: int, done: int) -> None:
        self.total, self.done = total, done
        if done:
            print(f"{done:,} of {total:,} parts are done", file=sys.stderr)

    def advance(self, record: dict[str, Any]) -> None:
        self.done += 1
        failed = f", {record['failed']:,} failed" if record["failed"] else ""
        rate = record["rows"] / max(record["seconds"], 1e-9)
        print(
            f"[{self.done:,}/{self.total:,}] {record['file']}: {record['rows']:,} rows{failed}, {rate:,.0f} per second",
            file=sys.stderr,
        )
