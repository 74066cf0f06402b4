"""The folder `resume/`: what a training needs to go on as if nothing had happened.

`step-N.pt` is a whole state; the last two are kept. Weights that outlive many states are files of their own,
written once: `best-N.pt` (the best so far) and `raw-N.pt` (snapshots to be averaged). Each file is written
under another name, synced and renamed, and begins with a digest of the rest: torch itself does not notice a
damaged tensor. Only tensors and plain containers are read back; no file can run code.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from heedful.config import TrainingConfig
from heedful.errors import TrainingError
from heedful.training.types import Say

FORMAT = 1
FOLDER = "resume"
FIXED = ("seed", "batch_tokens", "optimizer")  # place in the data and optimizer's memory hang on them
CURE = "give another --out, or remove that folder to begin again"
DIGEST = hashlib.sha256().digest_size


@dataclass
class Progress:
    """Where a training stands; plain numbers and containers only."""

    epoch: int = 1  # under way
    position: int = 0  # batches of it that all processes together have taken
    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    seen: int = 0  # tokens since the last validation, and their loss
    summed: float = 0.0
    validated: int = 0  # step of the last validation, and the epochs complete by then
    validated_epochs: int = 0
    best: dict[str, Any] | None = None  # a Report
    last: dict[str, Any] | None = None
    waited: int = 0  # validations since the best
    flat: int = 0  # the same, since the rate was last lowered
    decays: int = 0
    rate: float = 0.0  # of the last step
    loss_watch: list[float] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)  # said since the last validation
    snapshots: list[int] = field(default_factory=list)

    def files(self, keeps_best: bool) -> set[str]:
        """The weight files that belong to this state."""
        best = {_name("best", self.best["step"])} if keeps_best and self.best else set()
        return best | {_name("raw", step) for step in self.snapshots}


def _name(kind: str, step: int) -> str:
    return f"{kind}-{step:09d}.pt"


def forget(out: Path) -> None:
    """Remove the resume state; for the caller, once the finished model is written."""
    shutil.rmtree(out / FOLDER, ignore_errors=True)


def under_way(out: Path) -> bool:
    """Is there a state to go on from?"""
    return any((out / FOLDER).glob("step-*.pt"))


class Shelf:
    """Reads and writes the folder; one process only."""

    def __init__(self, out: Path, say: Say) -> None:
        self.folder = out / FOLDER
        self.say = say
        self._needs: dict[str, set[str]] = {}  # weight files of each state that is kept

    def put(self, kind: str, step: int, weights: Mapping[str, Tensor]) -> None:
        """Write weights that a state will refer to; before that state."""
        self._write(_name(kind, step), dict(weights))

    def get(self, kind: str, step: int) -> dict[str, Tensor]:
        return dict(self._read(_name(kind, step)))

    def save(self, progress: Progress, keeps_best: bool, rest: Mapping[str, Any]) -> None:
        """Write a state, then remove what neither it nor the one before needs."""
        name = _name("step", progress.step)
        self._write(name, {"format": FORMAT, "progress": asdict(progress), "best": keeps_best, **rest})
        self._needs[name] = progress.files(keeps_best)
        kept = sorted(self._needs)[-2:]
        self._needs = {state: self._needs[state] for state in kept}
        wanted = set(kept).union(*self._needs.values())
        for path in self.folder.iterdir():
            if path.name not in wanted:
                path.unlink()

    def drop(self, step: int) -> int | None:
        """Remove the state of this step, if there is one; the step of the newest that is left."""
        (self.folder / _name("step", step)).unlink(missing_ok=True)
        left = sorted(self.folder.glob("step-*.pt"))
        return int(left[-1].stem.partition("-")[2]) if left else None

    def newest(self) -> tuple[Progress, dict[str, Any]] | None:
        """The last whole state, or None. A damaged one is removed, and the one before taken, in words."""
        for path in sorted(self.folder.glob("step-*.pt"), reverse=True):
            try:
                state = self._read(path.name)
                if state["format"] != FORMAT:
                    raise TrainingError(
                        f"{path}: format {state['format']}, but this heedful reads format {FORMAT}; {CURE}"
                    )
                progress = Progress(**state["progress"])
                needs = progress.files(state["best"])
                for name in needs:
                    self._read(name)
            except (OSError, ValueError) as error:
                self.say(f"{path}: {error}; trying the state before it")
                path.unlink()
                continue
            self._needs = {path.name: needs}
            return progress, state
        if self.folder.is_dir() and any(self.folder.iterdir()):
            self.say(f"{self.folder} holds no whole state; training begins at the beginning")
        return None

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        buffer = io.BytesIO()
        torch.save(content, buffer)
        data = buffer.getbuffer()
        draft = self.folder / f"{name}.tmp"
        with draft.open("wb") as file:
            file.write(hashlib.sha256(data).digest())
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.folder / name)
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _read(self, name: str) -> dict[str, Any]:
        data = (self.folder / name).read_bytes()
        if len(data) <= DIGEST or hashlib.sha256(data[DIGEST:]).digest() != data[:DIGEST]:
            raise ValueError("damaged" if name.startswith("step") else f"its {name} is damaged")
        try:
            content = torch.load(io.BytesIO(data[DIGEST:]), weights_only=True, map_location="cpu")
        except pickle.UnpicklingError:
            raise ValueError("holds more than tensors and plain containers, so it is not read") from None
        return dict(content)


def check_same(out: Path, state: Mapping[str, Any], model: nn.Module, config: TrainingConfig) -> list[str]:
    """Refuse a state of another training; the settings that changed and may, as "name: old -> new"."""
    where = f"{out / FOLDER} holds a training under way"
    wrong = _other_shapes(state["model"], model.state_dict())
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise TrainingError(f"{where} of another model: {wrong[0]}{more}; {CURE}")
    before, now = state["training"], config.model_dump(mode="json")
    changed = [key for key in now if before.get(key) != now[key]]
    listed = {key: f"training.{key}: {before.get(key)} -> {now[key]}" for key in changed}
    fixed = [listed[key] for key in FIXED if key in listed]
    if fixed:
        raise TrainingError(f"{where} with other settings ({', '.join(fixed)}); {CURE}")
    return list(listed.values())


def _other_shapes(there: Mapping[str, Tensor], here: Mapping[str, Tensor]) -> Sequence[str]:
    wrong = [f"it has no {name}" for name in here if name not in there]
    wrong += [f"it has {name}, which this one has not" for name in there if name not in here]
    for name in here:
        if name in there and there[name].shape != here[name].shape:
            sizes = [" x ".join(map(str, tensor.shape)) for tensor in (there[name], here[name])]
            wrong.append(f"its {name} is {sizes[0]}, here it is {sizes[1]}")
    return wrong
