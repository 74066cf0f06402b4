"""Exports of a trace to other formats: CSV and npz."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from heedful.trace.schema.trace import Trace


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
    arrays = {name.replace("/", "."): tensor.array() for name, tensor in trace.tensors.items()}
    source = np.array([token.text for token in trace.source.tokens])
    target = np.array([token.text for token in trace.target.tokens])
    np.savez(path, source_tokens=source, target_tokens=target, **arrays)  # type: ignore[arg-type]
