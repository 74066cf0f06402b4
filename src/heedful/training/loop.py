"""The training loop: steps, validations and checkpoints until a limit is reached."""

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
from heedful.errors import TrainingError, TrainingStopped, nearest
from heedful.training.averaging import Weights, use_weights
from heedful.training.bf16 import Bf16Products, has_bf16_products
from heedful.training.checkpoint_manager import CheckpointManager
from heedful.training.devices import LossModule, build_optimizer, launch, sum_over_ranks, wants_bf16_products
from heedful.training.health import LossMonitor
from heedful.training.metrics_log import MetricsLog
from heedful.training.schedule import fit_warmup, is_improvement, learning_rate_factor, planned_steps
from heedful.training.seeds import seed_everything
from heedful.training.signals import SignalHandler
from heedful.training.threaded_backward import ThreadedBackward, threaded_backward_if_possible
from heedful.training.types import (
    NO_CALLBACKS,
    Batch,
    Callbacks,
    Loss,
    Model,
    Report,
    Trainable,
    TrainingResult,
    Validation,
    format_duration,
)

MIN_STEPS_TO_ESTIMATE = 200  # the duration of shorter runs is not estimated
UNTIMED_STEPS = 1  # excluded from the estimate: the first step allocates memory
TIMED_STEPS = 6  # their mean duration is the estimate per step


def train(
    task: Trainable[Model, Batch],
    model: Model,
    config: TrainingConfig,
    out: Path,
    callbacks: Callbacks = NO_CALLBACKS,
) -> TrainingResult:
    """Train `model` in place, resuming from `out/resume` if it holds a checkpoint.

    Writes `metrics.jsonl` and `resume/` into `out`. SIGINT or SIGTERM saves a checkpoint and raises
    TrainingStopped; the same call then resumes. A resumed run with the same number of CPU threads ends with
    bit-identical weights.
    """
    threads = torch.get_num_threads()
    if config.threads:
        torch.set_num_threads(config.threads)
    try:
        fabric = launch(config, task, model)
        callbacks = callbacks if fabric.is_global_zero else NO_CALLBACKS
        world_size = fabric.world_size
        bf16 = _bf16_products(config, model, callbacks)
        with (
            SignalHandler(interrupt_on_second=world_size == 1) as signals,
            threaded_backward_if_possible(task, model, config, world_size, bf16) as threaded,
        ):
            run = _TrainingRun(fabric, task, model, config, out, callbacks, signals, _FastBackward(threaded, bf16))
            return run.run()
    finally:
        torch.set_num_threads(threads)


def _bf16_products(config: TrainingConfig, model: Model, callbacks: Callbacks) -> Bf16Products | None:
    if not wants_bf16_products(config):
        return None
    if not has_bf16_products():
        callbacks.log("this CPU has no bfloat16 instructions: training runs in float32")
        return None
    return Bf16Products(model.parameters())


@dataclass(frozen=True)
class _FastBackward(Generic[Model, Batch]):
    """Faster forward and backward passes on the CPU; None where they cannot be used."""

    threaded: ThreadedBackward[Model, Batch] | None
    bf16: Bf16Products | None


class _TrainingRun(Generic[Model, Batch]):
    """One training run: `run` is the loop, the other methods are its steps."""

    def __init__(
        self,
        fabric: Fabric,
        task: Trainable[Model, Batch],
        model: Model,
        config: TrainingConfig,
        out: Path,
        callbacks: Callbacks,
        signals: SignalHandler,
        fast_backward: _FastBackward[Model, Batch],
    ) -> None:
        self.fabric, self.task, self.model, self.config = fabric, task, model, config
        self.callbacks, self.signals, self.world_size = callbacks, signals, fabric.world_size
        self.threaded, self.bf16 = fast_backward.threaded, fast_backward.bf16
        self.torch_optimizer = build_optimizer(model, config)
        self.loss_module, self.optimizer = fabric.setup(LossModule(task, model), self.torch_optimizer)
        self.checkpoints = CheckpointManager(fabric, model, self.torch_optimizer, config, out, callbacks.log)
        self.progress = self.checkpoints.resume()
        self.metrics_log = MetricsLog(out, config.tensorboard)
        self.reports = self.metrics_log.truncate_after(self.progress.validated_step) if fabric.is_global_zero else []
        self.loss_monitor = LossMonitor(self.progress.loss_monitor)
        self.total_steps = planned_steps(task.steps_per_epoch(self.world_size), config)
        self.schedule = fit_warmup(config, self.total_steps)
        self.batch_iterator: Iterator[Batch] | None = None  # None: the epoch begins
        self.stop_requested = False  # by a signal to any process
        self.start_time = time.perf_counter() - self.progress.seconds
        self.first_step = self.progress.step
        self.step_seconds = 0.0  # of the timed steps

    def run(self) -> TrainingResult:
        """Alternate steps, validations and checkpoints until a limit is reached."""
        progress = self.progress
        self.model.train()
        self.callbacks.on_start(self.total_steps, progress.step)
        if self.schedule is not self.config:
            self.callbacks.log(
                f"training.warmup_steps = {self.config.warmup_steps:,}: shortened to {self.schedule.warmup_steps:,},"
                f" because training has only {self.total_steps:,} steps"
            )
        while True:
            reason = self._limit_reached()
            if self._validation_due(reason):
                self._validate()
                self._maybe_checkpoint()
            elif reason:
                break
            else:
                batches, n_batches = self._next_batches()
                if n_batches:
                    self._step(batches, n_batches)
                    self._maybe_checkpoint()
                elif progress.position == 0:
                    raise TrainingError("the training data contains no batches; is it empty?")
                else:
                    progress.epoch, progress.position, self.batch_iterator = progress.epoch + 1, 0, None
        return self._finish(reason)

    def _limit_reached(self) -> str:
        """Return the name of the setting that ends training now, or "" if none does."""
        config, progress = self.config, self.progress
        limits = {
            "patience": 0 < config.patience <= progress.validations_since_best,
            "max_steps": 0 < config.max_steps <= progress.step,
            "max_minutes": 0 < 60 * config.max_minutes <= progress.seconds,
            "epochs": progress.epoch > config.epochs,
        }
        return next((name for name, reached in limits.items() if reached), "")

    def _next_batches(self) -> tuple[list[Batch], int]:
        """Return this process's batches of the next step, and the number of batches of all processes."""
        progress = self.progress
        if self.batch_iterator is None:
            rank = self.fabric.global_rank
            self.batch_iterator = iter(self.task.batches(progress.epoch, progress.position, rank, self.world_size))
        batches = list(islice(self.batch_iterator, self.config.accumulate_grad_batches))
        (n_batches,) = sum_over_ranks(self.fabric, len(batches))
        return batches, int(n_batches)

    def _step(self, batches: list[Batch], n_batches: int) -> None:
        """Do one update with the gradient of the mean loss over all tokens of all batches."""
        config, progress = self.config, self.progress
        step_start = time.perf_counter()
        self._set_learning_rate()
        total, tokens = self._accumulate_gradients(batches, n_batches)
        seconds = time.perf_counter() - self.start_time
        total, n_tokens, n_stop_requests, seconds = sum_over_ranks(
            self.fabric, total, tokens, self.signals.stop_requested, seconds
        )
        loss = total / max(1.0, n_tokens)
        norm = self._clip_gradients(config.batch_tokens * self.world_size / max(1.0, n_tokens))
        if not math.isfinite(loss):
            raise self._nonfinite_error(f"the loss became {loss}", progress.step + 1)
        if not math.isfinite(norm) and config.precision != "16-mixed":  # there, the gradient scaler skips the step
            raise self._nonfinite_error(f"the gradient became {norm}", progress.step + 1)
        self.optimizer.step()
        if self.bf16 is not None:
            self.bf16.clear_cache()
        progress.step += 1
        progress.position += n_batches
        progress.tokens += int(n_tokens)
        progress.tokens_since_validation += int(n_tokens)
        progress.loss_since_validation += total
        progress.seconds = seconds / self.world_size  # the mean, so that all ranks agree
        # signals may reach the ranks during different steps, but all ranks must stop after the same one
        self.stop_requested = n_stop_requests > 0
        self.checkpoints.update_average(progress)
        self._monitor_loss(loss)
        scalars = {"train/loss": loss, "train/learning_rate": progress.learning_rate, "train/grad_norm": norm}
        self.metrics_log.add_scalars(progress.step, scalars)
        self.callbacks.on_step(progress.step, loss)
        self._estimate_duration(time.perf_counter() - step_start)

    def _set_learning_rate(self) -> None:
        progress = self.progress
        factor = learning_rate_factor(self.schedule, progress.step, self.total_steps, progress.decays, progress.seconds)
        progress.learning_rate = self.config.learning_rate * factor
        for group in self.torch_optimizer.param_groups:
            group["lr"] = progress.learning_rate

    def _accumulate_gradients(self, batches: list[Batch], n_batches: int) -> tuple[float, int]:
        """Run the backward passes of a step; return the summed loss and the tokens of this process."""
        self.optimizer.zero_grad()
        total, tokens = 0.0, 0
        n_passes = math.ceil(n_batches / self.world_size)
        for number in range(n_passes):
            with self.fabric.no_backward_sync(self.loss_module, enabled=number < n_passes - 1):
                loss = self._backward(batches, number)
            total, tokens = total + float(loss.total.detach()), tokens + loss.tokens
        return total, tokens

    def _backward(self, batches: list[Batch], number: int) -> Loss:
        """Add the gradients of one batch; a process without a batch left runs any batch with weight 0, as DDP needs."""
        progress, has_batch = self.progress, number < len(batches)
        batch = batches[number] if has_batch else next(iter(self.task.batches(progress.epoch)))
        position = progress.position + number * self.world_size + self.fabric.global_rank
        seed_key = (self.config.seed, "epoch", progress.epoch, "batch", position)
        # a plain sum would overflow in half precision; `_clip_gradients` corrects the scale by the token count
        scale = float(has_batch) / self.config.batch_tokens
        if self.threaded is not None and len(parts := self.threaded.split(batch)) > 1:
            return self.threaded.backward(parts, scale, *seed_key)
        seed_everything(*seed_key)
        with self.bf16 or nullcontext():
            loss: Loss = self.loss_module(batch.to(self.fabric.device))
            self.fabric.backward(loss.total * scale)
        return loss if has_batch else Loss(torch.zeros(()), 0)

    def _clip_gradients(self, scale: float) -> float:
        """Multiply the gradients by `scale`, clip them by norm, and return the norm before clipping."""
        for weight in self.model.parameters():
            if weight.grad is not None:
                weight.grad.mul_(scale)
        norm = self.fabric.clip_gradients(
            self.loss_module,
            self.optimizer,
            max_norm=self.config.grad_clip or math.inf,
            error_if_nonfinite=False,
        )
        assert norm is not None
        return float(norm)

    def _monitor_loss(self, loss: float) -> None:
        progress = self.progress
        if (warning := self.loss_monitor.update(loss)) is not None:
            progress.warnings.append(warning)
            self.callbacks.log(f"warning: {warning}")
        progress.loss_monitor = self.loss_monitor.state()

    def _estimate_duration(self, seconds: float) -> None:
        """Log the time left, once, from the durations of the first steps of this run."""
        n_steps = self.progress.step - self.first_step
        if UNTIMED_STEPS < n_steps <= UNTIMED_STEPS + TIMED_STEPS:
            self.step_seconds += seconds
        if n_steps != UNTIMED_STEPS + TIMED_STEPS or self.total_steps - self.first_step < MIN_STEPS_TO_ESTIMATE:
            return
        steps_left = self.total_steps - self.progress.step
        per_step = self.step_seconds / TIMED_STEPS
        seconds_left = per_step * steps_left
        estimate = f"{steps_left:,} steps left at {per_step:.2g} s per step: {format_duration(seconds_left)}"
        if self.config.max_minutes and seconds_left > self.config.max_minutes * 60 - self.progress.seconds:
            allowed = format_duration(max(0.0, self.config.max_minutes * 60 - self.progress.seconds))
            estimate += f", but training.max_minutes stops it after {allowed}"
        self.callbacks.log(f"{estimate} plus validations")

    def _maybe_checkpoint(self) -> None:
        """Save a checkpoint if one is due or a stop is requested; in the latter case raise TrainingStopped."""
        progress = self.progress
        stopping = self.stop_requested or (self.world_size == 1 and self.signals.stop_requested)
        due = progress.step % self.config.checkpoint_every == 0 and progress.validated_step != progress.step
        if stopping or due:
            self._check_weights()
            self.checkpoints.save(progress)
        if stopping:
            self.fabric.barrier()  # torchrun ends the other processes when the first one exits
            raise TrainingStopped(f"stopped at step {progress.step}; the same command resumes from there")

    def _check_weights(self) -> None:
        """Raise if weights are not finite; the next loss would show it too, but after they have been saved."""
        if not self.checkpoints.weights_are_finite():
            raise self._nonfinite_error("some weights became inf or nan", self.progress.step)

    def _nonfinite_error(self, problem: str, step: int) -> TrainingError:
        """Return the error for inf or nan, after removing the checkpoint whose weights led to it."""
        previous = self.checkpoints.discard(self.progress.step)
        if previous is None:
            next_run = "starts over, because there is no good checkpoint yet"
        else:
            next_run = f"resumes from step {previous} (if that fails too, start over with another --out)"
        return TrainingError(
            f"{problem} at step {step}; try a lower training.learning_rate: with it, the same command {next_run}"
        )

    def _validation_due(self, reason: str) -> bool:
        """Return True if a validation is due; `reason` is the limit that ends training now, or ""."""
        progress, every = self.progress, self.config.validate_every
        if progress.step == progress.validated_step:
            return False
        if every:
            return bool(reason) or progress.step - progress.validated_step >= every
        return bool(reason) or progress.epoch - 1 > progress.validated_epochs

    def _validate(self) -> None:
        """Validate the averaged weights, or the model's own; save them if they are the best so far."""
        config, progress = self.config, self.progress
        self._check_weights()
        weights = self.checkpoints.weights_to_validate(progress)
        validation = self._run_validation(weights)
        for name in {"loss", config.metric} & validation.metrics.keys():
            if not math.isfinite(value := validation.metrics[name]):
                raise self._nonfinite_error(f"the validation {name} became {value}", progress.step)
        if config.metric not in validation.metrics:
            self.checkpoints.save(progress)
            known = nearest(config.metric, validation.metrics)
            raise TrainingError(f'training.metric = "{config.metric}": this task has no such metric; {known}')
        best = progress.best["metrics"].get(config.metric) if progress.best else None
        improved = is_improvement(config.metric, validation.metrics[config.metric], best)
        if improved:
            self.checkpoints.save_best(progress, weights)
        for warning in validation.warnings:
            self.callbacks.log(f"warning: {warning}")
        report = Report(
            epoch=progress.epoch if progress.position else progress.epoch - 1,
            step=progress.step,
            seconds=progress.seconds,
            train_loss=progress.loss_since_validation / max(1, progress.tokens_since_validation),
            metrics=dict(validation.metrics),
            learning_rate=progress.learning_rate,
            improved=improved,
            samples=tuple(validation.samples),
            warnings=(*progress.warnings, *validation.warnings),
        )
        self._record(report)
        self.callbacks.on_validation(report)

    def _run_validation(self, weights: Weights | None) -> Validation:
        """Validate on rank 0 and broadcast the result."""
        validation: Validation | None = None
        if self.fabric.is_global_zero:
            seed_everything(self.config.seed, "validation", self.progress.step)
            self.model.eval()
            with use_weights(self.model, weights), self.fabric.autocast():
                validation = self.task.validate(self.model)
            self.model.train()
        seconds = time.perf_counter() - self.start_time
        # all ranks take the time of rank 0, because they must agree on when `max_minutes` is over
        validation, self.progress.seconds = self.fabric.broadcast((validation, seconds))
        assert validation is not None
        return validation

    def _record(self, report: Report) -> None:
        """Update the counters that depend on a validation, log it, and save a checkpoint."""
        progress = self.progress
        self.reports.append(report)
        progress.warnings = []
        progress.last = report.to_dict()
        progress.tokens_since_validation, progress.loss_since_validation = 0, 0.0
        progress.validated_step, progress.validated_epochs = progress.step, progress.epoch - 1
        if report.improved:
            progress.best = report.to_dict()
            progress.validations_since_best = progress.validations_since_decay = 0
        else:
            progress.validations_since_best += 1
            progress.validations_since_decay += 1
        if progress.validations_since_decay >= self.config.plateau_patience:
            progress.decays, progress.validations_since_decay = progress.decays + 1, 0
        if self.fabric.is_global_zero:
            self.metrics_log.write(report)
        self.checkpoints.save(progress)

    def _finish(self, reason: str) -> TrainingResult:
        best = Report.from_dict(self.checkpoints.load_final_weights(self.progress))
        self.model.eval()
        self.model.to("cpu")
        self.metrics_log.close()
        return TrainingResult(tuple(self.reports), best, reason)
