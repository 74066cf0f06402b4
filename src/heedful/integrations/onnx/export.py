"""Write a model as a folder of ONNX graphs whose outputs contain all attention weights."""

from __future__ import annotations

import copy
import json
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from heedful.config import ModelConfig
from heedful.data.tokenizer import END, PAD, SPECIALS
from heedful.errors import ModelError
from heedful.integrations.new_folder import new_folder
from heedful.integrations.onnx.compare import OnnxReport, compare
from heedful.integrations.onnx.graphs import (
    MEMORY,
    POSITION,
    STATE,
    TOKEN,
    ClassifierGraph,
    DecoderGraph,
    EncoderGraph,
    Tensors,
    make_batch,
    needs_position,
)
from heedful.integrations.onnx.recurrent import replace_recurrent
from heedful.layers.embedding import MAX_ROWS
from heedful.layers.transformer import TransformerDecoder, TransformerEncoder
from heedful.models import Classifier, Seq2Seq
from heedful.tasks.base import LoadedModel

MANIFEST, FORMAT = "onnx.json", 1
BATCH, SOURCE, PAST = "batch", "source", "past"  # names of the dynamic axes
WITH_POSITIONS = (TransformerEncoder, TransformerDecoder)
ENCODERS = ("rnn", "gru", "lstm", "transformer", "regions")
DECODERS = ("rnn", "gru", "lstm", "transformer")
ROWS, LENGTH, EARLIER = 2, 5, 3  # sizes of the example that is traced; exported graphs take any others


def export_onnx(loaded: LoadedModel[Any, Any], folder: Path, lines: Sequence[str] = ()) -> OnnxReport:
    """Write a translator, captioner or classifier; compare outputs and weights on `lines` (default: random inputs)."""
    check_exportable(loaded.name, loaded.model)
    if lines and loaded.model.config.encoder.kind == "regions":
        raise ModelError(f"{loaded.name}: a captioner is compared on random features of images, not on lines")
    model = copy.deepcopy(loaded.model).float().cpu().eval().requires_grad_(False)
    replace_recurrent(model)
    with new_folder(folder) as draft:
        with quiet_exporter():
            graphs = _export_graphs(loaded, model, draft)
        (draft / MANIFEST).write_text(json.dumps(_manifest(loaded, graphs), indent=1) + "\n", encoding="utf-8")
        loaded.assets.save(draft)
        try:
            return compare(loaded, draft, lines)
        except Exception as error:  # onnxruntime's errors have no class of their own
            if not type(error).__module__.startswith("onnxruntime"):
                raise
            raise ModelError(f"{loaded.name}: onnxruntime cannot run this model: {_reason(error)}") from error


def check_exportable(name: str, model: Any) -> None:
    """Raise ModelError for models whose computation torch's exporter cannot follow, or that no graph can describe."""
    if not isinstance(model, Seq2Seq | Classifier):
        raise ModelError(f"{name}: only translators, captioners and classifiers can be exported to ONNX")
    config: ModelConfig = model.config
    kinds: list[tuple[str, str, Sequence[str]]] = [("encoder", config.encoder.kind, ENCODERS)]
    if isinstance(model, Seq2Seq):
        kinds.append(("decoder", config.decoder.kind, DECODERS))
    for part, kind, known in kinds:
        if kind not in known:
            raise ModelError(f"{name}: an {part} of kind {kind} cannot be exported to ONNX; {', '.join(known)} can")
    if config.classifier is not None and config.classifier.sentences:
        raise ModelError(f"{name}: a classifier of sentences of words cannot be exported to ONNX")
    attention = config.attention
    if attention.placement == "hard" and attention.hard_inference == "sample":
        raise ModelError(f"{name}: attention that is sampled cannot be exported to ONNX")
    if attention.score == "location":
        raise ModelError(f"{name}: location scores, which limit the length, cannot be exported to ONNX")


@contextmanager
def quiet_exporter() -> Iterator[None]:
    """Keep torch's exporter from printing advice for the authors of models."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _export_graphs(loaded: LoadedModel[Any, Any], model: Any, folder: Path) -> dict[str, str]:
    """Write the graphs; return their files by name."""
    source = _example_source(loaded)
    graph = ClassifierGraph if isinstance(model, Classifier) else EncoderGraph
    name = "model" if isinstance(model, Classifier) else "encoder"
    with torch.no_grad():
        outputs = graph(loaded.model)(source)  # names and sizes; the copy cannot be run
    _export(loaded.name, graph(model), {"source": source}, list(outputs), folder / f"{name}.onnx")
    if isinstance(model, Classifier):
        return {"model": "model.onnx"}
    tensors = {name: t for name, t in outputs.items() if name.startswith((MEMORY, STATE))}
    for name, tensor in tensors.items():
        if PAST in _axes(name):  # the cache of earlier tokens, which is empty before the first step
            tensors[name] = tensor.new_zeros(len(tensor), EARLIER, *tensor.shape[2:])
    tensors = {TOKEN: torch.full((ROWS,), END), **tensors}
    if needs_position(model):
        tensors[POSITION] = torch.tensor(EARLIER)
    with torch.no_grad():
        template, _ = loaded.model.initial_state(make_batch(source))
        step = DecoderGraph(model, template)
        names = list(step(tensors))
    _export(loaded.name, step, {"tensors": tensors}, names, folder / "decoder.onnx")
    return {"encoder": "encoder.onnx", "decoder": "decoder.onnx"}


def _example_source(loaded: LoadedModel[Any, Any]) -> Tensor:
    config: ModelConfig = loaded.model.config
    if config.encoder.kind == "regions":
        features: Tensor = loaded.assets.random_source(ROWS, LENGTH, torch.Generator().manual_seed(1)).vectors
        return features
    source = torch.full((ROWS, LENGTH), len(SPECIALS) - 1)
    source[1, -1] = PAD
    return source


def _export(name: str, graph: nn.Module, inputs: Mapping[str, Any], outputs: list[str], path: Path) -> None:
    """Export one graph with names for its tensors and symbols for its axes."""
    flat: Tensors = inputs.get("tensors", inputs)
    shapes: Any = {key: _dynamic_axes(key, tensor) for key, tensor in flat.items()}
    with torch.enable_grad():  # C kernels have no gradients, so the plain code is traced
        try:
            program = torch.onnx.export(
                graph.eval(),
                kwargs=dict(inputs),
                input_names=list(flat),
                output_names=outputs,
                dynamic_shapes={"tensors": shapes} if "tensors" in inputs else shapes,
                dynamo=True,
                verbose=False,
            )
        except torch.onnx.errors.OnnxExporterError as error:
            raise ModelError(f"{name}: torch cannot export this model: {_reason(error)}") from error
    assert program is not None
    program.save(path)


def _dynamic_axes(name: str, tensor: Tensor) -> dict[int, str]:
    return {axis: symbol for axis, symbol in enumerate(_axes(name)[: tensor.ndim]) if symbol}


def _axes(name: str) -> tuple[str, ...]:
    """Return the names of the dynamic axes of an input; "" for one that is fixed."""
    if name == POSITION:
        return ()
    if name.startswith(MEMORY) or name == "source":
        return BATCH, SOURCE
    if name.startswith(STATE) and name.endswith((".keys", ".values")):
        return BATCH, PAST
    if name.endswith(".coverage"):
        return BATCH, "", "", SOURCE
    return (BATCH,)


def _manifest(loaded: LoadedModel[Any, Any], graphs: Mapping[str, str]) -> dict[str, Any]:
    """Return what a program needs to know of the folder."""
    model = loaded.model
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "task": loaded.recipe.task.kind,
        "name": loaded.name,
        "graphs": dict(graphs),
    }
    if isinstance(model, Classifier):
        manifest["labels"] = list(loaded.assets.labels.names)
    else:
        manifest |= {"start": model.start_token, "end": END}
    stacks = {"source": model.encoder, "target": getattr(model, "decoder", None)}
    tables = {side: stack.positions for side, stack in stacks.items() if isinstance(stack, WITH_POSITIONS)}
    manifest["max_length"] = {
        side: table.max_positions if table.kind == "learned" else min(table.max_positions, MAX_ROWS)
        for side, table in tables.items()
    }
    manifest["sites"] = [{"id": s.id, "kind": s.kind, "heads": s.heads} for s in model.sites]
    manifest["alignment_site"] = model.alignment_site
    return manifest


def _reason(error: BaseException) -> str:
    cause = error.__cause__ or error
    return next((line.strip() for line in str(cause).splitlines() if line.strip()), type(cause).__name__)
