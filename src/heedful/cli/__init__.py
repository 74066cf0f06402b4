"""The command line: parse, call one function, print. Importing it does not import torch."""

from __future__ import annotations

import sys


def main() -> None:
    """The entry point: a user's own mistake gets its message and exit code 2, never a traceback."""
    from heedful.cli.app import app
    from heedful.errors import HeedfulError

    for stream in (sys.stdout, sys.stderr):  # UTF-8 whatever the locale says
        stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    try:
        app()
    except HeedfulError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # the reader (head, less) has seen enough
        sys.stderr.close()
        sys.exit(141)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)
