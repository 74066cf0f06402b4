"""`heedful compare`: variants of a recipe with the same data order and budget, several seeds, and their cost.

Each variant is trained by the command a user would type. A comparison that was stopped resumes when the same
command is run again.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from heedful.analysis.compare_report import ComparisonRow, count_noun, steps_warning, write_report
from heedful.analysis.decoding_cost import seconds_per_decoding_step
from heedful.analysis.training_pool import COST_FILE, TrainingJob, TrainingPool
from heedful.analysis.variants import Budget, expand_variants
from heedful.config import load_recipe
from heedful.errors import ConfigError, DataError, ModelError, Problem, TrainingError
from heedful.tasks.base import EvaluationRequest, EvaluationResult, Variant
from heedful.tasks.model_card import read_card
from heedful.tasks.registry import get_task
from heedful.training.metrics_log import METRICS_FILE


def compare(  # noqa: PLR0913 - one argument per option of the command
    recipe: Path,
    vary: Sequence[str],
    seeds: int,
    budget: str,
    out: Path,
    log: Callable[[str], None],
    settings: Sequence[str] = (),
    parallel_jobs: int = 1,
    with_baselines: bool = True,
) -> list[ComparisonRow]:
    """Train and evaluate every variant, `parallel_jobs` at once; write `compare.json`, `.md` and `.png`."""
    limit = Budget.parse(budget)
    if parallel_jobs > 1 and not limit.steps:
        message = f"{budget}: parallel runs share the CPU cores, so give the budget in steps, such as 2000steps"
        raise ConfigError([Problem("--budget", "", message)])
    loaded_recipe = load_recipe(recipe)
    task = get_task(loaded_recipe.recipe.task.kind)
    baselines = task.baselines(loaded_recipe.recipe.model) if with_baselines else ()
    variants = expand_variants(vary, settings, baselines)
    for variant in variants:  # report all errors before hours of work
        load_recipe(recipe, variant.overrides)
    if not task.has_test_data(loaded_recipe.recipe, loaded_recipe.base):
        raise DataError(f"{recipe} names no test data to compare on: set data.test or data.split_test")
    _make_folder(out)
    total = len(variants) * seeds
    minutes = f": about {total * limit.minutes:.0f} minutes of training" if limit.minutes else ""
    log(f"{count_noun(len(variants), 'variant')} x {count_noun(seeds, 'seed')}, {budget} each{minutes}")
    if not limit.steps:
        log(f"note: within {budget} faster variants take more steps; to compare quality, give a budget of steps")
    folders = [[out / f"{number:02d}-seed{seed}" for seed in range(1, seeds + 1)] for number in range(len(variants))]
    jobs = [
        TrainingJob(variant, seed, folder)
        for variant, variant_folders in zip(variants, folders, strict=True)
        for seed, folder in enumerate(variant_folders, start=1)
    ]
    pool = TrainingPool(recipe, limit, parallel_jobs)
    for number, job in enumerate(pool.run(jobs), start=1):
        log(f"{number}/{total} {job.variant.name}, seed {job.seed}")
    rows = _evaluate_variants(variants, folders)
    warning = steps_warning(rows)
    if warning:
        log(f"warning: {warning}")
    write_report(rows, out, recipe, budget, seeds, parallel_jobs)
    return rows


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise TrainingError(f"{out} is a file; --out takes a folder") from None
    except OSError as error:
        raise TrainingError(f"{out}: cannot be created: {error.strerror}; give another --out") from None


def _evaluate_variants(variants: Sequence[Variant], folders: Sequence[Sequence[Path]]) -> list[ComparisonRow]:
    """Return a row per variant; `folders` are the model folders of its seeds."""
    rows: list[ComparisonRow] = []
    step_seconds = _decoding_costs([variant_folders[0] for variant_folders in folders])
    baseline: EvaluationResult | None = None  # the first seed of the first variant
    for variant, variant_folders, seconds in zip(variants, folders, step_seconds, strict=True):
        results = [
            get_task(read_card(folder)["task"]).evaluate([folder], EvaluationRequest()) for folder in variant_folders
        ]
        values: dict[str, list[float]] = {}
        for result in results:
            for metric in result.metrics:
                values.setdefault(metric.name, []).append(metric.value)
        p_value = None
        if baseline is None:
            baseline = results[0]
        else:
            with suppress(DataError):  # not comparable, such as language models with different tokens
                p_value = baseline.compare_to(results[0]).p
        costs = [_training_cost(folder) for folder in variant_folders]
        rows.append(
            ComparisonRow(
                name=variant.name,
                parameters=int(read_card(variant_folders[0])["parameters"]),
                metrics={name: _mean_and_sd(listed) for name, listed in values.items()},
                steps=statistics.mean(cost["steps"] for cost in costs),
                seconds_per_step=statistics.mean(cost["seconds"] / max(cost["steps"], 1) for cost in costs),
                peak_memory_mb=statistics.mean(cost["peak_memory_mb"] for cost in costs),
                p_value=p_value,
                seconds_per_decoding_step=seconds,
            )
        )
    return rows


def _decoding_costs(folders: Sequence[Path]) -> list[float | None]:
    """Return the seconds per decoding step of each model, measured in one run and then kept in `cost.json`."""
    costs = [_read_cost(folder) for folder in folders]
    key = "seconds_per_decoding_step"
    if not all(key in cost for cost in costs):
        for folder, cost, seconds in zip(folders, costs, seconds_per_decoding_step(folders), strict=True):
            cost[key] = seconds
            (folder / COST_FILE).write_text(json.dumps(cost) + "\n", encoding="utf-8")
    return [cost[key] for cost in costs]


def _training_cost(folder: Path) -> dict[str, float]:
    memory = float(_read_cost(folder)["peak_memory_mb"])
    try:
        if read_card(folder)["parameters"] == 0:  # a model that only counts is not trained
            return {"steps": 0, "seconds": 0.0, "peak_memory_mb": memory}
        last = json.loads((folder / METRICS_FILE).read_text(encoding="utf-8").splitlines()[-1])
        return {"steps": last["step"], "seconds": last["seconds"], "peak_memory_mb": memory}
    except (OSError, ValueError, LookupError, TypeError):
        raise _damaged_error(folder) from None


def _read_cost(folder: Path) -> dict[str, Any]:
    try:
        cost: dict[str, Any] = json.loads((folder / COST_FILE).read_text(encoding="utf-8"))
        float(cost["peak_memory_mb"])
    except (OSError, ValueError, LookupError, TypeError):
        raise _damaged_error(folder) from None
    return cost


def _damaged_error(folder: Path) -> ModelError:
    return ModelError(
        f"{folder}: {METRICS_FILE} or {COST_FILE} is missing or damaged; remove that folder, and the same"
        " command trains it again"
    )


def _mean_and_sd(values: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean and the standard deviation, which is None for one value."""
    return statistics.mean(values), statistics.stdev(values) if len(values) > 1 else None
