"""The training loop."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Generic

import torch
from lightning_fabric import Fabric

from heedful.config import TrainingConfig
from heedful.errors import TrainingError, nearest
from heedful.training import schedule
from heedful.training.average import Weights, holding
from heedful.training.devices import Objective, by_halves, launch, make_optimizer, summed
from heedful.training.halves import Halves, has_halves
from heedful.training.keeper import Keeper
from heedful.training.log import Log
from heedful.training.seeds import seed_for
from heedful.training.shards import Shards, shards_for
from heedful.training.stop import Stop
from heedful.training.types import (
    After,
    Batch,
    Begin,
    Ears,
    Loss,
    Model,
    Outcome,
    Report,
    Say,
    Tick,
    Trainable,
    TrainingStopped,
    Validation,
    duration,
    silent,
)
from heedful.training.watch import LossWatch

LONG = 200  # steps, from which on it is said how long they will take
TIMED = 6  # batches


def train(
    task: Trainable[Model, Batch],
    model: Model,
    config: TrainingConfig,
    out: Path,
    *,
    begin: Begin = silent,
    tick: Tick = silent,
    after: After = silent,
    say: Say = silent,
) -> Outcome:
    """Train `model` in place, from the state in `out/resume` if there is one.

    Writes `metrics.jsonl` and `resume/` into `out`. Ctrl-C ends it with TrainingStopped and the state
    written; the same call again goes on, and on a CPU with as many threads ends with the same bits.
    """
    threads = torch.get_num_threads()
    if config.threads:
        torch.set_num_threads(config.threads)
    try:
        fabric = launch(config, task, model)
        ears = Ears(begin, tick, after, say) if fabric.is_global_zero else Ears()
        world = fabric.world_size
        halves = _halves(config, model, ears)
        with Stop(impatient=world == 1) as stop, shards_for(task, model, config, world, halves) as shards:
            return _Run(fabric, task, model, config, out, ears, stop, _Means(shards, halves)).go()
    finally:
        torch.set_num_threads(threads)


def _halves(config: TrainingConfig, model: Model, ears: Ears) -> Halves | None:
    if not by_halves(config):
        return None
    if not has_halves():
        ears.say("this CPU has no products of bfloat16: all is computed in float32")
        return None
    return Halves(model.parameters())


@dataclass(frozen=True)
class _Means(Generic[Model, Batch]):
    """What makes gradients quicker, where it can be had."""

    shards: Shards[Model, Batch] | None
    halves: Halves | None


class _Run(Generic[Model, Batch]):
    """One training: `go` is the loop, the rest are its steps."""

    def __init__(
        self,
        fabric: Fabric,
        task: Trainable[Model, Batch],
        model: Model,
        config: TrainingConfig,
        out: Path,
        ears: Ears,
        stop: Stop,
        means: _Means[Model, Batch],
    ) -> None:
        self.fabric, self.task, self.model, self.config = fabric, task, model, config
        self.ears, self.stop, self.world = ears, stop, fabric.world_size
        self.shards, self.halves = means.shards, means.halves
        self.inner = make_optimizer(model, config)
        self.objective, self.optimizer = fabric.setup(Objective(task, model), self.inner)
        self.keeper = Keeper(fabric, model, self.inner, config, out, ears.say)
        self.progress = self.keeper.resume()
        self.log = Log(out, config.tensorboard)
        self.reports = self.log.rewind(self.progress.validated) if fabric.is_global_zero else []
        self.loss_watch = LossWatch(self.progress.loss_watch)
        self.total = schedule.steps_planned(task.steps_per_epoch(self.world), config)
        self.stream: Iterator[Batch] | None = None
        self.stopping = False
        self.began = time.perf_counter() - self.progress.seconds

    def go(self) -> Outcome:
        progress = self.progress
        self.model.train()
        self._foretell()
        self.ears.begin(self.total, progress.step)
        while True:
            reason = self._reason()
            if self._validation_due(reason):
                self._validate()
                self._rest_point()
            elif reason:
                break
            else:
                batches, taken = self._take()
                if taken:
                    self._step(batches, taken)
                    self._rest_point()
                elif progress.position == 0:
                    raise TrainingError("the training data gives no batch")
                else:
                    progress.epoch, progress.position, self.stream = progress.epoch + 1, 0, None
        return self._finish(reason)

    def _foretell(self) -> None:
        """Say how long it will take, by the time that a few batches take; nothing comes of them."""
        left = self.total - self.progress.step
        if self.world > 1 or left < LONG:
            return
        kept = {name: buffer.clone() for name, buffer in self.model.named_buffers()}
        batches = list(islice(self.task.batches(self.progress.epoch), 1 + TIMED))
        if len(batches) > 1:
            self._backward(batches[:1], 0)  # warms up
            began = time.perf_counter()
            for batch in batches[1:]:
                self._backward([batch], 0)
            each = (time.perf_counter() - began) / (len(batches) - 1) * self.config.accumulate
            time_left = each * left
            bound = self.config.max_minutes * 60 - self.progress.seconds
            if self.config.max_minutes and bound < time_left:
                time_left = bound
            self.ears.say(
                f"{left:,} steps of about {each:.2g} s: {duration(time_left)} of training, and validations"
            )
        self.optimizer.zero_grad()
        for name, buffer in self.model.named_buffers():
            buffer.copy_(kept[name])

    def _reason(self) -> str:
        """Which bound has been reached; "" while none has."""
        config, progress = self.config, self.progress
        bounds = {
            "patience": 0 < config.patience <= progress.waited,
            "max_steps": 0 < config.max_steps <= progress.step,
            "max_minutes": 0 < 60 * config.max_minutes <= progress.seconds,
            "epochs": progress.epoch > config.epochs,
        }
        return next((name for name, reached in bounds.items() if reached), "")

    def _take(self) -> tuple[list[Batch], int]:
        """This process's batches of the next step, and how many all processes have."""
        progress = self.progress
        if self.stream is None:
            rank = self.fabric.global_rank
            self.stream = iter(self.task.batches(progress.epoch, progress.position, rank, self.world))
        batches = list(islice(self.stream, self.config.accumulate))
        (taken,) = summed(self.fabric, len(batches))
        return batches, int(taken)

    def _step(self, batches: list[Batch], taken: int) -> None:
        """One update: the gradient of the summed loss of all batches over the count of all their tokens."""
        config, progress = self.config, self.progress
        part = schedule.share(config, progress.step, self.total, progress.decays, progress.seconds)
        rate = config.rate * part
        progress.rate = rate
        for group in self.inner.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad()
        total, tokens = 0.0, 0
        rounds = math.ceil(taken / self.world)
        for number in range(rounds):
            with self.fabric.no_backward_sync(self.objective, enabled=number < rounds - 1):
                loss = self._backward(batches, number)
            total, tokens = total + float(loss.total.detach()), tokens + loss.tokens
        clock = time.perf_counter() - self.began
        total, tokens_all, stop, clock = summed(self.fabric, total, tokens, self.stop.asked, clock)
        value = total / max(1.0, tokens_all)
        norm = self._clip(config.batch_tokens * self.world / max(1.0, tokens_all))
        if not (math.isfinite(value) and (math.isfinite(norm) or config.precision == "16-mixed")):
            name = "gradient" if math.isfinite(value) else "loss"
            raise self._lost(f"the {name} became {norm if name == 'gradient' else value}", progress.step + 1)
        self.optimizer.step()
        if self.halves is not None:
            self.halves.forget()
        progress.step += 1
        progress.position += taken
        progress.tokens += int(tokens_all)
        progress.seen, progress.summed = progress.seen + int(tokens_all), progress.summed + total
        progress.seconds = clock / self.world
        self.stopping = bool(stop)  # `asked` may turn while the processes confer: then, after the next step
        self.keeper.after_step(progress)
        if (sentence := self.loss_watch.see(value)) is not None:
            progress.warnings.append(sentence)
            self.ears.say(f"warning: {sentence}")
        progress.loss_watch = self.loss_watch.state()
        self.log.curves(progress.step, {"train/loss": value, "train/rate": rate, "train/norm": norm})
        self.ears.tick(progress.step, value)

    def _backward(self, batches: list[Batch], number: int) -> Loss:
        """One batch's part of the gradient; a process that has run out takes part with weight 0."""
        progress, real = self.progress, number < len(batches)
        batch = batches[number] if real else next(iter(self.task.batches(progress.epoch)))
        which = progress.position + number * self.world + self.fabric.global_rank
        named = (self.config.seed, "epoch", progress.epoch, "batch", which)
        # a plain sum would overflow half precision; `_clip` puts the true count in
        scale = float(real) / self.config.batch_tokens
        if self.shards is not None and len(parts := self.shards.divide(batch)) > 1:
            return self.shards.backward(parts, scale, *named)
        seed_for(*named)
        with self.halves or nullcontext():
            loss: Loss = self.objective(batch.to(self.fabric.device))
            self.fabric.backward(loss.total * scale)
        return loss if real else Loss(torch.zeros(()), 0)

    def _clip(self, scale: float) -> float:
        for weight in self.model.parameters():
            if weight.grad is not None:
                weight.grad.mul_(scale)
        norm = self.fabric.clip_gradients(
            self.objective,
            self.optimizer,
            max_norm=self.config.clip or math.inf,
            error_if_nonfinite=False,
        )
        assert norm is not None
        return float(norm)

    def _rest_point(self) -> None:
        """After each step and validation: the place to save, and to stop if asked."""
        progress = self.progress
        stopping = self.stopping or (self.world == 1 and self.stop.asked)
        due = progress.step % self.config.checkpoint_every == 0 and progress.validated != progress.step
        if stopping or due:
            self._check_weights()
            self.keeper.save(progress)
        if stopping:
            self.fabric.barrier()  # whoever leaves first would have the others ended
            raise TrainingStopped(
                f"stopped at step {progress.step}; nothing is lost: the same command goes on from there"
            )

    def _check_weights(self) -> None:
        """Before they are kept: the loss of the next step would tell, but then it is too late."""
        if not self.keeper.sound():
            raise self._lost("some weights became inf or nan", self.progress.step)

    def _lost(self, what: str, step: int) -> TrainingError:
        """The error for numbers that are none. A state of the weights that led here would lead here again."""
        left = self.keeper.fall_back(self.progress.step)
        then = "begins again: there is no good state yet"
        if left is not None:
            then = f"goes on from step {left} (where that fails too, begin again with another --out)"
        return TrainingError(
            f"{what} at step {step}; a lower training.rate may help: with it, the same command {then}"
        )

    def _validation_due(self, reason: str) -> bool:
        progress, every = self.progress, self.config.validate_every
        if progress.step == progress.validated:
            return False
        if every:
            return bool(reason) or progress.step - progress.validated >= every
        return bool(reason) or progress.epoch - 1 > progress.validated_epochs

    def _validate(self) -> None:
        """Measure (the averaged weights, if there are any), compare with the best, write it all down."""
        config, progress = self.config, self.progress
        self._check_weights()
        weights = self.keeper.to_validate(progress)
        result = self._measured(weights)
        for name in {"loss", config.metric} & result.figures.keys():
            if not math.isfinite(value := result.figures[name]):
                raise self._lost(f"the {name} on the validation data became {value}", progress.step)
        if config.metric not in result.figures:
            self.keeper.save(progress)
            known = nearest(config.metric, result.figures)
            raise TrainingError(f'training.metric = "{config.metric}": this task has no such figure; {known}')
        best = progress.best["figures"].get(config.metric) if progress.best else None
        improved = schedule.better(config.metric, result.figures[config.metric], best)
        if improved:
            self.keeper.keep_as_best(progress, weights)
        for warning in result.warnings:
            self.ears.say(f"warning: {warning}")
        report = Report(
            epoch=progress.epoch if progress.position else progress.epoch - 1,
            step=progress.step,
            seconds=progress.seconds,
            train_loss=progress.summed / max(1, progress.seen),
            figures=dict(result.figures),
            rate=progress.rate,
            improved=improved,
            samples=tuple(result.samples),
            warnings=(*progress.warnings, *result.warnings),
        )
        self._record(report)
        self.ears.after(report)

    def _measured(self, weights: Weights | None) -> Validation:
        """The first process measures, the others hear of it."""
        result: Validation | None = None
        if self.fabric.is_global_zero:
            seed_for(self.config.seed, "validation", self.progress.step)
            self.model.eval()
            with holding(self.model, weights), self.fabric.autocast():
                result = self.task.validate(self.model)
            self.model.train()
        clock = time.perf_counter() - self.began  # the first process's: all must agree when time is up
        result, self.progress.seconds = self.fabric.broadcast((result, clock))
        assert result is not None
        return result

    def _record(self, report: Report) -> None:
        """What a validation changes: counters, the log, and a state with all of it."""
        config, progress = self.config, self.progress
        self.reports.append(report)
        progress.warnings = []
        progress.last = report.plain()
        progress.seen, progress.summed = 0, 0.0
        progress.validated, progress.validated_epochs = progress.step, progress.epoch - 1
        if report.improved:
            progress.best, progress.waited, progress.flat = report.plain(), 0, 0
        else:
            progress.waited, progress.flat = progress.waited + 1, progress.flat + 1
        if progress.flat >= config.decay_after:
            progress.decays, progress.flat = progress.decays + 1, 0
        if self.fabric.is_global_zero:
            self.log.write(report)
        self.keeper.save(progress)

    def _finish(self, reason: str) -> Outcome:
        best = Report.from_plain(self.keeper.final(self.progress))
        self.model.eval()
        self.model.to("cpu")
        self.log.close()
        return Outcome(tuple(self.reports), best, reason)
