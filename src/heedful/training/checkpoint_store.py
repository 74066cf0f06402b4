"""The folder `resume/` with checkpoints; a resumed training ends with bit-identical weights.

`step-N.pt` is a complete checkpoint; the last two are kept. Weights needed by several checkpoints are files of
their own, written once: `best-N.pt` (the best weights so far) and `snapshot-N.pt` (weights to be averaged). Each
file is written under a temporary name, synced and renamed, and begins with a SHA-256 digest of its content,
because torch does not notice a damaged tensor. Files are loaded with `weights_only`, so none can run code.
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
from typing import Any, Literal

import torch
from torch import Tensor, nn

from heedful.atomic_write import atomic_write
from heedful.config import TrainingConfig
from heedful.data.asset_files import CHECKPOINT, RESUME_DIR
from heedful.errors import TrainingError
from heedful.training.types import LogLine

FORMAT = 2
FIXED_SETTINGS = ("seed", "batch_tokens", "optimizer")  # the data order and the optimizer state depend on them
START_OVER_HINT = "give another --out, or remove that folder to start over"
DIGEST_SIZE = hashlib.sha256().digest_size

WeightKind = Literal["best", "snapshot"]


@dataclass
class Progress:
    """The position of a training run; numbers and plain containers only, stored in each checkpoint."""

    epoch: int = 1  # the current epoch, from 1
    position: int = 0  # batches of this epoch consumed by all processes together
    step: int = 0  # updates done
    tokens: int = 0
    seconds: float = 0.0
    tokens_since_validation: int = 0
    loss_since_validation: float = 0.0  # summed over these tokens
    validated_step: int = 0  # step of the last validation
    validated_epochs: int = 0  # epochs completed by then
    best: dict[str, Any] | None = None  # the best Report, as a dict
    last: dict[str, Any] | None = None  # the last Report, as a dict
    validations_since_best: int = 0
    validations_since_decay: int = 0  # without improvement, since the plateau schedule last lowered the learning rate
    decays: int = 0  # how often the plateau schedule has lowered the learning rate
    learning_rate: float = 0.0  # of the last step
    loss_monitor: list[float] = field(default_factory=list)  # `LossMonitor.state`
    warnings: list[str] = field(default_factory=list)  # since the last validation
    snapshots: list[int] = field(default_factory=list)  # steps of the snapshots being averaged

    def weight_files(self, keep_best: bool) -> set[str]:
        """Return the names of the weight files that this checkpoint refers to."""
        best = {_file_name("best", self.best["step"])} if keep_best and self.best else set()
        return best | {_file_name("snapshot", step) for step in self.snapshots}


def _file_name(kind: str, step: int) -> str:
    return f"{kind}-{step:09d}.pt"


def remove_checkpoints(out: Path) -> None:
    """Remove `out/resume`; the caller does so once the trained model is saved."""
    shutil.rmtree(out / RESUME_DIR, ignore_errors=True)


class CheckpointStore:
    """Reads and writes the files of `resume/`; used by rank 0 only."""

    def __init__(self, out: Path, log: LogLine) -> None:
        self.folder = out / RESUME_DIR
        self.log = log
        self._weight_files: dict[str, set[str]] = {}  # checkpoint that is kept -> weight files it refers to

    def save_weights(self, kind: WeightKind, step: int, weights: Mapping[str, Tensor]) -> None:
        """Write weights that the next checkpoint refers to."""
        self._write(_file_name(kind, step), dict(weights))

    def load_weights(self, kind: WeightKind, step: int) -> dict[str, Tensor]:
        """Read weights back."""
        return dict(self._read(_file_name(kind, step)))

    def save(self, progress: Progress, keep_best: bool, state: Mapping[str, Any]) -> None:
        """Write a checkpoint, then remove the files that neither it nor the one before needs."""
        name = _file_name(CHECKPOINT, progress.step)
        self._write(name, {"format": FORMAT, "progress": asdict(progress), "best": keep_best, **state})
        self._weight_files[name] = progress.weight_files(keep_best)
        checkpoints = sorted(self._weight_files)[-2:]
        self._weight_files = {checkpoint: self._weight_files[checkpoint] for checkpoint in checkpoints}
        needed = set(checkpoints).union(*self._weight_files.values())
        for path in self.folder.iterdir():
            if path.name not in needed:
                path.unlink()

    def remove(self, step: int) -> int | None:
        """Remove the checkpoint of `step`, if there is one; return the step of the newest that is left."""
        (self.folder / _file_name(CHECKPOINT, step)).unlink(missing_ok=True)
        remaining = sorted(self.folder.glob(f"{CHECKPOINT}-*.pt"))
        return int(remaining[-1].stem.partition("-")[2]) if remaining else None

    def load_latest(self) -> tuple[Progress, dict[str, Any]] | None:
        """Return the newest intact checkpoint, or None; damaged ones are removed and logged."""
        for path in sorted(self.folder.glob(f"{CHECKPOINT}-*.pt"), reverse=True):
            try:
                state = self._read(path.name)
                if state["format"] != FORMAT:
                    raise TrainingError(
                        f"{path} has checkpoint format {state['format']}, this version of heedful reads format"
                        f" {FORMAT}: finish the training with the version that started it, {START_OVER_HINT}"
                    )
                progress = Progress(**state["progress"])
                weight_files = progress.weight_files(state["best"])
                for name in weight_files:
                    self._read(name)
            except (OSError, ValueError) as error:
                self.log(f"{path}: {error}; trying the checkpoint before it")
                path.unlink()
                continue
            self._weight_files = {path.name: weight_files}
            return progress, state
        if self.folder.is_dir() and any(self.folder.iterdir()):
            self.log(f"{self.folder} has no intact checkpoint; training starts over")
        return None

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        buffer = io.BytesIO()
        torch.save(content, buffer)
        data = buffer.getbuffer()
        with atomic_write(self.folder / name, TrainingError, parents=True) as draft, draft.open("wb") as file:
            file.write(hashlib.sha256(data).digest())
            file.write(data)
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _read(self, name: str) -> dict[str, Any]:
        data = (self.folder / name).read_bytes()
        if len(data) <= DIGEST_SIZE or hashlib.sha256(data[DIGEST_SIZE:]).digest() != data[:DIGEST_SIZE]:
            raise ValueError("damaged" if name.startswith(CHECKPOINT) else f"its {name} is damaged")
        try:
            content = torch.load(io.BytesIO(data[DIGEST_SIZE:]), weights_only=True, map_location="cpu")
        except pickle.UnpicklingError:
            raise ValueError("not loaded, because it holds more than tensors and plain containers") from None
        return dict(content)


def check_compatible(out: Path, state: Mapping[str, Any], model: nn.Module, config: TrainingConfig) -> list[str]:
    """Raise if a checkpoint belongs to another model or another data order.

    Returns the settings that differ but are allowed to, each as "name: old -> new".
    """
    problem = f"{out / RESUME_DIR} contains checkpoints"
    differences = _weight_differences(state["model"], model.state_dict())
    if differences:
        more = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
        raise TrainingError(f"{problem} of another model: {differences[0]}{more}; {START_OVER_HINT}")
    old, new = state["training"], config.model_dump(mode="json")
    changes = {key: f"training.{key}: {old.get(key)} -> {new[key]}" for key in new if old.get(key) != new[key]}
    fixed = [changes[key] for key in FIXED_SETTINGS if key in changes]
    if fixed:
        raise TrainingError(f"{problem} with other settings ({', '.join(fixed)}); {START_OVER_HINT}")
    return list(changes.values())


def _weight_differences(saved: Mapping[str, Tensor], current: Mapping[str, Tensor]) -> Sequence[str]:
    differences = [f"it has no {name}" for name in current if name not in saved]
    differences += [f"it has {name}, this model does not" for name in saved if name not in current]
    for name in current:
        if name in saved and saved[name].shape != current[name].shape:
            old, new = (" x ".join(map(str, tensor.shape)) for tensor in (saved[name], current[name]))
            differences.append(f"its {name} is {old}, this model's is {new}")
    return differences
