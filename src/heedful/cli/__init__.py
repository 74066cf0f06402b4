"""The command line: parse, call one function, print. Importing it does not import torch."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """The entry point: a user's own mistake gets its message and exit code 2, never a traceback."""
    # Waiting threads sleep instead of spinning: on a machine that does anything else beside, spinning
    # makes training several times slower (LOG.md). It must be said before torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from heedful.cli.app import app
    from heedful.errors import HeedfulError

    for stream in (sys.stdout, sys.stderr):  # UTF-8 whatever the locale says
        stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    try:
        app()
    except HeedfulError as error:
        stopped = type(error).__name__ == "TrainingStopped"  # named, not imported: that would import torch
        print(f"{'stopped' if stopped else 'error'}: {error}", file=sys.stderr)
        sys.exit(130 if stopped else 2)
    except BrokenPipeError:  # the reader (head, less) has seen enough
        sys.stderr.close()
        sys.exit(141)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)
