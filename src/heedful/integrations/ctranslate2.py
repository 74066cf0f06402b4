"""Export Transformers to CTranslate2, and check that it generates the same greedy outputs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tokenizers
import torch
from torch import nn

from heedful.config import DecodingOptions
from heedful.data.batch import TextBatch, pad
from heedful.data.tokenizer import END, PAD, SPECIALS, START, UNK, Tokenizer
from heedful.decoding import search
from heedful.errors import ModelError
from heedful.integrations.extras import require
from heedful.integrations.new_folder import new_folder
from heedful.layers.transformer import DecoderLayer, EncoderLayer, TransformerDecoder, TransformerEncoder
from heedful.models import Seq2Seq
from heedful.tasks.base import LoadedModel

POSITIONS = 1_024  # rows of the table of sinusoids that is written
CHECK_ROWS, CHECK_LENGTH, MAX_LENGTH = 20, 12, 40  # random inputs that are compared after an export


class ExportReport(NamedTuple):
    """Size, speed and agreement of an exported model."""

    megabytes: float
    same: int  # of the compared inputs, how many have the same greedy output
    compared: int
    seconds: float  # of the exported model, one thread
    own_seconds: float

    def __str__(self) -> str:
        return (
            f"{self.megabytes:.1f} MB; {self.same} of {self.compared} greedy outputs are the same;"
            f" {self.seconds:.2f} s for them, heedful {self.own_seconds:.2f} s (one thread, one at a time)"
        )


def export_ctranslate2(loaded: LoadedModel[Any, Any], folder: Path, lines: Sequence[str] = ()) -> ExportReport:
    """Write a translator as a CTranslate2 model, compare greedy outputs on `lines` (default: random inputs)."""
    ct2 = require("ctranslate2", "ctranslate2", "the export to CTranslate2")
    model: Any = loaded.model
    _check(loaded.name, model)
    spec = _make_spec(ct2, model)
    vocabularies = [_vocabulary(side) for side in (loaded.assets.source, loaded.assets.target)]
    spec.register_source_vocabulary(vocabularies[0])
    spec.register_target_vocabulary(vocabularies[1])
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = (SPECIALS[i] for i in (UNK, START, END))
    spec.config.decoder_start_token = SPECIALS[model.start_token]
    spec.config.add_source_eos = False  # our tokenizers write it
    spec.config.layer_norm_epsilon = model.config.encoder.norm_epsilon
    spec.validate()
    with new_folder(folder) as draft:
        spec.save(str(draft))
        loaded.assets.save(draft)
        return _compare(ct2, loaded, draft, vocabularies, lines)


def _check(name: str, model: Any) -> None:
    """Raise ModelError for what CTranslate2 cannot compute."""
    if not isinstance(model, Seq2Seq) or not isinstance(model.encoder, TransformerEncoder):
        raise ModelError(f"{name}: only Transformers can be exported to CTranslate2")
    if not isinstance(model.decoder, TransformerDecoder) or model.copying is not None:
        raise ModelError(f"{name}: only Transformers without copying can be exported to CTranslate2")
    config = model.config
    if config.encoder.norm != config.decoder.norm or config.encoder.norm_epsilon != config.decoder.norm_epsilon:
        raise ModelError(f"{name}: encoder and decoder have different layer norms, which CTranslate2 cannot compute")
    projections = (model.encoder.input_projection, model.decoder.input_projection, model.decoder.output_projection)
    if not all(isinstance(part, nn.Identity) for part in projections) or not config.encoder.read_end:
        raise ModelError(f"{name}: embeddings of another width than the layers cannot be exported to CTranslate2")


def _make_spec(ct2: Any, model: Any) -> Any:
    config = model.config
    layers = len(model.encoder.layers), len(model.decoder.layers)
    heads = {config.encoder.heads, config.decoder.heads}
    if len(heads) > 1:
        raise ModelError("encoder and decoder have different numbers of heads, which CTranslate2 cannot compute")
    pre_norm = config.encoder.norm == "pre"
    spec = ct2.specs.TransformerSpec.from_config(layers, heads.pop(), pre_norm=pre_norm)
    for part, stack, embedding in (
        (spec.encoder, model.encoder, model.embedding),
        (spec.decoder, model.decoder, model.decoder.embedding),
    ):
        embeddings = part.embeddings[0] if isinstance(part.embeddings, list) else part.embeddings
        embeddings.weight = _numbers(embedding.weight)
        part.scale_embeddings = True
        part.position_encodings.encodings = _numbers(stack.positions.first(POSITIONS))
        if pre_norm:
            _norm(part.layer_norm, stack.final_norm)
        for layer_spec, layer in zip(part.layer, stack.layers, strict=True):
            _layer(layer_spec, layer)
    _linear(spec.decoder.projection, [model.decoder.output])
    return spec


def _layer(spec: Any, layer: EncoderLayer) -> None:
    """Set the weights of a layer."""
    heads: Any = layer.self_attention.heads
    _linear(spec.self_attention.linear[0], [heads.to_query, heads.to_key, heads.to_value])
    _linear(spec.self_attention.linear[1], [heads.out])
    _norm(spec.self_attention.layer_norm, layer.self_residual.norm)
    if isinstance(layer, DecoderLayer):
        cross: Any = layer.cross_attention.heads
        _linear(spec.attention.linear[0], [cross.to_query])
        _linear(spec.attention.linear[1], [cross.to_key, cross.to_value])
        _linear(spec.attention.linear[2], [cross.out])
        _norm(spec.attention.layer_norm, layer.cross_residual.norm)
    _linear(spec.ffn.linear_0, [layer.feed_forward[0]])
    _linear(spec.ffn.linear_1, [layer.feed_forward[3]])
    _norm(spec.ffn.layer_norm, layer.feed_forward_residual.norm)


def _linear(spec: Any, layers: Sequence[Any]) -> None:
    """Set the weights of a linear layer, or of several that are computed at once."""
    spec.weight = np.concatenate([_numbers(layer.weight) for layer in layers])
    if layers[0].bias is not None:
        spec.bias = np.concatenate([_numbers(layer.bias) for layer in layers])


def _norm(spec: Any, norm: Any) -> None:
    spec.gamma, spec.beta = _numbers(norm.weight), _numbers(norm.bias)


def _numbers(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().float().contiguous().numpy()


def _vocabulary(tokenizer: Tokenizer) -> list[str]:
    """Return the tokens by id as the tokenizer's file has them; the special ones by their names."""
    inner = tokenizers.Tokenizer.from_str(tokenizer.to_json())
    return [*SPECIALS, *(str(inner.id_to_token(i)) for i in range(len(SPECIALS), len(tokenizer)))]


def _compare(
    ct2: Any, loaded: LoadedModel[Any, Any], folder: Path, vocabularies: Sequence[list[str]], lines: Sequence[str]
) -> ExportReport:
    """Generate greedily with both models, one input at a time."""
    if lines:
        ids = loaded.assets.source.encode_all(lines)
    else:
        random = loaded.assets.random_source(CHECK_ROWS, CHECK_LENGTH, torch.Generator().manual_seed(1))
        ids = [[*row, END] for row in random.ids.tolist()]
    translator = ct2.Translator(str(folder), device="cpu", inter_threads=1, intra_threads=1)
    source, target = vocabularies
    options = DecodingOptions(max_length=MAX_LENGTH)
    banned = [[SPECIALS[PAD]], [SPECIALS[START]]]
    same, seconds, own_seconds = 0, 0.0, 0.0
    for row in ids:
        start = time.perf_counter()
        ours = search(loaded.model, TextBatch(pad([row])), options).hypotheses[0][0].tokens
        middle = time.perf_counter()
        found = translator.translate_batch(
            [[source[i] for i in row]],
            beam_size=1,
            min_decoding_length=0,
            max_decoding_length=MAX_LENGTH,
            suppress_sequences=banned,
        )
        seconds, own_seconds = seconds + time.perf_counter() - middle, own_seconds + middle - start
        same += found[0].hypotheses[0] == [target[i] for i in ours if i != END]
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    return ExportReport(size, same, len(ids), seconds, own_seconds)
