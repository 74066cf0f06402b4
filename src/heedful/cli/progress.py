"""Progress bars on stderr with the remaining time; for training also metrics and sample outputs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from heedful.cli.console import make_console
from heedful.parallel import no_progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

    from heedful.training.types import Callbacks, Report

TINY = 1e-6  # metrics below it are shown as 0, such as BLEU without a match
MIN_LINES = 100  # fewer lines get no bar


@contextmanager
def training_progress() -> Iterator[Callbacks]:
    """Yield callbacks that show a training run on the terminal."""
    from rich.progress import TextColumn  # slow to import, and not needed for a few lines

    from heedful.training.types import Callbacks

    console = make_console(stderr=True, soft_wrap=True)
    loss_column = TextColumn("{task.fields[loss]}")
    with _make_bar(console, TextColumn("{task.description}"), loss_column) as progress:
        bar = progress.add_task("training", total=None, loss="", visible=False)

        def on_start(total: int, done: int) -> None:
            progress.update(bar, total=total, completed=done, visible=True)

        def on_step(step: int, loss: float) -> None:
            total = max(progress.tasks[bar].total or 0, step)  # an epoch may have more steps than the first
            progress.update(bar, total=total, completed=step, loss=f"loss {loss:.3f}")

        shown: list[tuple[str, str]] = []

        def on_validation(report: Report) -> None:
            console.print(_summary(report))
            for sample in report.samples[:1]:
                if (sample.source, sample.reference) not in shown:  # the same after every epoch: once is enough
                    shown[:] = [(sample.source, sample.reference)]
                    console.print(f"    source     {sample.source}", style="dim")
                    console.print(f"    reference  {sample.reference}", style="dim")
                console.print(f"    output     {sample.output}", style="dim")

        @contextmanager
        def on_busy(description: str, total: int) -> Iterator[Callable[[int], None]]:
            other = progress.add_task(description, total=total, loss="")
            yield lambda count: progress.advance(other, count)
            progress.remove_task(other)

        yield Callbacks(on_start, on_step, on_validation, console.print, on_busy)
        # the number of steps is estimated from the first epoch
        progress.update(bar, total=progress.tasks[bar].completed)


@contextmanager
def lines_progress(total: int | None) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances a bar; there is none for few lines, or if the terminal shows the output."""
    if (total is not None and total < MIN_LINES) or not sys.stderr.isatty() or sys.stdout.isatty():
        yield no_progress
        return
    from rich.progress import TextColumn

    with _make_bar(make_console(stderr=True), TextColumn("lines"), transient=True) as progress:
        bar = progress.add_task("lines", total=total)
        yield lambda count: progress.advance(bar, count)


def _make_bar(console: Console, name: ProgressColumn, *columns: ProgressColumn, transient: bool = False) -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    return Progress(
        name,
        BarColumn(),
        MofNCompleteColumn(),
        *columns,
        TimeRemainingColumn(),
        console=console,
        transient=transient,
        redirect_stdout=False,  # results go to stdout as they are
    )


def _summary(report: Report) -> str:
    metrics = " ".join(f"{name} {0 if abs(value) < TINY else value:.4g}" for name, value in report.metrics.items())
    best = " *" if report.improved else ""
    return (
        f"epoch {report.epoch:>2}  step {report.step:>5}  {report.seconds:>5.0f} s"
        f"  train: loss {report.train_loss:.4f}  valid: {metrics}{best}"
    )
