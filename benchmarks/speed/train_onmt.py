"""Train model R or T once in OpenNMT-py: the weights that everybody decodes with. Run in its environment.

    build/bench/env-onmt/bin/python benchmarks/speed/train_onmt.py R             # 3 epochs, about 12 minutes
    build/bench/env-onmt/bin/python benchmarks/speed/train_onmt.py T

A state is written every half epoch; the same command goes on from the last one. What is trained already is
not trained again.
"""

from __future__ import annotations

import os

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # its checkpoints hold its options

import argparse
from pathlib import Path

import onmt.bin.train
import onmt_options
import places
import sizes
import torch

EPOCHS = {"R": 3, "T": 3}


def states(model: str) -> list[Path]:
    """What an earlier call left, the oldest first."""
    found = places.checkpoint(model).parent.glob(f"{model}_step_*.pt")
    return sorted(found, key=lambda path: int(path.stem.rpartition("_")[2]))


def train(model: str, steps: int) -> None:
    final = places.checkpoint(model)
    if final.is_file():
        return
    final.parent.mkdir(parents=True, exist_ok=True)
    epoch = -(-sizes.PAIRS // sizes.SENTENCES)
    onward = states(model)[-1] if states(model) else None
    options = onmt_options.options(model, final.parent / model, steps, every=epoch // 2, onward=onward)
    parser = onmt.bin.train._get_parser()
    onmt.bin.train.train(parser.parse_args(["-config", str(options)]))
    *old, last = states(model)
    last.replace(final)
    for path in old:
        path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model", choices=("R", "T"))
    parser.add_argument("--epochs", type=int, default=0)
    parser.add_argument("--steps", type=int, default=0, help="in place of epochs")
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    epoch = -(-sizes.PAIRS // sizes.SENTENCES)
    train(asked.model, asked.steps or epoch * (asked.epochs or EPOCHS[asked.model]))


if __name__ == "__main__":
    main()
