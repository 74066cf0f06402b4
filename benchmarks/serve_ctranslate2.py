"""A server that computes with CTranslate2 behind heedful's shell, for `benchmarks/serve.py`.

Routes, checks, limits, queue and threads are those of `heedful serve`; every input is computed by itself. The model is
a Transformer with random weights and the vocabulary of en-fr, which never ends an output by itself, so that both
servers generate the same number of tokens.
"""

from __future__ import annotations

import argparse
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import ctranslate2
import torch

from heedful.config import DecodingOptions, Recipe
from heedful.config.presets import ENCODER_DECODERS
from heedful.data.tokenizer import END, PAD, SPECIALS, START
from heedful.integrations.ctranslate2 import export_ctranslate2
from heedful.models import build_seq2seq
from heedful.parallel import available_cpus
from heedful.serve import model_store
from heedful.serve.run import run
from heedful.serve.servables import GeneratingServable, Item, Servable, check_lines
from heedful.serve.settings import Limits, ServeSettings
from heedful.tasks.api import Model
from heedful.tasks.bundled import bundled_models
from heedful.tasks.model_folder import load_model, save_model

WIDTH, LAYERS, HEADS, FEEDFORWARD = 256, 3, 4, 1_024
NEVER = -1e4  # logit


def make_transformer(folder: Path) -> None:
    """Save a Transformer with random weights."""
    assets = load_model(bundled_models()["en-fr"]).assets
    preset = ENCODER_DECODERS["transformer"]
    sizes = {"layers": LAYERS, "hidden": WIDTH, "heads": HEADS, "feedforward": FEEDFORWARD}
    sides = {side: preset[side] | sizes for side in ("encoder", "decoder")}
    model = {**preset, **sides, "preset": "transformer", "embedding": WIDTH}
    recipe = Recipe.model_validate({"data": {"train": ["none"], "valid": ["none"]}, "model": model})
    torch.manual_seed(1)
    built = build_seq2seq(recipe.model, len(assets.source), len(assets.target))
    with torch.no_grad():
        built.decoder.output.bias[END] = NEVER
    save_model(folder, recipe, assets, built.eval(), {})


class CTranslate2Servable(GeneratingServable):
    """The exported model, which computes one input per call in each thread of the server."""

    def __init__(self, name: str, model: Model, folder: Path, int8: bool) -> None:
        super().__init__(name, model)
        self.assets, self.max_source = model.loaded.assets, model.recipe.data.max_source
        self.translator = ctranslate2.Translator(
            str(folder), compute_type="int8" if int8 else "float32", inter_threads=available_cpus(), intra_threads=1
        )
        self.ids = {text: number for number, text in enumerate(self.assets.target.vocabulary())}
        self.names = self.assets.source.vocabulary()

    def prepare(self, inputs: Sequence[Any], limits: Limits) -> list[Item]:
        return check_lines(self.name, inputs, lambda line: len(self.assets.source.encode(line)) - 1, limits.tokens)

    def run(self, payloads: Sequence[Any], options: Hashable, alignments: bool, stop: Any) -> list[dict[str, Any]]:
        assert isinstance(options, DecodingOptions)
        records = []
        for line in payloads:
            (result,) = self.translator.translate_batch(
                [[self.names[token] for token in self.assets.source.encode(line)]],
                beam_size=options.beam,
                max_decoding_length=options.max_length,
                return_scores=True,
                suppress_sequences=[[SPECIALS[PAD]], [SPECIALS[START]]],
            )
            text = self.assets.target.decode([self.ids[token] for token in result.hypotheses[0]])
            outputs = [{"text": text, "score": result.scores[0]}]
            records.append({"text": text, "outputs": outputs, "confidence": None, "unlike_training": None})
        return records


def main() -> None:
    """Make the model and its export, or serve the export."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("export", type=Path)
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--int8", action="store_true")
    options = parser.parse_args()
    if options.make:
        make_transformer(options.model)
        print(export_ctranslate2(load_model(options.model), options.export))
        return

    def make(name: str, model: Model, int8: bool) -> Servable:
        return CTranslate2Servable(name, model, options.export, int8)

    model_store.make_servable = make  # type: ignore[assignment]
    run(ServeSettings(models={"transformer": str(options.model)}, port=0, int8=options.int8))


if __name__ == "__main__":
    main()
