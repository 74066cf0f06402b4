"""What runs in processes of its own, in the worker: a training of the studio, and the parts of a batch job."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


def train_job(path: str) -> None:
    """Run a training of the studio; every line it prints must be a JSON object."""
    from heedful.serve.training_worker import main

    status = main(path)
    sys.stdout.seek(0)
    for line in sys.stdout.read().splitlines():
        message = json.loads(line)
        if message["event"] == "failed":
            print(message["detail"], file=sys.stderr)
    sys.exit(status)


def run_parts(job: Any, parts: Sequence[Any], digest: str, workers: int, on_done: Callable[[Any], None]) -> None:
    """Compute the parts of a batch job one after another, in this process."""
    from heedful.batch.job import run_part

    for part in parts:
        on_done(run_part(job, part, digest))


def job_file(settings: Sequence[str]) -> bytes:
    """Return the file of a training on `d.tsv`."""
    return json.dumps({"out": str(Path("out")), "data": "d.tsv", "settings": list(settings)}).encode()
