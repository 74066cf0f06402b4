"""Time saved by bfloat16 products in training: gradients of the same batches with and without, alternating, in one run.

    python benchmarks/bf16.py           # some minutes; writes bf16.md to benchmarks/

Processor time of one thread; a ratio belongs to one batch, the table has the median and the quartiles.
"""

from __future__ import annotations

import platform
import statistics
import subprocess
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import torch

from heedful.config import load_recipe
from heedful.tasks.registry import get_task
from heedful.training.bf16 import Bf16Products, has_bf16_products
from heedful.training.types import Callbacks

ROOT = Path(__file__).parents[1]
RECIPES = (
    "multi30k-en-de-cgru",
    "multi30k-de-en-transformer",
    "multi30k-luong",
    "ptb-lstm",
    "ptb-lstmn",
    "g2p",
)
BATCHES = 15
HEAD = """# Training with bfloat16 matrix products

`python benchmarks/bf16.py`, {date}, commit {commit}, {machine}, one thread: loss and
gradients of the same {batches} batches, `precision = "32-true"` and `"bf16-mixed"` alternating.

| recipe | batch | float32 | bfloat16 | ratio (median) | quartiles |
|---|---|---|---|---|---|
"""


def row(name: str) -> str:
    loaded_recipe = load_recipe(ROOT / "recipes" / f"{name}.toml", [])
    kind = get_task(loaded_recipe.recipe.task.kind)
    setup = kind.start(loaded_recipe.recipe, loaded_recipe.base, None, Callbacks())
    torch.manual_seed(1)
    model = kind.build(loaded_recipe.recipe, setup.assets).train()
    mode = Bf16Products(model.parameters())
    took: list[tuple[float, float]] = []
    for batch in islice(setup.task.batches(1), BATCHES + 1):
        pair = []
        for way in (nullcontext(), mode):
            begun = time.process_time()
            with way:
                setup.task.loss(model, batch).total.backward()
            pair.append(time.process_time() - begun)
            model.zero_grad()
            mode.clear_cache()
        took.append((pair[0], pair[1]))
    took = took[1:]  # the first warms up
    ratios = [float32 / bf16 for float32, bf16 in took]
    low, middle, high = statistics.quantiles(ratios, n=4)
    means = " | ".join(f"{1000 * statistics.mean(column):.0f} ms" for column in zip(*took, strict=True))
    tokens = loaded_recipe.recipe.training.batch_tokens
    return f"| `{name}` | {tokens:,} | {means} | **{middle:.2f}x** | {low:.2f}-{high:.2f} |"


def main() -> None:
    torch.set_num_threads(1)
    if not has_bf16_products():
        raise SystemExit("this CPU has no bfloat16 instructions")
    done = subprocess.run(["git", "describe", "--always"], cwd=ROOT, capture_output=True, text=True)
    head = HEAD.format(
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        commit=done.stdout.strip(),
        machine=f"{platform.machine()} with AVX-512 BF16",
        batches=BATCHES,
    )
    lines = []
    for name in RECIPES:
        lines.append(row(name))
        print(lines[-1], flush=True)
    (ROOT / "benchmarks" / "bf16.md").write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
