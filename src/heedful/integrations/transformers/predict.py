"""Outputs of transformers models: generated texts, or a label."""

from __future__ import annotations

from typing import Any

import torch

from heedful.config import DecodingOptions
from heedful.decoding import NEVER, StopCondition
from heedful.errors import ModelError
from heedful.integrations.transformers.decoder import DecoderAdapter
from heedful.integrations.transformers.encoder import EncoderAdapter
from heedful.integrations.transformers.generation import generate
from heedful.integrations.transformers.inputs import read_source
from heedful.integrations.transformers.loaded import LoadedTransformers
from heedful.integrations.transformers.seq2seq import Seq2SeqAdapter


def answer(loaded: LoadedTransformers, item: Any, options: DecodingOptions, stop: StopCondition = NEVER) -> list[str]:
    """Return the outputs for an input, best first: texts, or one label; a blank text has a blank output."""
    if isinstance(item, str) and loaded.family.modality == "text" and not item.strip():
        return [""]
    source, model = read_source(loaded, item), loaded.model
    if isinstance(model, EncoderAdapter):
        if loaded.family.head != "classify":
            raise ModelError(f"{loaded.name} has no classification head; trace it to see its attention")
        with torch.no_grad():
            logits = model.inner(**source.tensors).logits
        return [loaded.labels[int(logits[0].argmax())]]
    start = int(model.ids.table[2]) if isinstance(model, Seq2SeqAdapter) else None
    rows = generate(model, source.tensors, options, start=start, stop=stop).ids
    prompt = list(source.ids) if isinstance(model, DecoderAdapter) else []
    return [loaded.text.decode([*prompt, *row]) for row in rows]
