"""Compare guided with unguided training on the phrase world: quality, alignment error and faithfulness.

    python benchmarks/alignment/guided.py         # writes benchmarks/alignment/GUIDED.md; minutes on an idle machine

Does teaching a model where to look make its looks matter more? All links of this world are known.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from heedful.analysis.faithfulness import FaithfulnessOptions
from heedful.analysis.measure import load_items, measure
from heedful.config import load_recipe
from heedful.data.paths import runs_folder
from heedful.metrics.alignment import score_alignment
from heedful.tasks.model_folder import load_model
from heedful.tasks.seq2seq.align import attention_links
from heedful.tasks.train import train_recipe
from heedful.training.types import NO_CALLBACKS

HERE = Path(__file__).parent
RUNS = runs_folder() / "alignment" / "guided"
SEEDS = (1, 2)
ITEMS = 150  # test pairs that are measured
GOLD = ("training.guided.links=gold",)
SETTINGS: dict[str, tuple[str, ...]] = {
    "unguided": (),
    "gold links, weight 0.1": (*GOLD, "training.guided.weight=0.1"),
    "gold links, weight 1": (*GOLD, "training.guided.weight=1"),
    "gold links, weight 1 to 0 in 300 steps": (
        *GOLD,
        "training.guided.weight=1",
        "training.guided.decay_steps=300",
    ),
    "links of `heedful align`, weight 1": ("training.guided.links=align", "training.guided.weight=1"),
}
TRANSFORMER = ("model.preset=transformer", "model.encoder.heads=4", "model.decoder.heads=4", "model.encoder.hidden=64")
TRANSFORMER += ("model.decoder.hidden=64", "model.embedding=64", "model.encoder.layers=2", "model.decoder.layers=2")
FULL_CONTEXT: dict[str, tuple[str, ...]] = {
    "Transformer, unguided": TRANSFORMER,
    "Transformer, gold links, weight 1": (*TRANSFORMER, *GOLD, "training.guided.weight=1"),
    "Transformer, gold links, weight 1, full context": (
        *TRANSFORMER,
        *GOLD,
        "training.guided.weight=1",
        "training.guided.full_context=true",
    ),
}
COLUMNS: dict[str, tuple[str, ...]] = {  # title -> path in the record
    "BLEU": ("bleu",),
    "AER": ("gold", "naive", "aer"),
    "weight on gold": ("gold", "gold_weight"),
    "permuted: change": ("faithfulness", "permutation", "median_tvd", "mean"),
    "uniform: change": ("faithfulness", "uniform", "tvd", "mean"),
    "BLEU, uniform": ("faithfulness", "outputs", "uniform"),
    "top words erased: loss of p": ("faithfulness", "input_erasure", "weight", "comprehensiveness"),
    "random words erased": ("faithfulness", "input_erasure", "random", "comprehensiveness"),
}


HEAD = """# Guided and unguided training on the phrase world

`guided-world.toml`: `rnnsearch`, 8,000 pairs and 676 updates, so far from converged. BLEU is of the validation data;
measured on 150 test pairs (docs/faithfulness.md). Mean and standard deviation over seeds.

"""


def run(name: str, seed: int, overrides: Sequence[str]) -> dict[str, Any]:
    """Train and measure one model, unless its record is there."""
    folder = RUNS / f"{name.replace('`', '').replace(' ', '-').replace(',', '')}-{seed}"
    record = RUNS / f"{folder.name}.json"
    if record.exists():
        loaded: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
        return loaded
    start = time.process_time()
    settings = [*overrides, f"training.seed={seed}", *sys.argv[1:]]
    train_recipe(load_recipe(HERE / "guided-world.toml", settings), folder, NO_CALLBACKS)
    model = load_model(folder)
    items, gold = load_items(model, [], "test", None, 0, ITEMS)
    report: dict[str, Any] = measure(model, items, FaithfulnessOptions(seed=1), gold)
    links = attention_links(model, items)
    report["align"] = score_alignment(links, gold).aer if gold is not None else None
    report |= {"bleu": model.card["metrics"]["bleu"], "cpu_seconds": time.process_time() - start}
    record.write_text(json.dumps(report, default=str), encoding="utf-8")
    print(f"{folder.name}: {report['cpu_seconds']:.0f} s", flush=True)
    return report


def _value(record: dict[str, Any], path: Sequence[str]) -> float:
    value: Any = record
    for key in path:
        value = value[key]
    return float(value)


def main() -> None:
    RUNS.mkdir(parents=True, exist_ok=True)
    records: dict[str, list[dict[str, Any]]] = {name: [] for name in SETTINGS}
    for seed in SEEDS:
        for name, overrides in SETTINGS.items():
            records[name].append(run(name, seed, overrides))
    lines = [f"| training | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for name, seeds in records.items():
        cells = []
        for path in COLUMNS.values():
            values = [_value(record, path) for record in seeds]
            cells.append(f"{statistics.mean(values):.3g} ± {statistics.stdev(values):.2g}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    more = ["| training, 1 seed | BLEU | AER | AER of `heedful align -m` |", "|---" * 4 + "|"]
    for name, overrides in FULL_CONTEXT.items():
        record = run(name, 1, overrides)
        cells = [record["bleu"], record["gold"]["naive"]["aer"], record["align"]]
        more.append(f"| {name} | {' | '.join(f'{value:.1f}' for value in cells)} |")
    seconds = statistics.mean(record["cpu_seconds"] for seeds in records.values() for record in seeds)
    commit = subprocess.run(["git", "describe", "--always"], cwd=HERE, capture_output=True, text=True, check=False)
    when = f"{datetime.now(UTC):%Y-%m-%d}, commit {commit.stdout.strip()}; `benchmarks/alignment/guided.py`"
    table = "\n".join([*lines, "", *more])
    text = f"{HEAD}{table}\n\n{when}; {len(SEEDS)} seeds, {seconds:.0f} s of CPU time per model.\n"
    (HERE / "GUIDED.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
