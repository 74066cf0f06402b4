"""The parts of a batch job on a Ray cluster: an actor per worker opens the model once, Ray Data hands out the parts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heedful.batch.job import Job, run_part
from heedful.batch.local import OnDone
from heedful.batch.parts import Part
from heedful.integrations.extras import require

LOCAL = "local"  # address that starts Ray on this machine


class PartActor:
    """Computes parts one after another; its model stays open. Ray replaces an actor that dies, and repeats its part."""

    def __init__(self, job: Job, digest: str) -> None:
        import torch

        torch.set_num_threads(1)  # of an actor's process: one compute thread each
        self.job, self.digest = job, digest

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        start, stop = int(row["start"]), int(row["stop"])
        part = Part(Path(row["path"]), str(row["name"]), start, None if stop < 0 else stop)
        return {"record": json.dumps(run_part(self.job, part, self.digest))}


class RayEngine:
    """An engine of `run_batch`; input, output and model folders must be visible to all hosts under the same paths."""

    def __init__(self, address: str = LOCAL) -> None:
        self.address = address

    def __call__(self, job: Job, parts: Sequence[Part], digest: str, workers: int, on_done: OnDone) -> None:
        ray = require("ray", "ray", "--ray")
        data = require("ray.data", "ray", "--ray")
        own = not ray.is_initialized()
        if own:
            where = {"num_cpus": workers} if self.address == LOCAL else {"address": self.address}
            ray.init(**where, log_to_driver=False, include_dashboard=False, logging_level="warning")
        data.DataContext.get_current().enable_progress_bars = False
        rows = [
            {"path": str(part.path.absolute()), "name": part.name, "start": part.start,
             "stop": -1 if part.stop is None else part.stop}
            for part in parts
        ]  # fmt: skip
        try:
            dataset = data.from_items(rows, override_num_blocks=len(rows)).map(
                PartActor,
                fn_constructor_args=(job, digest),
                compute=data.ActorPoolStrategy(size=min(workers, len(rows))),
                num_cpus=1,
                max_restarts=-1,
                max_task_retries=-1,
            )
            for row in dataset.iter_rows():
                on_done(json.loads(row["record"]))
        finally:
            if own:
                ray.shutdown()
