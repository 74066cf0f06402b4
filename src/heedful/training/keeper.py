"""All weights but the ones being trained, and the way from a run to its saved state and back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightning_fabric import Fabric
from torch import nn
from torch.optim import Optimizer

from heedful.config import TrainingConfig
from heedful.training.average import MovingAverage, Weights, mean_of, snapshot
from heedful.training.checkpoint import Progress, Shelf, check_same
from heedful.training.types import Say


class Keeper:
    """Averages weights, keeps the best, saves and restores; only the first process touches the folder."""

    def __init__(
        self,
        fabric: Fabric,
        model: nn.Module,
        optimizer: Optimizer,
        config: TrainingConfig,
        out: Path,
        say: Say,
    ) -> None:
        self.fabric, self.model, self.optimizer, self.config = fabric, model, optimizer, config
        self.out, self.say = out, say
        self.shelf = Shelf(out, say)
        self.keeps_best = config.keep_best or config.patience > 0
        self.ema: MovingAverage | None = None
        self.shots: dict[int, Weights] = {}

    def resume(self) -> Progress:
        """Put everything back as the last whole state has it; at the beginning, as it is."""
        found: tuple[Progress, dict[str, Any], dict[int, Weights]] | None = None
        if self.fabric.is_global_zero and (state := self.shelf.newest()) is not None:
            changed = check_same(self.out, state[1], self.model, self.config)
            self.say(f"going on from step {state[0].step:,} (epoch {state[0].epoch})")
            if changed:
                self.say(f"with changed settings: {', '.join(changed)}")
            found = (*state, {step: self.shelf.get("raw", step) for step in state[0].snapshots})
        found = self.fabric.broadcast(found)
        progress, state_dicts, self.shots = found or (Progress(), {}, {})
        if state_dicts:
            if self.keeps_best and not state_dicts["best"]:  # switched on only now: the old best is gone
                progress.best, progress.waited = None, 0
            self.model.load_state_dict(state_dicts["model"])
            _restore_optimizer(self.optimizer, state_dicts["optimizer"])
            self.fabric.strategy.precision.load_state_dict(state_dicts["precision"])
        if self.config.ema:
            self.ema = MovingAverage(self.model, self.config.ema)
            for name, tensor in state_dicts.get("ema", {}).items():
                self.ema.weights[name].copy_(tensor)
        return progress

    def save(self, progress: Progress) -> None:
        if not self.fabric.is_global_zero:
            return
        rest = {
            "training": self.config.model_dump(mode="json"),
            "model": dict(self.model.state_dict()),
            "optimizer": self.optimizer.state_dict(),
            "precision": self.fabric.strategy.precision.state_dict(),
            "ema": self.ema.weights if self.ema else {},
        }
        self.shelf.save(progress, self.keeps_best, rest)

    def sound(self) -> bool:
        """Are all weights numbers?"""
        return all(bool(weight.isfinite().all()) for weight in self.model.parameters())

    def fall_back(self, step: int) -> int | None:
        """Remove the state of this step, whose weights are no good; the step of the one before it."""
        left = self.shelf.drop(step) if self.fabric.is_global_zero else None
        return self.fabric.broadcast(left)

    def after_step(self, progress: Progress) -> None:
        if self.ema is not None:
            self.ema.update(self.model, progress.step)

    def to_validate(self, progress: Progress) -> Weights | None:
        """The weights to be judged, if not the model's own; with `average`, a new snapshot is taken in."""
        if self.config.average:
            shot = {name: tensor.cpu() for name, tensor in snapshot(self.model).items()}
            if self.fabric.is_global_zero:
                self.shelf.put("raw", progress.step, shot)
            self.shots[progress.step] = shot
            self.shots = dict(sorted(self.shots.items())[-self.config.average :])
            progress.snapshots = list(self.shots)
        return self._averaged()

    def keep_as_best(self, progress: Progress, weights: Weights | None) -> None:
        if self.keeps_best and self.fabric.is_global_zero:
            self.shelf.put("best", progress.step, weights or self.model.state_dict())

    def final(self, progress: Progress) -> Mapping[str, Any]:
        """Give the model the weights to end with; the report that belongs to them."""
        assert progress.best is not None or progress.last is not None, "a run ends with a validation"
        if self.keeps_best and progress.best is not None:
            best: Weights = {}
            if self.fabric.is_global_zero:
                best = self.shelf.get("best", progress.best["step"])
            self.model.load_state_dict(self.fabric.broadcast(best))
            return progress.best
        weights = self._averaged()
        if weights is not None:
            self.model.load_state_dict(weights)
        return progress.last or {}

    def _averaged(self) -> Weights | None:
        if self.ema is not None:
            return self.ema.weights
        return mean_of(list(self.shots.values())) if self.shots else None


def _restore_optimizer(optimizer: Optimizer, state: dict[str, Any]) -> None:
    """Its memory comes from the state, its settings from the recipe: those may have changed."""
    settings = [
        {key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups
    ]
    optimizer.load_state_dict(state)
    for group, own in zip(optimizer.param_groups, settings, strict=True):
        group.update(own)
