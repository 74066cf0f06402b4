"""`heedful read` on the terminal: how surprising each word is, and which earlier words it read."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from heedful.cli.write import chunks
from heedful.data.readers import read_lines as lines_of
from heedful.errors import DataError, TraceError, nearest

if TYPE_CHECKING:
    from heedful.tasks.read import ReaderModel
    from heedful.tasks.read_words import Line

VIEWS = ("arcs", "matrix")
SHOWN = 3  # earlier words named beside each


class Asked(NamedTuple):
    text: Sequence[str]
    out: Path | None
    view: str
    as_json: bool


def run(asked: Asked, model: Path | None) -> None:
    if asked.view not in VIEWS:
        raise TraceError(f'--view "{asked.view}": no such view; {nearest(asked.view, VIEWS)}')
    if asked.as_json and asked.out is not None:
        raise DataError("--json prints, -o draws: ask for one of them")
    stream = list(_given(asked.text)) if asked.text else None
    from heedful.tasks.bundled import find
    from heedful.tasks.folder import open_for
    from heedful.tasks.licence import say_once
    from heedful.tasks.read_words import read_lines

    (folder,) = find([] if model is None else [model], "read")
    opened: ReaderModel = open_for(folder, "read")
    say_once(opened)
    if asked.out is not None:
        lines = stream if stream is not None else [line for some in chunks([]) for line in some]
        _draw(opened, asked, lines, asked.out)
        return
    first = 1
    for some in [stream] if stream is not None else chunks([]):
        for line in read_lines(opened, some, first):
            print(json.dumps(line.plain(), ensure_ascii=False) if asked.as_json else _shown(line))
        sys.stdout.flush()
        first += len(some)


def _given(text: Sequence[str]) -> Iterator[str]:
    """Files by their lines, anything else as a line itself."""
    for part in text:
        path = Path(part)
        try:
            there = path.is_file()
        except (OSError, ValueError):  # too long for a name, or no name at all
            there = False
        if there:
            yield from lines_of(path)
        elif path.suffix in (".txt", ".gz") and not any(c.isspace() for c in part):
            raise DataError(f"{part}: there is no such file")
        else:
            yield _text(part)
    if len(text) == 1 and not text[0].strip():
        raise DataError("there is nothing to read in an empty sentence")


def _text(part: str) -> str:
    try:
        part.encode("utf-8")
    except UnicodeEncodeError as error:  # what a shell gave us, bytes that are no text
        raise DataError(f"the sentence is not UTF-8 (character {error.start + 1})") from None
    return part


def _shown(line: Line) -> str:
    """A table of the words; a blank line stays one."""
    if not line.words:
        return ""
    names = line.names
    rows = [("word", "bits", "read most")]
    for word in line.words:
        read = "  ".join(f"{name} {weight:.0%}" for name, weight in word.most(names, SHOWN))
        rows.append((word.text + (" (unknown)" if word.unknown else ""), f"{word.bits:.2f}", read))
    wide = [max(len(row[i]) for row in rows) for i in range(2)]
    body = [f"{word:<{wide[0]}}  {bits:>{wide[1]}}  {read}".rstrip() for word, bits, read in rows]
    total = f"{line.bits:.1f} bits in {line.tokens} tokens: perplexity {line.perplexity:.1f}"
    return "\n".join([*body, total, ""])


def _draw(opened: ReaderModel, asked: Asked, lines: Sequence[str], out: Path) -> None:
    """One sentence as a picture, a page or a trace."""
    if len(lines) != 1:
        raise DataError(f"-o draws one sentence; {len(lines):,} were given")
    from heedful.tasks.read_trace import traced_text
    from heedful.tasks.tracing import Wanted

    made = traced_text(opened, Wanted(lines[0]))
    if out.suffix == ".json":
        made.save(out)
    elif out.suffix == ".html":
        from heedful.view.page import link, write_page

        write_page(made, out, link("alignment"))
    else:
        from heedful.view.figure import draw

        draw(made, out, "arcs" if asked.view == "arcs" else "alignment")
    print(f"where it read: {out}", file=sys.stderr)
