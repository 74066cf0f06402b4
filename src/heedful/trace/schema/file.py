"""Reading files within limits: a gzip file of a few megabytes can hold gigabytes."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

from heedful.errors import HeedfulError, TraceError

MAX_MB, LIMIT_VARIABLE = 128, "HEEDFUL_MAX_TRACE_MB"  # megabytes of a trace, decompressed
VALUES_PER_MB = 16_384  # a trace keeps its numbers in tensors, so it has few JSON values for its size
_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20  # bytes; `read(max_bytes)` would allocate all of them at once


def read_trace_bytes(path: Path) -> bytearray:
    """Return the JSON of a trace file, decompressed; its size and number of values are checked without parsing it."""
    megabytes = _limit()
    raw = read_within(path, megabytes * 1_000_000, TraceError, f"; {LIMIT_VARIABLE} sets another limit (megabytes)")
    values, allowed = sum(raw.count(sign) for sign in (b",", b"[", b"{")), megabytes * VALUES_PER_MB
    if values > allowed:
        raise TraceError(
            f"{path}: {values:,} JSON values, more than the {allowed:,} of a trace of {megabytes} MB;"
            f" {LIMIT_VARIABLE} sets another limit (megabytes)"
        )
    return raw


def read_within(path: Path, max_bytes: int, error: type[HeedfulError], advice: str = "") -> bytearray:
    """Return the bytes of a file, decompressed if it is gzipped; raise `error` if there are more than `max_bytes`."""
    try:
        with path.open("rb") as file:
            is_gzip = file.peek(2)[:2] == _GZIP
            stream = gzip.GzipFile(fileobj=file) if is_gzip else file
            raw = bytearray()
            while len(raw) <= max_bytes and (chunk := stream.read(_CHUNK)):
                raw += chunk
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise error(f"{path}: the gzip file is incomplete or damaged") from None
    except (OSError, ValueError) as reason:  # ValueError: a path with a null character
        raise error(f"{path}: cannot be read: {getattr(reason, 'strerror', None) or reason}") from None
    if len(raw) > max_bytes:
        more = " decompressed" if is_gzip else ""
        raise error(f"{path}: more than {max_bytes // 1_000_000:,} MB{more}{advice}")
    return raw


def _limit() -> int:
    text = os.environ.get(LIMIT_VARIABLE, str(MAX_MB))
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 1_000_000):
        raise TraceError(f'{LIMIT_VARIABLE} = "{text}": expected a whole number of megabytes, such as {MAX_MB}')
    return int(text)
