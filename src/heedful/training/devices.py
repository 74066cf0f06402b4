"""What Fabric is asked for: processes, devices, the wrapped loss; and the optimizer."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Generic

import torch
from lightning_fabric import Fabric
from lightning_fabric.strategies.ddp import DDPStrategy
from lightning_fabric.strategies.strategy import Strategy
from torch import nn

from heedful.config import TrainingConfig
from heedful.errors import TrainingError
from heedful.training.types import Batch, Loss, Model, Trainable

PATIENCE = timedelta(hours=6)  # while the first process validates, the others wait


def by_halves(config: TrainingConfig) -> bool:
    """Mixed precision on the CPU is not Fabric's: see `halves.py`."""
    return config.device == "cpu" and config.precision == "bf16-mixed"


def launch(config: TrainingConfig, task: Trainable[Model, Batch], model: Model) -> Fabric:
    """One process, or as many as `torchrun` started."""
    world, local = (int(os.environ.get(name, "1")) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"))
    strategy: str | Strategy = "auto"
    if world > 1:
        strategy = DDPStrategy(timeout=PATIENCE, find_unused_parameters=_some_unused(task, model))
    try:
        fabric = Fabric(
            accelerator=config.device,
            devices=local,
            num_nodes=world // local,
            strategy=strategy,
            precision="32-true" if by_halves(config) else config.precision,
        )
    except (RuntimeError, ValueError) as error:  # Fabric's own refusals are among these
        first = str(error).splitlines()[0]
        raise TrainingError(
            f'training.device = "{config.device}" with precision = "{config.precision}" cannot be used'
            f" here: {first}"
        ) from None
    fabric.launch()
    return fabric


def _some_unused(task: Trainable[Model, Batch], model: Model) -> bool:
    """Have some weights no part in the loss? DDP wants to know beforehand."""
    for batch in task.batches(1):
        model.train()
        torch.autograd.backward(task.loss(model, batch).total)
        break
    unused = any(weight.grad is None for weight in model.parameters() if weight.requires_grad)
    model.zero_grad()
    return unused


class Objective(nn.Module, Generic[Model, Batch]):
    """The loss as a module: wrappers for devices, precision and processes know nothing but `forward`."""

    def __init__(self, task: Trainable[Model, Batch], model: Model) -> None:
        super().__init__()
        self.model = model
        self.task = task

    def forward(self, batch: Batch) -> Loss:
        return self.task.loss(self.model, batch)


def make_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    weights, rate, decay = model.parameters(), config.rate, config.weight_decay
    match config.optimizer:
        case "adam":
            return torch.optim.Adam(weights, lr=rate, betas=config.betas, weight_decay=decay, fused=True)
        case "adamw":
            return torch.optim.AdamW(weights, lr=rate, betas=config.betas, weight_decay=decay, fused=True)
        case "sgd":
            return torch.optim.SGD(weights, lr=rate, momentum=config.momentum, weight_decay=decay)
        case "adadelta":  # rho and eps of Zeiler 2012 and Bahdanau 2015
            return torch.optim.Adadelta(weights, lr=rate, rho=0.95, eps=1e-6, weight_decay=decay)
        case "adagrad":  # the sum begins as in He 2018's code
            return torch.optim.Adagrad(
                weights, lr=rate, initial_accumulator_value=1e-8, weight_decay=decay, fused=True
            )


def summed(fabric: Fabric, *numbers: float) -> list[float]:
    """Each number, summed over the processes."""
    if fabric.world_size == 1:
        return list(numbers)
    local = torch.tensor(numbers, dtype=torch.float64, device=fabric.device)
    return [float(number) for number in fabric.all_reduce(local, reduce_op="sum")]
