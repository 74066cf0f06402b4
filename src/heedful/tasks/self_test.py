"""The self-test of a model: numbers that it computed when it was saved, and must compute again.

Hashes show that files are as they were written; the self-test shows that they still mean the same to this version of
heedful, of torch and of the tokenizers, on this machine.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import nn

from heedful.config import Recipe
from heedful.errors import HeedfulError, ModelError
from heedful.tasks.base import LoadedModel, SelfTest
from heedful.tasks.model_card import CARD
from heedful.tasks.registry import get_task

TOLERANCE = 1e-3  # absolute, and relative to outputs above 1; other orders of summation differ by about 1e-6
MAX_OUTPUTS = 64


def make_self_test(recipe: Recipe, assets: Any, model: nn.Module) -> dict[str, Any] | None:
    """Return the self-test for the card of a model that is being saved, or None if its task or model can have none.

    The model is tested as it will be loaded: on the CPU, in single precision.
    """
    self_test: SelfTest | None = getattr(get_task(recipe.task.kind), "self_test", None)
    samples = recipe.model.attention.placement == "hard" and recipe.model.attention.hard_inference == "sample"
    if self_test is None or samples:
        return None
    as_loaded = copy.deepcopy(model).to("cpu", torch.float32).eval()
    try:
        value = self_test.make_input(assets)
        outputs = _run(self_test, as_loaded, assets, value)
    except HeedfulError:  # such as a table of positions that is shorter than the input
        return None
    return {"input": value, "outputs": [round(number, 6) for number in outputs], "tolerance": TOLERANCE}


def run_self_test(loaded: LoadedModel[Any, Any]) -> float | None:
    """Return the largest difference from the outputs in the card, None if it has no self-test.

    A difference above the tolerance raises ModelError.
    """
    self_test: SelfTest | None = getattr(get_task(loaded.recipe.task.kind), "self_test", None)
    stored = loaded.card.get("self_test")
    if self_test is None or stored is None:
        return None
    expected, tolerance = stored.get("outputs"), stored.get("tolerance")
    if not _are_numbers(expected) or not _are_numbers([tolerance]):
        raise ModelError(f'{loaded.path / CARD}: damaged: "self_test" has no outputs, or no tolerance')
    try:
        outputs = _run(self_test, loaded.model, loaded.assets, stored.get("input"))
    except (HeedfulError, ValueError, TypeError, KeyError, IndexError, RuntimeError) as error:
        raise ModelError(f"{loaded.path}: the self-test cannot be run: {error}") from None
    if len(outputs) != len(expected):
        raise ModelError(f"{loaded.path}: the self-test has {len(outputs)} outputs, the card {len(expected)}")
    differences = [
        abs(output - number) / max(1.0, abs(number)) for output, number in zip(outputs, expected, strict=True)
    ]
    largest = math.inf if any(map(math.isnan, differences)) else max(differences)
    if largest > tolerance:
        raise ModelError(
            f"{loaded.path}: the self-test fails: an output differs by {largest:.2g} from that in the card, more than"
            f" {tolerance:g}; the files are damaged, or this installation computes something else"
        )
    return largest


def _run(self_test: SelfTest, model: nn.Module, assets: Any, value: Any) -> list[float]:
    with torch.inference_mode(), torch.random.fork_rng(devices=[]):
        return [float(number) for number in self_test.outputs(model, assets, value)]


def _are_numbers(values: Any) -> bool:
    is_list = isinstance(values, list) and 0 < len(values) <= MAX_OUTPUTS
    return is_list and all(type(v) in (int, float) and math.isfinite(v) for v in values)
