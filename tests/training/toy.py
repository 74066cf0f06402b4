"""A task small enough to be trained hundreds of times: which letter follows which, in batches of many sizes.

Run as a program (`python -m training.toy OUT JSON`) it trains in a process that a test may then kill.
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
from heedful.training import Loss, Outcome, Sample, Validation
from heedful.training import loop as loop_module

LETTERS = 11


class Pairs(NamedTuple):
    asked: Tensor
    wanted: Tensor

    def to(self, device: torch.device) -> Pairs:
        return Pairs(self.asked.to(device), self.wanted.to(device))


class Net(nn.Module):
    def __init__(self, width: int = 7, spare: int = 0) -> None:
        super().__init__()
        self.spares = nn.ParameterList(torch.ones(3) for _ in range(spare))  # with no part in the loss
        self.table = nn.Embedding(LETTERS, width)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(width, LETTERS)

    def forward(self, asked: Tensor) -> Tensor:
        return torch.as_tensor(self.out(torch.tanh(self.drop(self.table(asked)))))


class Toy:
    """`count` batches an epoch, of 3 to 9 letters, in an order that follows from the epoch."""

    def __init__(self, count: int = 7, figures: Callable[[int], dict[str, float]] | None = None) -> None:
        self.count = count
        self.figures = figures
        self.validations = 0

    def _batch(self, number: int) -> Pairs:
        rng = random.Random(number)
        asked = torch.tensor([rng.randrange(LETTERS) for _ in range(3 + number % 7)])
        return Pairs(asked, (asked * 3 + 1) % LETTERS)

    def batches(self, epoch: int, start: int = 0, rank: int = 0, world: int = 1) -> Iterator[Pairs]:
        order = list(range(self.count))
        random.Random(f"order {epoch}").shuffle(order)
        for number in order[start:][rank::world]:
            yield self._batch(number)

    def steps_per_epoch(self, world: int = 1) -> int:
        return -(-self.count // world)

    def loss(self, model: Net, batch: Pairs) -> Loss:
        total = nn.functional.cross_entropy(model(batch.asked), batch.wanted, reduction="sum")
        return Loss(total, len(batch.asked))

    @torch.inference_mode()
    def validate(self, model: Net) -> Validation:
        assert not model.training
        torch.rand(1 + self.validations)  # what a validation draws must not be felt by the training
        self.validations += 1
        if self.figures is not None:
            return Validation(self.figures(self.validations))
        asked = torch.arange(LETTERS)
        logits = model(asked)
        loss = nn.functional.cross_entropy(logits, (asked * 3 + 1) % LETTERS)
        exact = (logits.argmax(-1) == (asked * 3 + 1) % LETTERS).double().mean()
        sample = Sample("0", "1", str(int(logits[0].argmax())))
        return Validation({"loss": float(loss), "exact": float(exact)}, [sample])


def settings(**training: Any) -> TrainingConfig:
    base = {"epochs": 3, "rate": 0.03, "warmup": 2, "threads": 1, "checkpoint_every": 3}
    return TrainingConfig.model_validate({**base, **training})


def fresh(width: int = 7, spare: int = 0) -> Net:
    torch.manual_seed(5)
    return Net(width, spare)


def flat(model: nn.Module) -> Tensor:
    return torch.cat([weight.detach().flatten() for weight in model.parameters()])


def run(
    out: Path, task: Toy | None = None, model: Net | None = None, /, **training: Any
) -> tuple[Tensor, Outcome]:
    """Train afresh or go on; the weights at the end, and how it ended."""
    model = model or fresh()
    outcome = loop_module.train(task or Toy(), model, settings(**training), out)
    return flat(model), outcome


def _main() -> None:
    out, wish = Path(sys.argv[1]), json.loads(sys.argv[2])
    losses: list[float] = []

    def tick(step: int, loss: float) -> None:
        losses.append(loss)
        if step == wish.get("die_at_step"):
            os.kill(os.getpid(), signal.SIGKILL)

    sync, calls = os.fsync, [0]

    def torn(file: int) -> None:
        """A power cut in the middle of a file."""
        calls[0] += 1
        if calls[0] == wish.get("die_at_sync"):
            os.ftruncate(file, 1000)
            os.kill(os.getpid(), signal.SIGKILL)
        sync(file)

    os.fsync = torn  # type: ignore[assignment]  # the package gives it numbers only
    model = fresh(spare=wish.get("spare", 0))
    loop_module.train(Toy(wish.get("count", 7)), model, settings(**wish["training"]), out, tick=tick)
    rank = os.environ.get("RANK", "0")
    (out / f"losses-{rank}.json").write_text(json.dumps(losses))
    torch.save(flat(model), out / f"weights-{rank}.pt")


if __name__ == "__main__":
    _main()
