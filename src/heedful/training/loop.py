"""The training loop."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic

import torch
from lightning_fabric import Fabric
from torch import nn

from heedful.config import TrainingConfig
from heedful.errors import TrainingError
from heedful.training.types import Loss, Model, Report, Trainable

Tick = Callable[[int, float], None]  # steps done, loss per token


def _silent(*_: object) -> None:
    """For callers that want no news."""


class _Objective(nn.Module, Generic[Model]):
    """The loss as a module: wrappers for devices, precision and processes know nothing but `forward`."""

    def __init__(self, task: Trainable[Model], model: Model) -> None:
        super().__init__()
        self.model = model
        self.task = task

    def forward(self, batch: TextBatch) -> Loss:
        return self.task.loss(self.model, batch)


def train(
    task: Trainable[Model],
    model: Model,
    config: TrainingConfig,
    out: Path,
    *,
    tick: Tick = _silent,
    after: Callable[[Report], None] = _silent,
) -> list[Report]:
    """Train `model` in place and write `metrics.jsonl` into `out`; a loss that is no number stops it."""
    fabric = Fabric(accelerator="cpu", devices=1)
    fabric.launch()
    optimizer = torch.optim.Adam(model.parameters(), lr=config.rate)
    total = task.steps_per_epoch() * config.epochs
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate_at(step, config.warmup, total))
    wrapped, optimizer = fabric.setup(_Objective(task, model), optimizer)
    reports: list[Report] = []
    step, began = 0, time.perf_counter()
    for epoch in range(1, config.epochs + 1):
        model.train()
        seen, summed = 0, 0.0
        for batch in task.batches(epoch):
            loss: Loss = wrapped(batch.to(fabric.device))
            mean = loss.total / loss.tokens
            if not math.isfinite(value := float(mean.detach())):
                raise TrainingError(
                    f"the loss became {value} at step {step + 1}; a lower training.rate may help"
                )
            optimizer.zero_grad()
            fabric.backward(mean)
            fabric.clip_gradients(wrapped, optimizer, max_norm=config.clip)
            optimizer.step()
            schedule.step()
            step += 1
            seen, summed = seen + loss.tokens, summed + value * loss.tokens
            tick(step, value)
        model.eval()
        figures = task.validate(model)
        report = Report(epoch, step, time.perf_counter() - began, summed / seen, figures)
        with (out / "metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps({**report._asdict(), "figures": dict(figures)}) + "\n")
        reports.append(report)
        after(report)
    return reports


def rate_at(step: int, warmup: int, total: int) -> float:
    """The share of the full rate at a step: a straight rise, then half a cosine down.

    >>> [round(rate_at(step, warmup=2, total=6), 2) for step in range(7)]
    [0.5, 1.0, 1.0, 0.85, 0.5, 0.15, 0.0]
    """
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warmup) / max(1, total - warmup))))
