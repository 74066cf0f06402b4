"""Whether our attention computes what the model's own does."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from heedful.attention import NO_HOOKS
from heedful.config import DecodingOptions
from heedful.data.tokenizer import START
from heedful.integrations.transformers.generation import generate
from heedful.integrations.transformers.inputs import Source, read_source
from heedful.integrations.transformers.loaded import LoadedTransformers
from heedful.integrations.transformers.seq2seq import Seq2SeqAdapter
from heedful.integrations.transformers.trace import trace_input
from heedful.tasks.base import TraceRequest


@torch.no_grad()
def describe_checks(loaded: LoadedTransformers, item: Any) -> dict[str, float]:
    """Return the largest differences on one input: of the logits from the model's own, and of what is recomputed."""
    source = read_source(loaded, item)
    own = _outputs(loaded, source)
    with loaded.model.record(NO_HOOKS):
        ours = _outputs(loaded, source)
    trace = trace_input(loaded, item, TraceRequest("", "full", with_counterfactuals=False), DecodingOptions())
    checks = trace.checks
    assert checks is not None
    found = {
        "logits": float((own - ours).abs().max()),
        "row_sum": checks.row_sum,
        "weights": checks.weights,
        "context": checks.context,
    }
    return {name: value for name, value in found.items() if value is not None}


def _outputs(loaded: LoadedTransformers, source: Source) -> Tensor:
    """Return the logits of a model, or its last hidden states, with the attention that is set."""
    model = loaded.model
    if isinstance(model, Seq2SeqAdapter):
        start = int(model.ids.table[START])
        ids = [start, *generate(model, source.tensors, DecodingOptions(), start=start).ids[0]]
        logits: Tensor = model.decode(*model.encode(source.batch(model)), torch.tensor([ids])).logits
        return logits
    output: Any = model.inner(**source.tensors)
    found: Tensor = output.logits if hasattr(output, "logits") else output.last_hidden_state
    return found
