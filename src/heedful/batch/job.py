"""A batch job: what is computed with which model, where its files are, and which parts of it are done.

Every part has a file of rows and, written after it, a record in `parts/`; a part with a record that fits the job and
its input is never computed again. `manifest.json` sums up all records.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from heedful.atomic_write import atomic_write
from heedful.batch.answers import Answer, answer_each, make_answer, plain_text
from heedful.batch.parts import Part, iter_rows
from heedful.config import decoding_options
from heedful.data.asset_files import asset_file, read_json
from heedful.data.lines import BadLine
from heedful.errors import DataError
from heedful.section import Column
from heedful.tasks.model_card import CARD, WEIGHTS, hash_file

MANIFEST, RECORDS = "manifest.json", "parts"
CHUNK = 1_000  # rows in memory at once; those of similar length share a batch
IMAGE_CHUNK = 64
MAX_ERRORS = 20  # listed per part
MAX_RECORD_BYTES = 1_000_000
FORMAT = 1
COUNTS = ("rows", "failed", "bytes")  # of a record
LINE_ENDS = str.maketrans({"\n": " ", "\r": " ", "\u2028": " ", "\u2029": " "})  # at which a program may end a line


@dataclass(frozen=True)
class Job:
    """What to compute; it can be sent to other processes and hosts."""

    verb: str
    model: Path
    out: Path
    options: Mapping[str, Any]  # of decoding, as given
    int8: bool = False
    plain: bool = False  # one line per row instead of one JSON object
    column: Column | None = None

    def signature(self) -> dict[str, Any]:
        """Return what decides the output: a part that was written with another signature is not taken for done."""
        shown = {key: value for key, value in asdict(self).items() if key not in ("model", "out")}
        hashes = {name: hash_file(asset_file(self.model, name)) for name in (CARD, WEIGHTS)}
        return {**shown, "options": dict(self.options), "model": self.model.name, "sha256": hashes}

    def output(self, part: Part) -> Path:
        return self.out / f"{part.name}{'.txt' if self.plain else '.jsonl'}"

    def record(self, part: Part) -> Path:
        return self.out / RECORDS / f"{part.name}.json"


def finished(job: Job, parts: Sequence[Part], signature: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the records of the parts that are done; raise DataError if the folder holds the output of another job."""
    digest, records = digest_of(signature), {}
    for part in parts:
        path = job.record(part)
        try:
            record = read_json(path, MAX_RECORD_BYTES)
        except (OSError, ValueError):
            continue  # none, or half of one: the part is computed again
        if not isinstance(record, dict):
            continue
        if record.get("signature") != digest:
            raise DataError(
                f"{job.out}: {path.name} was written with another model, verb or options, or by another version of"
                " the model; give another --out, or remove that folder"
            )
        output = job.output(part)
        same_input = record.get("input") == [*part.fingerprint(), part.start, part.stop]
        counted = all(type(record.get(key)) is int for key in COUNTS)
        if same_input and counted and output.is_file() and output.stat().st_size == record["bytes"]:
            records[part.name] = record
    return records


def run_part(job: Job, part: Part, digest: str) -> dict[str, Any]:
    """Compute a part, write its rows and then its record, each as a whole; return the record."""
    started = time.perf_counter()
    answer = _open_model(job.verb, job.model, json.dumps(dict(job.options), sort_keys=True), job.int8)
    fingerprint = [*part.fingerprint(), part.start, part.stop]
    rows, errors, output = 0, list[str](), job.output(part)
    with atomic_write(output, DataError, parents=True) as path, path.open("w", encoding="utf-8", newline="\n") as file:
        for record in _records(job, part, answer):
            rows += 1
            if "error" in record:
                errors.append(f"row {part.start + rows}: {record['error']}")
            line = plain_text(record) if job.plain else _to_json({"row": part.start + rows, **record})
            file.write(f"{line.translate(LINE_ENDS)}\n")
    done = {
        "part": part.name,
        "file": output.name,
        "of": str(part.path),
        "input": fingerprint,
        "rows": rows,
        "failed": len(errors),
        "errors": errors[:MAX_ERRORS],
        "bytes": output.stat().st_size,
        "sha256": hash_file(output),
        "seconds": round(time.perf_counter() - started, 3),
        "signature": digest,
    }
    _write_json(job.record(part), done)
    return done


def write_manifest(job: Job, signature: Mapping[str, Any], records: Sequence[Mapping[str, Any]], version: str) -> None:
    """Write `manifest.json`: the job, and the record of every part."""
    totals = {key: sum(record[key] for record in records) for key in COUNTS}
    parts = [{key: value for key, value in record.items() if key != "signature"} for record in records]
    content = {"format": FORMAT, "heedful": version, "job": dict(signature), **totals, "parts": parts}
    _write_json(job.out / MANIFEST, content)


def _records(job: Job, part: Part, answer: Answer) -> Iterator[dict[str, Any]]:
    stream = iter_rows(part, job.verb, job.column)
    while chunk := list(islice(stream, IMAGE_CHUNK if job.verb == "caption" else CHUNK)):
        texts = [row for row in chunk if not isinstance(row, BadLine)]
        answers = iter(answer_each(answer, texts) if texts else [])
        for row in chunk:
            yield {"error": row.reason} if isinstance(row, BadLine) else next(answers)


@lru_cache(maxsize=1)
def _open_model(verb: str, folder: Path, options: str, int8: bool) -> Answer:
    """Open a model once per process."""
    return make_answer(verb, folder, decoding_options(json.loads(options)), int8)


def digest_of(signature: Mapping[str, Any]) -> str:
    """Return the hash of a signature."""
    return hashlib.sha256(_to_json(signature).encode()).hexdigest()


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=False)


def _write_json(path: Path, content: Any) -> None:
    with atomic_write(path, DataError, parents=True) as draft:
        draft.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
