"""The command line: each command parses its options, calls one function and prints. Importing it imports no torch."""

from __future__ import annotations

import atexit
import errno
import gc
import os
import signal
import sys
import time
import warnings
from contextlib import suppress
from types import FrameType

MAX_MESSAGE = 10_000  # letters; an error may quote a line of any length
FORCE_AFTER = 2.0  # seconds after the first Ctrl-C from which another one ends the process at once


def main() -> None:
    """Run the program; an error that the user can correct is one message, without a traceback.

    Exit status: 0 done, 1 some inputs failed, 2 an error that the user can correct, 130 interrupted, 141 the program
    that reads the output has ended.
    """
    # OpenMP threads that wait must sleep, not spin: on a busy machine, spinning makes training several times slower
    # (docs/lab-notebook.md). The variable has to be set before torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for them reads every installed package
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # the program, not a caller with its own handler
        with suppress(ValueError):  # not the main thread
            signal.signal(signal.SIGINT, _InterruptOnce())
            atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # Python's end has nothing to interrupt
    gc.set_threshold(200_000, 20, 20)  # imports allocate so much that garbage collection takes a fifth of their time
    from heedful.cli.console import safe_streams

    for stream in (sys.stdout, sys.stderr):  # UTF-8 in every locale
        stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    warnings.filterwarnings("ignore", module=r"PIL\.")  # about damaged metadata of images that can still be shown
    with safe_streams():
        try:
            _run()
        except KeyboardInterrupt:  # while what the first one ended was reported
            _exit(130, "stopped")


def _run() -> None:
    from heedful.errors import DecodingTimeoutError, HeedfulError, TrainingStopped

    try:
        from heedful.cli.app import build_app

        build_app(sys.argv[1:])()
    except TrainingStopped as error:
        _exit(130, str(error))
    except DecodingTimeoutError as error:
        _exit(1, f"error: {error}")
    except HeedfulError as error:
        _exit(2, f"error: {error}")
    except BrokenPipeError:  # the program that reads our output (head, less) has ended
        sys.stderr.close()
        sys.exit(141)
    except OSError as error:  # a full disk, a folder without write permission
        path = error.filename or ("the output" if error.errno == errno.ENOSPC else "")
        _exit(2, f"error: {f'{path}: ' if path else ''}{error.strerror or error}")
    except (MemoryError, RuntimeError) as error:  # torch raises RuntimeError when the CPU's memory is exhausted
        messages = ("can't allocate memory", "out of memory")
        if not isinstance(error, MemoryError) and not any(text in str(error) for text in messages):
            raise
        _exit(
            2,
            "error: not enough memory; use a smaller model, or lower training.batch_tokens or decoding.batch_size",
        )
    except KeyboardInterrupt:
        _exit(130, "stopped")


class _InterruptOnce:
    """SIGINT handler: the first Ctrl-C raises KeyboardInterrupt, more of them must not interrupt the cleaning up."""

    def __init__(self) -> None:
        self.first: float | None = None

    def __call__(self, _signum: int, _frame: FrameType | None) -> None:
        if self.first is None:
            self.first = time.monotonic()
            raise KeyboardInterrupt
        if time.monotonic() - self.first > FORCE_AFTER:
            os._exit(130)


def _exit(status: int, message: str) -> None:
    if len(message) > MAX_MESSAGE:
        message = f"{message[: MAX_MESSAGE // 2]} … {message[-MAX_MESSAGE // 2 :]}"
    print(message, file=sys.stderr)
    sys.exit(status)
