"""A task small enough to train hundreds of times: predict the next letter, in batches of different sizes.

Run as a program (`python -m training.toy OUT JSON`), it trains in a process that a test can kill.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from heedful.config import TrainingConfig
from heedful.training import Callbacks, Loss, Sample, TrainingResult, Validation
from heedful.training import loop as loop_module

N_LETTERS = 11


class ToyBatch(NamedTuple):
    letters: Tensor
    targets: Tensor

    def to(self, device: torch.device) -> ToyBatch:
        return ToyBatch(self.letters.to(device), self.targets.to(device))


class ToyModel(nn.Module):
    def __init__(self, width: int = 7, n_unused: int = 0) -> None:
        super().__init__()
        self.unused = nn.ParameterList(torch.ones(3) for _ in range(n_unused))  # get no gradient
        self.embedding = nn.Embedding(N_LETTERS, width)
        self.dropout = nn.Dropout(0.2)
        self.output = nn.Linear(width, N_LETTERS)

    def forward(self, letters: Tensor) -> Tensor:
        return torch.as_tensor(self.output(torch.tanh(self.dropout(self.embedding(letters)))))


class ToyTask:
    """`n_batches` batches per epoch of 3 to 9 letters each, in an order derived from the epoch."""

    def __init__(self, n_batches: int = 7, metrics: Callable[[int], dict[str, float]] | None = None) -> None:
        self.n_batches = n_batches
        self.metrics = metrics  # fake metrics by the number of the validation
        self.validations = 0

    def _batch(self, number: int) -> ToyBatch:
        rng = random.Random(number)
        letters = torch.tensor([rng.randrange(N_LETTERS) for _ in range(3 + number % 7)])
        return ToyBatch(letters, (letters * 3 + 1) % N_LETTERS)

    def batches(self, epoch: int, start: int = 0, rank: int = 0, world_size: int = 1) -> Iterator[ToyBatch]:
        order = list(range(self.n_batches))
        random.Random(f"order {epoch}").shuffle(order)
        for number in order[start:][rank::world_size]:
            yield self._batch(number)

    def steps_per_epoch(self, world_size: int = 1) -> int:
        return -(-self.n_batches // world_size)

    def loss(self, model: ToyModel, batch: ToyBatch) -> Loss:
        total = nn.functional.cross_entropy(model(batch.letters), batch.targets, reduction="sum")
        return Loss(total, len(batch.letters))

    @torch.inference_mode()
    def validate(self, model: ToyModel) -> Validation:
        assert not model.training
        torch.rand(1 + self.validations)  # numbers drawn in a validation must not change the training
        self.validations += 1
        if self.metrics is not None:
            return Validation(self.metrics(self.validations))
        letters = torch.arange(N_LETTERS)
        logits = model(letters)
        loss = nn.functional.cross_entropy(logits, (letters * 3 + 1) % N_LETTERS)
        exact = (logits.argmax(-1) == (letters * 3 + 1) % N_LETTERS).double().mean()
        sample = Sample("0", "1", str(int(logits[0].argmax())))
        return Validation({"loss": float(loss), "exact": 100 * float(exact)}, [sample])


def settings(**training: Any) -> TrainingConfig:
    base = {"epochs": 3, "learning_rate": 0.03, "warmup_steps": 2, "threads": 1, "checkpoint_every": 3}
    return TrainingConfig.model_validate({**base, **training})


def build_model(width: int = 7, n_unused: int = 0) -> ToyModel:
    torch.manual_seed(5)
    return ToyModel(width, n_unused)


def flat_weights(model: nn.Module) -> Tensor:
    return torch.cat([weight.detach().flatten() for weight in model.parameters()])


def run(
    out: Path, task: ToyTask | None = None, model: ToyModel | None = None, /, **training: Any
) -> tuple[Tensor, TrainingResult]:
    """Train or resume; return the final weights and the result."""
    model = model or build_model()
    result = loop_module.train(task or ToyTask(), model, settings(**training), out)
    return flat_weights(model), result


class _LossyTask(ToyTask):
    """A task whose process is killed at a batch, on one rank and in torchrun's first attempt only."""

    def __init__(self, options: dict[str, Any], out: Path) -> None:
        super().__init__(options.get("n_batches", 7))
        first_attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT") == "0"
        self.is_lost = first_attempt and os.environ.get("RANK") == str(options["lost_rank"])
        self.left, self.marker = options["lost_at_batch"], out / "lost"

    def loss(self, model: ToyModel, batch: ToyBatch) -> Loss:
        self.left -= 1
        if self.is_lost and self.left == 0:
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().loss(model, batch)


def _main() -> None:
    out, options = Path(sys.argv[1]), json.loads(sys.argv[2])
    losses: list[float] = []

    def on_step(step: int, loss: float) -> None:
        losses.append(loss)
        if step == options.get("die_at_step"):
            os.kill(os.getpid(), signal.SIGKILL)

    real_fsync, calls = os.fsync, [0]

    def fsync(file: int) -> None:
        """Fail like a power cut in the middle of a file."""
        calls[0] += 1
        if calls[0] == options.get("die_at_sync"):
            os.ftruncate(file, 1000)
            os.kill(os.getpid(), signal.SIGKILL)
        real_fsync(file)

    os.fsync = fsync  # type: ignore[assignment]  # the package passes numbers only
    model = build_model(n_unused=options.get("n_unused", 0))
    task = _LossyTask(options, out) if "lost_rank" in options else ToyTask(options.get("n_batches", 7))
    loop_module.train(task, model, settings(**options["training"]), out, Callbacks(on_step=on_step))
    rank = os.environ.get("RANK", "0")
    (out / f"losses-{rank}.json").write_text(json.dumps(losses))
    torch.save(flat_weights(model), out / f"weights-{rank}.pt")


if __name__ == "__main__":
    _main()
