"""Generate text without torch, where `numpy_backend` supports model and options: a command then starts at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open

from heedful.config import DataConfig, DecodingOptions, Recipe, load_recipe
from heedful.data.asset_files import asset_file
from heedful.errors import DecodingCancelledError, DecodingTimeoutError, HeedfulError
from heedful.hypothesis import Hypothesis
from heedful.numpy_backend import gru
from heedful.numpy_backend.gru import SITE, Array, NumpyGru
from heedful.numpy_backend.search import search
from heedful.numpy_backend.search import supports as supports_options
from heedful.parallel import OnProgress, no_progress
from heedful.stopping import NEVER, StopCondition
from heedful.tasks.limits import inference_limits
from heedful.tasks.model_card import FORMAT, MAX_WEIGHT, RECIPE, WEIGHTS, check_files, hash_weights, read_card
from heedful.tasks.seq2seq.outputs import line_as_read
from heedful.tasks.seq2seq.text_assets import TextAssets

TASKS = ("translate", "summarize", "reply", "transduce")
MAX_LINES = 32  # of a call: importing torch takes as long as about so many sentences in NumPy


class NumpyPredictor(NamedTuple):
    """A model with its tokenizers and decoding options; a `TextPredictor`."""

    name: str
    model: NumpyGru
    assets: TextAssets
    decoding: DecodingOptions
    task: str
    limits: DataConfig
    card: Mapping[str, Any]
    path: Path
    alignment_site: str | None = SITE

    def sha256(self) -> str:
        """Return the hash of the weights file."""
        return hash_weights(self.path, self.card)

    def generate(
        self,
        lines: Sequence[str],
        options: DecodingOptions,
        with_weights: bool = False,
        on_progress: OnProgress = no_progress,
        stop: StopCondition = NEVER,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each line, with the attention weights in any case; a blank line has none."""
        del with_weights
        results: list[list[Hypothesis]] = []
        try:
            for line in lines:
                ids = self.assets.source.encode(line_as_read(line, options)) if line.strip() else None
                results.append([] if ids is None else search(self.model, ids, options, stop))
                on_progress(1)
        except (DecodingTimeoutError, DecodingCancelledError) as error:
            filled = [bool(line.strip()) for line in lines]
            done = f"{sum(filled[: len(results)]):,} of {sum(filled):,} inputs were done"
            raise type(error)(f"{error}; {done}") from None
        return results


def load_numpy_predictor(folder: Path, options: DecodingOptions) -> NumpyPredictor | None:
    """Load a model for generation without torch; None if it, or the decoding options, need torch.

    None is also the answer for a folder with any defect: `load_predictor` names it.
    """
    try:
        card = read_card(folder)
        if card["format"] != FORMAT or card["task"] not in TASKS:
            return None
        check_files(folder, card)
        recipe = load_recipe(asset_file(folder, RECIPE)).recipe
        assets = TextAssets.load(folder)
        weights = _read_weights(folder, recipe, assets) if gru.supports(recipe.model) else None
    except (HeedfulError, OSError, SafetensorError, ValueError, TypeError, AttributeError):
        return None
    if weights is None or recipe.task.kind != card["task"] or not supports_options(recipe.decoding.override(options)):
        return None
    model, limits = NumpyGru(recipe.model, weights), inference_limits([recipe])
    return NumpyPredictor(folder.name, model, assets, recipe.decoding, recipe.task.kind, limits, card, folder)


def _read_weights(folder: Path, recipe: Recipe, assets: TextAssets) -> dict[str, Array] | None:
    """Return the weights in float32; None if they are not exactly those of the recipe, or not finite."""
    shapes = gru.weight_shapes(recipe.model, len(assets.source), len(assets.target))
    weights: dict[str, Array] = {}
    with safe_open(asset_file(folder, WEIGHTS), "np") as file:
        stored = set(file.keys())
        if len(stored) != len(shapes):
            return None
        for name, shape in shapes.items():
            there = next((alias for alias in gru.aliases(recipe.model, name) if alias in stored), None)
            if there is None or tuple(file.get_slice(there).get_shape()) != shape:
                return None
            weights[name] = np.ascontiguousarray(file.get_tensor(there), dtype=np.float32)
    is_valid = all(np.abs(weight).max(initial=0.0) <= MAX_WEIGHT for weight in weights.values())  # false for NaN
    return weights if is_valid else None
