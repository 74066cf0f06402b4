"""`metrics.jsonl`: one line a validation; and TensorBoard where asked."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.errors import TrainingError
from heedful.training.types import Report

NAME = "metrics.jsonl"


class Log:
    """Appends; `rewind` takes back what a run that goes on from `step` will write again."""

    def __init__(self, out: Path, tensorboard: bool = False) -> None:
        self.path = out / NAME
        self.board_folder = out / "tensorboard" if tensorboard else None
        self.board: Any = None

    def rewind(self, step: int) -> list[Report]:
        """Drop every line past `step`, and a torn one; the reports that stay."""
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.is_file() else []
        reports = [report for line in lines if (report := _parsed(line)) and report.step <= step]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".tmp")
        with draft.open("w", encoding="utf-8") as file:
            file.writelines(_line(report) for report in reports)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path)
        if self.board_folder is not None:
            self.board = _board(self.board_folder, step)
        return reports

    def write(self, report: Report) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_line(report))
        self.curves(report.step, {f"valid/{name}": value for name, value in report.figures.items()})

    def curves(self, step: int, values: Mapping[str, float]) -> None:
        """Points for TensorBoard; nothing without it."""
        if self.board is not None:
            for name, value in values.items():
                self.board.add_scalar(name, value, step)

    def close(self) -> None:
        if self.board is not None:
            self.board.close()


def _line(report: Report) -> str:
    return json.dumps(report.plain(), ensure_ascii=False) + "\n"


def _parsed(line: str) -> Report | None:
    try:
        return Report.from_plain(json.loads(line))
    except (ValueError, TypeError, KeyError):
        return None


def _board(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise TrainingError(
            "training.tensorboard = true needs TensorBoard: pip install 'heedful[tensorboard]'"
        ) from None
    return SummaryWriter(str(folder), purge_step=step + 1)
