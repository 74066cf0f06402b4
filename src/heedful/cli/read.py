"""`heedful read`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.console import print_json
from heedful.cli.lines import InputLines, check_utf8
from heedful.cli.options import Figure, JsonLines, Model, OnTooLong, OnTooLongChoice
from heedful.errors import DataError, TraceError, nearest

if TYPE_CHECKING:
    from heedful.tasks.language_model.assets import LoadedLanguageModel
    from heedful.tasks.language_model.predict import Line

VIEWS = ("arcs", "matrix")
N_ATTENDED = 3  # attended words per word in the table


def read(
    text: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="A sentence, or files with one sentence per line (default: stdin)."),
    ] = None,
    *,
    model: Model = None,
    view: Annotated[str, typer.Option(metavar="VIEW", help="What -o draws: arcs or matrix.")] = "arcs",
    out: Figure = None,
    on_too_long: OnTooLong = OnTooLongChoice.CUT,
    json: JsonLines = False,
) -> None:
    """Score text with a language model. Prints the surprisal of each word and the earlier words it attends to."""
    if view not in VIEWS:
        raise TraceError(f'--view "{view}": no such view; {nearest(view, VIEWS)}')
    if json and out is not None:
        raise DataError("--json and -o cannot be combined: choose one")
    lines = list(_read_arguments(text)) if text else None
    stdin = InputLines([])
    from heedful.tasks.bundled import find_models
    from heedful.tasks.language_model.predict import read_lines
    from heedful.tasks.license_notice import show_license_once
    from heedful.tasks.model_folder import load_model_for

    (folder,) = find_models([] if model is None else [model], "read")
    loaded: LoadedLanguageModel = load_model_for(folder, "read")
    show_license_once(loaded)
    chunks = iter(stdin) if lines is None else iter([lines])
    if out is not None:
        _draw(loaded, [line for chunk in chunks for line in chunk], out, view)
        return
    for chunk in chunks:
        first = max(0, stdin.count - len(chunk)) + 1
        results = read_lines(loaded, chunk, first, on_too_long=on_too_long.value)
        for number, line in enumerate(results, first):
            if json:
                print_json(stdin.add_error(number, line.to_dict()))
            else:
                print(_table(line))
        sys.stdout.flush()
    stdin.exit_if_failed()


def _read_arguments(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the lines of arguments that are files, and every other argument as a line."""
    from heedful.data.lines import read_lines

    if len(arguments) == 1 and not arguments[0].strip():
        raise DataError("the sentence is empty")
    for argument in arguments:
        path = Path(argument)
        try:
            is_file = path.is_file()
        except (OSError, ValueError):  # too long for a file name, or with characters that no file name has
            is_file = False
        if is_file:
            yield from read_lines(path)
        elif path.suffix in (".txt", ".gz") and not any(c.isspace() for c in argument):
            raise DataError(f"{argument}: there is no such file")
        else:
            yield check_utf8(argument)


def _table(line: Line) -> str:
    """Return a table of the words; a blank line stays blank."""
    if not line.words:
        return ""
    rows = [("word", "bits", "attends to")]
    for word in line.words:
        attended = "  ".join(f"{name} {weight:.0%}" for name, weight in word.top(line.readable, N_ATTENDED))
        rows.append((word.text + (" (unknown)" if word.unknown else ""), f"{word.bits:.2f}", attended))
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    body = [f"{word:<{widths[0]}}  {bits:>{widths[1]}}  {attended}".rstrip() for word, bits, attended in rows]
    total = f"{line.bits:.1f} bits, {line.tokens} tokens, perplexity {line.perplexity:.1f}"
    return "\n".join([*body, total, ""])


def _draw(loaded: LoadedLanguageModel, lines: Sequence[str], out: Path, view: str) -> None:
    """Draw one sentence as a figure, a page or a trace."""
    if len(lines) != 1:
        raise DataError(f"-o takes one sentence, got {len(lines):,}")
    from heedful.tasks.base import TraceRequest
    from heedful.tasks.language_model.trace import trace_text

    trace = trace_text(loaded, TraceRequest(lines[0]))
    if out.suffix == ".json":
        trace.save(out)
    elif out.suffix == ".html":
        from heedful.viz.page import page_link, write_page

        write_page(trace, out, page_link("alignment"))
    else:
        from heedful.viz.figure import draw

        draw(trace, out, "arcs" if view == "arcs" else "alignment")
    print(f"attention written to {out}", file=sys.stderr)
