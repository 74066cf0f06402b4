"""`heedful show` on the terminal, as a picture, or as another format."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, cast

from heedful.errors import TraceError, nearest
from heedful.record import READINGS, Reading, Trace, pharaoh, to_csv, to_npz, trace_links

VIEWS = ("alignment", "lines", "heads", "steps", "beam", "photo", "words", "arcs", "history")
EXPORTS = (".csv", ".npz", ".links")
PAGE = ".html"


class Chosen(NamedTuple):
    """Which picture, and of what."""

    view: str | None  # None: what is usual for the trace
    site: str | None
    head: int | None
    words: bool
    specials: bool
    reading: str = "naive"


def run(file: Path, out: Path | None, chosen: Chosen) -> None:
    if chosen.view is not None and chosen.view not in VIEWS:
        raise TraceError(f'--view "{chosen.view}": no such view; {nearest(chosen.view, VIEWS)}')
    if chosen.reading not in READINGS:
        raise TraceError(f'--reading "{chosen.reading}": no such one; {nearest(chosen.reading, READINGS)}')
    trace = Trace.load(file)
    if chosen.view is None:
        chosen = chosen._replace(view=usual(trace, chosen.site, out))
    if out is None:
        _print(trace, chosen)
    elif out.suffix.lower() in EXPORTS:
        _export(trace, out, chosen)
    elif out.suffix.lower() == PAGE:
        _page(trace, out, chosen)
    else:
        from heedful.view.figure import draw

        draw(
            trace,
            out,
            chosen.view or "alignment",
            site=chosen.site,
            head=chosen.head,
            words=chosen.words,
            specials=chosen.specials,
        )


def usual(trace: Trace, site: str | None, out: Path | None) -> str:
    """Shaded words where one look makes a label of a text, else the matrix; in a file, photographs, arcs."""
    looked = next((looks for looks in trace.sites if looks.site == (site or trace.alignment)), None)
    if looked is not None and looked.kind == "history":
        return "history"
    if looked is not None and looked.kind == "pool" and looked.asks == "target":
        return "words"
    if out is not None and trace.source.image is not None:
        return "photo"
    reading = looked is not None and site is None and looked.asks == looked.reads
    return "arcs" if reading and out is not None and out.suffix.lower() != PAGE else "alignment"


def _print(trace: Trace, chosen: Chosen) -> None:
    from rich.console import Console

    from heedful.view import alignment_text
    from heedful.view.shaded import shaded, shaded_text

    if chosen.view not in ("alignment", "words", "history"):
        raise TraceError(f"{chosen.view} is drawn to a file: add -o {chosen.view}.png")
    console = Console(highlight=False)
    blocks = "utf" in console.encoding.lower()
    if chosen.view == "words":
        seen = shaded(trace, chosen.site, chosen.head, words=chosen.words)
        console.print(shaded_text(seen, console.width, blocks), end="", soft_wrap=True)
        return
    if chosen.view == "history":
        from heedful.view.history import bars_of, history_text

        found = bars_of(trace, chosen.site, chosen.head)
        console.print(history_text(found, console.width, blocks), end="", soft_wrap=True)
        return
    text = alignment_text(
        trace,
        console.width,
        blocks,
        site=chosen.site,
        head=chosen.head,
        words=chosen.words,
        specials=chosen.specials,
    )
    console.print(text, end="", soft_wrap=True)


def _page(trace: Trace, out: Path, chosen: Chosen) -> None:
    """The page has all there is to see: the options say what it shows first."""
    from heedful.view.page import link, write_page

    if chosen.view == "words":
        from heedful.view.shaded import write_shaded

        write_shaded(trace, out, chosen.site, words=chosen.words)
        return
    if chosen.view not in ("alignment", "lines", "photo", "history"):
        raise TraceError(
            f"--view {chosen.view}: the page has no such view; draw it with -o {chosen.view}.png"
        )
    if chosen.site is not None or chosen.head is not None:
        trace.matrix(chosen.site, chosen.head)  # are they there?
    lines = chosen.view == "lines"
    start = link(
        "alignment" if lines else chosen.view if chosen.view in ("photo", "history") else "walk",
        site=chosen.site,
        head=chosen.head,
        words=chosen.words,
        specials=chosen.specials,
        figure="lines" if lines else None,
    )
    write_page(trace, out, start)


def _export(trace: Trace, out: Path, chosen: Chosen) -> None:
    try:
        if out.suffix.lower() == ".npz":
            to_npz(trace, out)
        elif out.suffix.lower() == ".csv":
            out.write_text(to_csv(trace, chosen.site, words=chosen.words), encoding="utf-8")
        else:
            out.write_text(
                pharaoh(trace_links(trace, cast(Reading, chosen.reading), chosen.site, chosen.head)) + "\n",
                encoding="utf-8",
            )
    except OSError as error:
        raise TraceError(f"{out}: cannot be written: {error.strerror}") from None
