"""Exports of a trace to other formats: CSV and npz."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.errors import TraceError
from heedful.trace.schema.trace import Trace

MAX_LETTERS = 50_000_000  # of all tokens of a side, each as long as the longest


def to_csv(trace: Trace, site: str | None = None, *, words: bool = True) -> str:
    """Return the weights as CSV: one row per output word, one column per source word."""
    table = trace.table(site, words=words)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["", *table.columns])
    for label, row in zip(table.rows, table.weights, strict=True):
        writer.writerow([label, *(f"{weight:.6g}" for weight in row)])
    return out.getvalue()


def to_npz(trace: Trace, path: Path) -> None:
    """Write every tensor of the trace by name, with the tokens of both sides."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, tensor in trace.tensors.items():
        array_name = name.replace("/", ".")
        if array_name in (*arrays, "file", "source_tokens", "target_tokens"):
            raise TraceError(f'two arrays of the file would have the name "{array_name}"')
        arrays[array_name] = tensor.array()
    for name, side in (("source_tokens", trace.source), ("target_tokens", trace.target)):
        texts = [token.text for token in side.tokens]
        if len(texts) * max(map(len, texts)) > MAX_LETTERS:  # an array of strings is as wide as the longest
            raise TraceError(f"{name}: tokens of {max(map(len, texts)):,} letters are too long for an array; use .csv")
        arrays[name] = np.array(texts)
    np.savez(path, **arrays)  # type: ignore[arg-type]
