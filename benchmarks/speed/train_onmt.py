"""Train model R or T with OpenNMT-py: the weights with which every system decodes. Run in its environment.

    $HEEDFUL_RUNS/bench/env-onmt/bin/python benchmarks/speed/train_onmt.py R             # 3 epochs, about 12 minutes
    $HEEDFUL_RUNS/bench/env-onmt/bin/python benchmarks/speed/train_onmt.py T

Writes a checkpoint every half epoch; the same command resumes from the last one, and does nothing once the model is
trained.
"""

from __future__ import annotations

import os

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # its checkpoints contain its options

import argparse
from pathlib import Path

import onmt.bin.train
import onmt_options
import paths
import sizes
import torch

EPOCHS = {"R": 3, "T": 3}


def intermediate_checkpoints(model: str) -> list[Path]:
    """Return the checkpoints of an earlier call, oldest first."""
    files = paths.checkpoint(model).parent.glob(f"{model}_step_*.pt")
    return sorted(files, key=lambda path: int(path.stem.rpartition("_")[2]))


def train(model: str, steps: int) -> None:
    final = paths.checkpoint(model)
    if final.is_file():
        return
    final.parent.mkdir(parents=True, exist_ok=True)
    epoch = -(-sizes.TRAINING_PAIRS // sizes.BATCH_SENTENCES)
    checkpoints = intermediate_checkpoints(model)
    resume = checkpoints[-1] if checkpoints else None
    options = onmt_options.write_options(model, final.parent / model, steps, every=epoch // 2, resume=resume)
    parser = onmt.bin.train._get_parser()
    onmt.bin.train.train(parser.parse_args(["-config", str(options)]))
    *old, last = intermediate_checkpoints(model)
    last.replace(final)
    for path in old:
        path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model", choices=("R", "T"))
    parser.add_argument("--epochs", type=int, default=0)
    parser.add_argument("--steps", type=int, default=0, help="instead of epochs")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    epoch = -(-sizes.TRAINING_PAIRS // sizes.BATCH_SENTENCES)
    train(arguments.model, arguments.steps or epoch * (arguments.epochs or EPOCHS[arguments.model]))


if __name__ == "__main__":
    main()
