"""What the terminal shows of long work: a bar with the time left; of training, figures and samples too."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from heedful.training.types import Ears, Report, silent

LONG = 100  # lines


@contextmanager
def training() -> Iterator[Ears]:
    """Talk goes to stderr; results belong to stdout."""
    from rich.console import Console  # not needed for a few lines, which want to be quick
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[loss]}"),
        TimeRemainingColumn(),
        console=console,
    )
    with progress:
        job = progress.add_task("training", total=None, loss="", visible=False)

        def begin(total: int, done: int) -> None:
            progress.update(job, total=total, completed=done, visible=True)

        def tick(step: int, loss: float) -> None:
            bound = max(progress.tasks[job].total or 0, step)  # an epoch may take a step more than the first
            progress.update(job, total=bound, completed=step, loss=f"loss {loss:.3f}")

        def after(report: Report) -> None:
            console.print(_line(report))
            for sample in report.samples[:1]:
                console.print(f"    source     {sample.source}", style="dim", markup=False)
                console.print(f"    reference  {sample.reference}", style="dim", markup=False)
                console.print(f"    output     {sample.output}", style="dim", markup=False)

        @contextmanager
        def busy(what: str, total: int) -> Iterator[Callable[[int], None]]:
            other = progress.add_task(what, total=total, loss="")
            yield lambda count: progress.advance(other, count)
            progress.remove_task(other)

        yield Ears(begin, tick, after, lambda text: console.print(text, markup=False), busy)


@contextmanager
def writing(total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar for long files on a terminal, unless the lines themselves are shown there."""
    if (total is not None and total < LONG) or not sys.stderr.isatty() or sys.stdout.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("lines"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,  # results stay where they belong
    ) as progress:
        job = progress.add_task("lines", total=total)
        yield lambda count: progress.advance(job, count)


def _line(report: Report) -> str:
    figures = " ".join(f"{name} {value:.4g}" for name, value in report.figures.items())
    best = " *" if report.improved else ""
    return (
        f"epoch {report.epoch:>2}  step {report.step:>5}  {report.seconds:>5.0f} s"
        f"  train: loss {report.train_loss:.4f}  valid: {figures}{best}"
    )
