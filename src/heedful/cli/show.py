"""`heedful show`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.errors import TraceError, nearest

if TYPE_CHECKING:
    from heedful.trace.schema import LinkMethod, Trace
    from heedful.viz.base import View, ViewOptions

EXPORTS = (".csv", ".npz", ".links")
PAGE = ".html"


def show(
    file: Annotated[Path, typer.Argument(metavar="TRACE", help="Trace file (JSON).", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FILE",
            help="Write an interactive page (.html), a figure (.png, .svg, .pdf) or an export (.csv, .npz, .links).",
            show_default=False,
        ),
    ] = None,
    *,
    view: Annotated[
        str | None,
        typer.Option(
            metavar="VIEW",
            help="alignment, lines, heads, steps, beam, photo, words, arcs or history (default: depends on the trace).",
            show_default=False,
        ),
    ] = None,
    site: Annotated[
        str | None,
        typer.Option(metavar="SITE", help="Attention site, such as dec.0.cross (default: the alignment site)."),
    ] = None,
    head: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Attention head (default: the mean of all heads).")
    ] = None,
    subwords: Annotated[bool, typer.Option("--subwords", help="Show subwords instead of words.")] = False,
    special_tokens: Annotated[
        bool | None,
        typer.Option(
            "--special-tokens/--no-special-tokens",
            help="Show start and end tokens (default: not in figures).",
            show_default=False,
        ),
    ] = None,
    link_method: Annotated[
        str,
        typer.Option(
            metavar="METHOD",
            help="How .links extracts word links from weights: naive, shift or shared (docs/faithfulness.md).",
        ),
    ] = "naive",
) -> None:
    """Show a trace. Prints it, or writes an interactive page, a figure or an export."""
    from heedful.trace.schema import LINK_METHODS, Trace
    from heedful.viz.base import Output, ViewOptions
    from heedful.viz.views import default_view, get_view

    if view is not None:
        get_view(view)
    if link_method not in LINK_METHODS:
        raise TraceError(f'--link-method "{link_method}": no such method; {nearest(link_method, LINK_METHODS)}')
    trace = Trace.load(file)
    options = ViewOptions(site, head, not subwords, special_tokens)
    if out is not None and out.suffix.lower() in EXPORTS:
        _export(trace, out, options, link_method)
        return
    output: Output = "terminal" if out is None else "page" if out.suffix.lower() == PAGE else "figure"
    view = view or default_view(trace, site, output)
    if out is None:
        _print_view(trace, get_view(view, output), options)
    elif output == "page":
        _write_page(trace, get_view(view, output), options, out)
    else:
        from heedful.viz.figure import draw

        draw(trace, out, view, options)


def _print_view(trace: Trace, view: View, options: ViewOptions) -> None:
    from heedful.cli.console import make_console
    from heedful.viz.base import TextStyle

    assert view.text is not None
    console = make_console()
    style = TextStyle(console.width, "utf" in console.encoding.lower())
    console.print(view.text(trace, options, style), end="", soft_wrap=True)


def _write_page(trace: Trace, view: View, options: ViewOptions, out: Path) -> None:
    from heedful.viz.page import write_html

    assert view.page is not None
    write_html(view.page(trace, options), out)


def _export(trace: Trace, out: Path, options: ViewOptions, link_method: LinkMethod) -> None:
    from heedful.atomic_write import atomic_write
    from heedful.trace.schema import format_links, to_csv, to_npz, trace_links

    with atomic_write(out, TraceError) as draft:
        if out.suffix.lower() == ".npz":
            to_npz(trace, draft)
        elif out.suffix.lower() == ".csv":
            draft.write_text(to_csv(trace, options.site, words=options.words), encoding="utf-8")
        else:
            links = trace_links(trace, link_method, options.site, options.head)
            draft.write_text(format_links(links) + "\n", encoding="utf-8")
