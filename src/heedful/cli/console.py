"""The streams and consoles of the program: control characters in printed texts are shown, never sent."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

from heedful.terminal_text import show_controls

if TYPE_CHECKING:
    from rich.console import Console


class SafeStream:
    """A text stream that shows the control characters of what is written to it; everything else is the stream's."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(show_controls(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def safe_streams() -> Iterator[None]:
    """Show the control characters of everything that is printed, whoever prints it: commands, warnings, typer."""
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast(TextIO, SafeStream(stream)) for stream in streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


def print_json(value: Any) -> None:
    """Print a value as one line of JSON; numbers that are not finite, which JSON does not have, become null.

    U+2028 and U+2029 are escaped: Python's `splitlines`, among others, ends a line there.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(_without_infinity(value), ensure_ascii=False)
    print(text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def _without_infinity(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _without_infinity(item) for name, item in value.items()}
    return [_without_infinity(item) for item in value] if isinstance(value, list | tuple) else value


def make_console(*, stderr: bool = False, soft_wrap: bool = False) -> Console:
    """Return a console that prints texts as they are: no markup, no emoji codes, control characters shown.

    It writes to the stream below a `SafeStream`, because colors and progress bars are control sequences too.
    """
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class SafeConsole(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(show_controls(segment.text), segment.style)

    stream: Any = sys.stderr if stderr else sys.stdout
    file: IO[str] = stream.stream if isinstance(stream, SafeStream) else stream
    return SafeConsole(file=file, stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=soft_wrap)
