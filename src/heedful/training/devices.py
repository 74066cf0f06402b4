"""Fabric setup: processes, devices and precision; the loss as a module; the optimizer."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Generic

import torch
import torch.distributed as distributed
from lightning_fabric import Fabric
from lightning_fabric.strategies.ddp import DDPStrategy
from lightning_fabric.strategies.strategy import Strategy
from torch import nn
from torch.distributed.rendezvous import rendezvous

from heedful.config import TrainingConfig
from heedful.errors import TrainingError
from heedful.training.types import Batch, Loss, Model, Trainable

DDP_TIMEOUT = timedelta(hours=6)  # the other ranks wait while rank 0 validates


def wants_bf16_products(config: TrainingConfig) -> bool:
    """Return True if mixed precision is left to `bf16.Bf16Products`, as on the CPU, and not to Fabric."""
    return config.device == "cpu" and config.precision == "bf16-mixed"


def launch(config: TrainingConfig, task: Trainable[Model, Batch], model: Model) -> Fabric:
    """Launch Fabric with one process, or with as many as `torchrun` started."""
    world_size, local_size = (int(os.environ.get(name, "1")) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"))
    strategy: str | Strategy = "auto"
    if world_size > 1:
        unused = _has_unused_parameters(task, model)
        strategy = DDPStrategy(timeout=DDP_TIMEOUT, find_unused_parameters=unused)
        if restarts := int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")):
            _join_after_restart(restarts, config.device)
    try:
        fabric = Fabric(
            accelerator=config.device,
            devices=local_size,
            num_nodes=world_size // local_size,
            strategy=strategy,
            precision="32-true" if wants_bf16_products(config) else config.precision,
        )
    except (RuntimeError, ValueError) as error:  # Fabric raises these for devices and precisions it cannot use
        reason = str(error).splitlines()[0]
        raise TrainingError(
            f'training.device = "{config.device}" with precision = "{config.precision}" cannot be used here: {reason}'
        ) from None
    fabric.launch()
    return fabric


def _join_after_restart(restarts: int, device: str) -> None:
    """Join the other processes after torchrun has restarted all of them, before Fabric would.

    The store of torchrun still holds the addresses of the processes before the restart, to which a process would try to
    connect (torch 2.13 shares one store among all restarts); with a prefix of their own the new ones are not mixed up
    with them.
    """
    store, rank, world_size = next(iter(rendezvous("env://", timeout=DDP_TIMEOUT)))
    distributed.init_process_group(
        "gloo" if device == "cpu" else None,
        store=distributed.PrefixStore(f"restart {restarts}", store),  # type: ignore[attr-defined]
        rank=rank,
        world_size=world_size,
        timeout=DDP_TIMEOUT,
    )


def _has_unused_parameters(task: Trainable[Model, Batch], model: Model) -> bool:
    """Return True if some weights get no gradient, found by one trial backward pass; DDP has to know."""
    for batch in task.batches(1):
        model.train()
        torch.autograd.backward(task.loss(model, batch).total)
        break
    unused = any(weight.grad is None for weight in model.parameters() if weight.requires_grad)
    model.zero_grad()
    return unused


class LossModule(nn.Module, Generic[Model, Batch]):
    """The task's loss as a module, because Fabric wraps the `forward` of a module and nothing else."""

    def __init__(self, task: Trainable[Model, Batch], model: Model) -> None:
        super().__init__()
        self.model = model
        self.task = task

    def forward(self, batch: Batch) -> Loss:
        return self.task.loss(self.model, batch)


def build_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """Build the optimizer that the recipe names."""
    weights, lr, decay = model.parameters(), config.learning_rate, config.weight_decay
    match config.optimizer:
        case "adam":
            return torch.optim.Adam(weights, lr=lr, betas=config.adam_betas, weight_decay=decay, fused=True)
        case "adamw":
            return torch.optim.AdamW(weights, lr=lr, betas=config.adam_betas, weight_decay=decay, fused=True)
        case "sgd":
            return torch.optim.SGD(weights, lr=lr, momentum=config.momentum, weight_decay=decay)
        case "adadelta":  # rho and eps of Zeiler 2012 and Bahdanau 2015
            return torch.optim.Adadelta(weights, lr=lr, rho=0.95, eps=1e-6, weight_decay=decay)
        case "adagrad":  # the initial accumulator of He 2018's code
            return torch.optim.Adagrad(weights, lr=lr, initial_accumulator_value=1e-8, weight_decay=decay, fused=True)


def sum_over_ranks(fabric: Fabric, *numbers: float) -> list[float]:
    """Return each number summed over all processes."""
    if fabric.world_size == 1:
        return list(numbers)
    local = torch.tensor(numbers, dtype=torch.float64, device=fabric.device)
    return [float(number) for number in fabric.all_reduce(local, reduce_op="sum")]
