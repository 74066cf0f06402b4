"""The command line: parse, call one function, print. Importing it does not import torch."""

from __future__ import annotations

import gc
import os
import sys


def main() -> None:
    """The entry point: a user's own mistake gets its message and exit code 2, never a traceback."""
    # Waiting threads sleep instead of spinning: on a machine that does anything else beside, spinning
    # makes training several times slower (LOG.md). It must be said before torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    gc.set_threshold(200_000, 20, 20)  # imports make so much that looking for garbage takes a fifth of them
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
    except OSError as error:  # a disk that is full, a folder that may not be written
        where = f"{error.filename}: " if error.filename else ""
        print(f"error: {where}{error.strerror or error}", file=sys.stderr)
        sys.exit(2)
    except (MemoryError, RuntimeError) as error:  # torch has no class of its own for it on the CPU
        words = ("can't allocate memory", "out of memory")
        if not isinstance(error, MemoryError) and not any(text in str(error) for text in words):
            raise
        print(
            "error: there is not enough memory for this; a smaller model, training.batch_tokens or"
            " decoding.batch needs less",
            file=sys.stderr,
        )
        sys.exit(2)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)
