"""`metrics.jsonl`, one line per validation, and TensorBoard curves if the recipe enables them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.atomic_write import atomic_write
from heedful.errors import TrainingError
from heedful.training.types import Report

METRICS_FILE = "metrics.jsonl"


class MetricsLog:
    """Appends a line per validation to `metrics.jsonl`; call `truncate_after` first."""

    def __init__(self, out: Path, tensorboard: bool = False) -> None:
        self.path = out / METRICS_FILE
        self.tensorboard_dir = out / "tensorboard" if tensorboard else None
        self.tensorboard: Any = None

    def truncate_after(self, step: int) -> list[Report]:
        """Remove lines after `step`, which a resumed run writes again, and incomplete ones; return the others."""
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.is_file() else []
        reports = [report for line in lines if (report := _parse_line(line)) and report.step <= step]
        with atomic_write(self.path, TrainingError, parents=True) as draft:
            draft.write_text("".join(map(_format_line, reports)), encoding="utf-8")
        if self.tensorboard_dir is not None:
            self.tensorboard = _open_tensorboard(self.tensorboard_dir, step)
        return reports

    def write(self, report: Report) -> None:
        """Append one validation."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_format_line(report))
        self.add_scalars(report.step, {f"valid/{name}": value for name, value in report.metrics.items()})

    def add_scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Add points to the TensorBoard curves, if there are any."""
        if self.tensorboard is not None:
            for name, value in values.items():
                self.tensorboard.add_scalar(name, value, step)

    def close(self) -> None:
        """Close the TensorBoard writer."""
        if self.tensorboard is not None:
            self.tensorboard.close()


def _format_line(report: Report) -> str:
    return json.dumps(report.to_dict(), ensure_ascii=False) + "\n"


def _parse_line(line: str) -> Report | None:
    try:
        return Report.from_dict(json.loads(line))
    except (ValueError, TypeError, KeyError):
        return None


def _open_tensorboard(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise TrainingError(
            "training.tensorboard = true needs TensorBoard: pip install 'heedful[tensorboard]'"
        ) from None
    return SummaryWriter(str(folder), purge_step=step + 1)
