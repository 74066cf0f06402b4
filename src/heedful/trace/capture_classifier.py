"""Capture of a classifier: one text and its label, as the parts of a trace with a single step."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch

from heedful.attention import Edit as EditHook
from heedful.data.batch import Padded
from heedful.data.labels import LabelBatch
from heedful.models import Classifier
from heedful.models.classifier import ClassifierOutput
from heedful.trace.capture import (
    FEATURES,
    SOURCE,
    CaptureOutput,
    SiteKeys,
    add_score_terms,
    capture_hooks,
    encoder_values,
    pack_site,
)
from heedful.trace.schema import SENTENCE_ENDS, PackedTensor, SideName, Site, SiteRecord, TraceDetail
from heedful.trace.steps import record_step
from heedful.trace.terms import output_terms

VALUES = "values"  # tensor: the encoder's values per position, where they are not its keys


@torch.inference_mode()
def capture_classifier(
    model: Classifier,
    source: Padded,
    labels: Sequence[str],
    detail: TraceDetail = "steps",
    edit: EditHook | None = None,
    label: int | None = None,
) -> tuple[int, CaptureOutput]:
    """Classify one text in double precision and record it; return the label's index and the record.

    `label` is recorded instead of the most likely one.
    """
    model = copy.deepcopy(model).double()
    output = model(LabelBatch(source), capture_hooks(detail, edit))
    encoded = output.encoder_output
    tensors: dict[str, PackedTensor] = {}
    intermediates: dict[str, str] = {}
    if model.hierarchical:
        tensors[SENTENCE_ENDS] = PackedTensor.pack(encoded.keep[0].numpy(), "S")
    if detail != "weights":
        tensors[SOURCE] = PackedTensor.pack(encoded.keys[0].numpy(), "S", "d")
        if encoded.values is not encoded.keys:
            tensors[VALUES] = PackedTensor.pack(encoded.values[0].numpy(), "S", "d")
        tensors[FEATURES] = PackedTensor.pack(output.features.numpy(), "T", "d")
        intermediates[FEATURES] = FEATURES
    sites = [_record_site(model, site, output, detail, tensors) for site in model.sites]
    logp = output.logits[0].log_softmax(dim=-1)
    chosen = int(logp.argmax()) if label is None else label
    step = record_step(logp, chosen, labels.__getitem__, forced=label is not None)
    if detail != "weights":
        tensors |= output_terms(model.output, output.features, [chosen], output.logits)
    return chosen, CaptureOutput([step], sites, tensors, intermediates)


def _record_site(
    model: Classifier, site: Site, output: ClassifierOutput, detail: TraceDetail, tensors: dict[str, PackedTensor]
) -> SiteRecord:
    attention, is_pooling = output.attentions[site.id], site.id == model.alignment_site
    sides: tuple[SideName, SideName] = ("target", "source") if is_pooling else ("source", "source")
    keys = None
    if detail == "full" or (detail == "steps" and is_pooling):
        if is_pooling:
            assert output.pooling_query is not None
            memory = output.pooling_query.memory
            keys = SiteKeys(memory.values, memory.keep[0])
            add_score_terms(model, site, attention, memory, tensors)
        else:
            keep = output.encoder_output.tapes[site.id].keep if site.kind == "pool" else output.encoder_output.keep
            keys = SiteKeys(encoder_values(model.encoder, site, attention, output.encoder_output), keep[0])
    record = pack_site(site, attention, sides, tensors, keys)
    inner = [other.id for other in model.sites if other.kind == "pool" and other.id != model.alignment_site]
    return record.model_copy(update={"keys_from": inner[0]}) if is_pooling and inner else record
