"""What the terminal shows while training: a bar with the time left, and a line after each epoch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from heedful.tasks.train import Listener
from heedful.training import Report


@contextmanager
def training() -> Iterator[Listener]:
    """Talk goes to stderr; results belong to stdout."""
    console = Console(stderr=True, highlight=False)
    progress = Progress(
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.3f}"),
        TimeRemainingColumn(),
        console=console,
    )
    with progress:
        job = progress.add_task("training", total=None, loss=float("nan"), visible=False)

        def begin(total: int) -> None:
            progress.update(job, total=total, visible=True)

        def tick(step: int, loss: float) -> None:
            progress.update(job, completed=step, loss=loss)

        def after(report: Report) -> None:
            figures = " ".join(f"{name} {value:.4f}" for name, value in report.figures.items())
            console.print(
                f"epoch {report.epoch:>2}  step {report.step:>5}  {report.seconds:>5.0f} s"
                f"  train: loss {report.train_loss:.4f}  valid: {figures}"
            )

        yield Listener(console.print, begin, tick, after)
