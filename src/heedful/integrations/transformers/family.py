"""What a transformers model is to us: an encoder-decoder, a decoder or an encoder, over text, images or sound."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from torch import nn
from transformers import PreTrainedModel

from heedful.errors import ModelError
from heedful.integrations.transformers.sites import Stacks

Kind = Literal["seq2seq", "decoder", "encoder"]
Modality = Literal["text", "image", "audio"]
Head = Literal["none", "classify", "fill-mask", "tag"]
MODALITIES: dict[str, Modality] = {
    "input_ids": "text",
    "pixel_values": "image",
    "input_features": "audio",
    "input_values": "audio",
}
HEADS: tuple[tuple[str, Head], ...] = (
    ("ForSequenceClassification", "classify"),
    ("ForImageClassification", "classify"),
    ("ForMaskedLM", "fill-mask"),
    ("ForTokenClassification", "tag"),
)
OTHER_HEADS = ("ForQuestionAnswering", "ForMultipleChoice", "ForObjectDetection", "ForCTC", "ForPreTraining")


class Family(NamedTuple):
    """The kind of a model, what it reads, its head, and its parts."""

    kind: Kind
    modality: Modality
    head: Head
    stacks: Stacks


def find_family(model: PreTrainedModel) -> Family:
    """Return what a model is; raise ModelError for models that are none of ours."""
    if not isinstance(model, PreTrainedModel):
        raise ModelError(f"expected a model of transformers, got {type(model).__name__}")
    name = type(model).__name__
    modality = MODALITIES.get(model.main_input_name)
    if modality is None or any(name.endswith(other) for other in OTHER_HEADS):
        raise ModelError(f"{name}: models of this kind are not supported; load it without its head, as AutoModel does")
    if name == "BlipForConditionalGeneration":
        return Family("seq2seq", "image", "none", Stacks(_part(model, "vision_model"), _part(model, "text_decoder")))
    if model.config.is_encoder_decoder or name == "VisionEncoderDecoderModel":
        if not model.can_generate():
            raise ModelError(f"{name}: it generates no text; load it with its head, as AutoModelForSeq2SeqLM does")
        return Family("seq2seq", modality, "none", Stacks(model.get_encoder(), _decoder(model)))
    if model.can_generate() and not _is_bidirectional(model):
        return Family("decoder", modality, "none", Stacks(None, model))
    head: Head = next((head for ending, head in HEADS if name.endswith(ending)), "none")
    return Family("encoder", modality, head, Stacks(model, None))


def _part(model: PreTrainedModel, name: str) -> nn.Module:
    part: nn.Module = getattr(model, name)
    return part


def _decoder(model: Any) -> nn.Module:
    decoder = model.get_decoder()
    return decoder if isinstance(decoder, nn.Module) else model


def _is_bidirectional(model: PreTrainedModel) -> bool:
    """Return whether a model reads both sides of a token; BERT's masked language model says that it can generate."""
    return type(model).__name__.endswith("ForMaskedLM")
