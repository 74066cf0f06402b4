"""Saves and restores the state of a training run, its best weights and its averaged weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightning_fabric import Fabric
from torch import nn
from torch.optim import Optimizer

from heedful.config import TrainingConfig
from heedful.training.averaging import MovingAverage, Weights, average_weights, copy_weights
from heedful.training.checkpoint_store import CheckpointStore, Progress, check_compatible
from heedful.training.types import LogLine


class CheckpointManager:
    """Checkpoints, best weights and averaged weights of a run; only rank 0 reads and writes files."""

    def __init__(
        self,
        fabric: Fabric,
        model: nn.Module,
        optimizer: Optimizer,
        config: TrainingConfig,
        out: Path,
        log: LogLine,
    ) -> None:
        self.fabric, self.model, self.optimizer, self.config = fabric, model, optimizer, config
        self.out, self.log = out, log
        self.store = CheckpointStore(out, log)
        self.keep_best = config.keep_best or config.patience > 0
        self.ema: MovingAverage | None = None
        self.snapshots: dict[int, Weights] = {}  # step -> weights, for `average_last`

    def resume(self) -> Progress:
        """Restore the newest intact checkpoint, if there is one; return the progress to continue from."""
        checkpoint = self.fabric.broadcast(self._load_latest() if self.fabric.is_global_zero else None)
        progress, state, self.snapshots = checkpoint or (Progress(), {}, {})
        if state:
            if self.keep_best and not state["best"]:  # `keep_best` is new, so the best weights were not saved
                progress.best, progress.validations_since_best = None, 0
            self.model.load_state_dict(state["model"])
            _restore_optimizer(self.optimizer, state["optimizer"])
            self.fabric.strategy.precision.load_state_dict(state["precision"])
        if self.config.ema:
            self.ema = MovingAverage(self.model, self.config.ema)
            for name, tensor in state.get("ema", {}).items():
                self.ema.weights[name].copy_(tensor)
        return progress

    def _load_latest(self) -> tuple[Progress, dict[str, Any], dict[int, Weights]] | None:
        """Return the progress, state and snapshots of the newest intact checkpoint; None if there is none."""
        latest = self.store.load_latest()
        if latest is None:
            return None
        progress, state = latest
        changes = check_compatible(self.out, state, self.model, self.config)
        self.log(f"resuming from step {progress.step:,} (epoch {progress.epoch})")
        if changes:
            self.log(f"with changed settings: {', '.join(changes)}")
        return progress, state, {step: self.store.load_weights("snapshot", step) for step in progress.snapshots}

    def save(self, progress: Progress) -> None:
        """Write a checkpoint."""
        if not self.fabric.is_global_zero:
            return
        state = {
            "training": self.config.model_dump(mode="json"),
            "model": dict(self.model.state_dict()),
            "optimizer": self.optimizer.state_dict(),
            "precision": self.fabric.strategy.precision.state_dict(),
            "ema": self.ema.weights if self.ema else {},
        }
        self.store.save(progress, self.keep_best, state)

    def discard(self, step: int) -> int | None:
        """Remove the checkpoint of `step`, whose weights are not finite; return the step of the one before it."""
        previous = self.store.remove(step) if self.fabric.is_global_zero else None
        return self.fabric.broadcast(previous)

    def weights_are_finite(self) -> bool:
        """Return True if no weight is inf or nan."""
        return all(bool(weight.isfinite().all()) for weight in self.model.parameters())

    def update_average(self, progress: Progress) -> None:
        """Update the moving average, if there is one, after an optimizer step."""
        if self.ema is not None:
            self.ema.update(self.model, progress.step)

    def weights_to_validate(self, progress: Progress) -> Weights | None:
        """Return the averaged weights, with a new snapshot for `average_last`; None: the model's own weights."""
        if self.config.average_last:
            snapshot = {name: tensor.cpu() for name, tensor in copy_weights(self.model).items()}
            if self.fabric.is_global_zero:
                self.store.save_weights("snapshot", progress.step, snapshot)
            self.snapshots[progress.step] = snapshot
            self.snapshots = dict(sorted(self.snapshots.items())[-self.config.average_last :])
            progress.snapshots = list(self.snapshots)
        return self._averaged_weights()

    def save_best(self, progress: Progress, weights: Weights | None) -> None:
        """Save the weights just validated as the best so far; None: the model's own weights."""
        if self.keep_best and self.fabric.is_global_zero:
            self.store.save_weights("best", progress.step, weights or self.model.state_dict())

    def load_final_weights(self, progress: Progress) -> Mapping[str, Any]:
        """Load the final weights, best or last or averaged, into the model; return their Report as a dict."""
        assert progress.best is not None or progress.last is not None, "a run ends with a validation"
        if self.keep_best and progress.best is not None:
            best: Weights = {}
            if self.fabric.is_global_zero:
                best = self.store.load_weights("best", progress.best["step"])
            self.model.load_state_dict(self.fabric.broadcast(best))
            return progress.best
        weights = self._averaged_weights()
        if weights is not None:
            self.model.load_state_dict(weights)
        return progress.last or {}

    def _averaged_weights(self) -> Weights | None:
        if self.ema is not None:
            return self.ema.weights
        return average_weights(list(self.snapshots.values())) if self.snapshots else None


def _restore_optimizer(optimizer: Optimizer, state: dict[str, Any]) -> None:
    """Load the state of the optimizer, but keep the settings of the recipe, which may have changed."""
    settings = [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups]
    optimizer.load_state_dict(state)
    for group, current in zip(optimizer.param_groups, settings, strict=True):
        group.update(current)
