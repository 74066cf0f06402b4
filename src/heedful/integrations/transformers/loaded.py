"""A transformers model with its processors, ready to be traced and measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.errors import DataError, ModelError
from heedful.integrations.transformers.decoder import DecoderAdapter
from heedful.integrations.transformers.encoder import EncoderAdapter
from heedful.integrations.transformers.family import Family, Kind, Modality, find_family
from heedful.integrations.transformers.seq2seq import Seq2SeqAdapter
from heedful.integrations.transformers.texts import TextTokenizer
from heedful.integrations.transformers.vocabulary import IdMap
from heedful.trace.schema import ModelInfo

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from heedful.tasks.base import Task

Adapter = Seq2SeqAdapter | EncoderAdapter | DecoderAdapter
TASKS: Mapping[tuple[Kind, Modality], str] = {  # what traces say
    ("seq2seq", "text"): "translate",
    ("seq2seq", "image"): "caption",
    ("seq2seq", "audio"): "transcribe",
    ("decoder", "text"): "read",
}
PATHS = ("max_position_embeddings", "n_positions", "max_source_positions")
RESERVED_POSITIONS = ("roberta", "xlm-roberta", "camembert", "longformer")  # positions start after the padding index


@dataclass(frozen=True)
class LoadedTransformers:
    """A model, the processors that belong to it."""

    name: str
    model: Adapter
    task: Task
    tokenizer: TextTokenizer | None = None
    images: Any = None  # an image processor
    sounds: Any = None  # a feature extractor
    path: Path | None = None

    @property
    def family(self) -> Family:
        """The kind of the model."""
        return self.model.family

    @property
    def task_name(self) -> str:
        """What the model does, as traces say: "translate", "classify", ..."""
        return TASKS.get((self.family.kind, self.family.modality), "classify")

    @property
    def text(self) -> TextTokenizer:
        """The tokenizer."""
        if self.tokenizer is None:
            raise ModelError(f"{self.name}: its tokenizer is missing; pass a tokenizer or a processor")
        return self.tokenizer

    @property
    def labels(self) -> list[str]:
        """The names of the classes of a classifier."""
        by_id: Any = self.model.inner.config.id2label
        return [str(by_id[i]) for i in sorted(by_id)]

    def label_index(self, name: str) -> int:
        """Return the index of a label."""
        if name not in self.labels:
            raise DataError(f'"{name}": {self.name} has no such label; known: {", ".join(self.labels[:20])}')
        return self.labels.index(name)

    def describe(self) -> ModelInfo:
        """Return the model's entry in a trace."""
        attention = {"score": "scaled-dot", "heads": self.model.sites[-1].heads, "read_end": True}
        stacks: dict[str, Any] = {"encoder": {"kind": "transformer"}, "decoder": {"kind": "transformer"}}
        return ModelInfo(
            name=self.name,
            task=self.task_name,
            settings={**stacks, "attention": attention, "architecture": type(self.model.inner).__name__},
            parameters=sum(weight.numel() for weight in self.model.inner.parameters()),
        )


def wrap(
    model: PreTrainedModel,
    processor: Any,
    task: Task,
    *,
    name: str | None = None,
    alignment_site: str | None = None,
    path: Path | None = None,
) -> LoadedTransformers:
    """Return a loaded model; `processor` is a tokenizer, an image processor, or one of several parts."""
    family = find_family(model)
    tokenizer, images, sounds = _parts(processor)
    text = None if tokenizer is None else TextTokenizer(tokenizer, _max_length(model, family))
    adapter: Adapter
    if family.kind == "seq2seq":
        adapter = Seq2SeqAdapter(model, family, _id_map(model, tokenizer), alignment_site)
    elif family.kind == "encoder":
        adapter = EncoderAdapter(model, family, alignment_site)
    else:
        adapter = DecoderAdapter(model, family, alignment_site)
    title = name or getattr(model.config, "_name_or_path", "") or type(model).__name__
    return LoadedTransformers(Path(title).name or title, adapter, task, text, images, sounds, path=path)


def _parts(processor: Any) -> tuple[Any, Any, Any]:
    """Return the tokenizer, the image processor and the feature extractor of what the user passed."""
    if processor is None:
        return None, None, None
    if isinstance(processor, tuple | list):
        parts = [_parts(part) for part in processor]
        tokenizer, images, sounds = (next((p[i] for p in parts if p[i] is not None), None) for i in range(3))
        return tokenizer, images, sounds
    if hasattr(processor, "convert_ids_to_tokens"):
        return processor, None, None
    found = [getattr(processor, name, None) for name in ("tokenizer", "image_processor", "feature_extractor")]
    if any(part is not None for part in found):
        return found[0], found[1], found[2]
    name = type(processor).__name__
    if "ImageProcessor" in name:
        return None, processor, None
    if "FeatureExtractor" in name:
        return None, None, processor
    raise ModelError(f"expected a tokenizer or a processor of transformers, got {name}")


def _max_length(model: PreTrainedModel, family: Family) -> int | None:
    """Return how many tokens the model has positions for; None without a limit."""
    if family.modality != "text":
        return None
    config = model.config.get_text_config()
    limits = [value for name in PATHS if isinstance(value := getattr(config, name, None), int)]
    reserved = 2 if config.model_type in RESERVED_POSITIONS else 0
    return min(limits) - reserved if limits else None


def _id_map(model: PreTrainedModel, tokenizer: Any) -> IdMap:
    generation, config = model.generation_config, model.config.get_text_config(decoder=True)

    def find(name: str) -> int | None:
        for owner in (generation, model.config, config):
            value = getattr(owner, name, None)
            if value is not None:
                return int(value[0] if isinstance(value, list) else value)
        return None

    start = find("decoder_start_token_id")
    start = find("bos_token_id") if start is None else start
    if start is None:
        raise ModelError(f"{type(model).__name__}: its config names no decoder_start_token_id")
    unk = getattr(tokenizer, "unk_token_id", None)
    end = find("sep_token_id" if model.config.model_type == "blip" else "eos_token_id")
    output: Any = model.get_output_embeddings()  # type: ignore[no-untyped-call]
    size = config.vocab_size if output is None else output.weight.shape[0]
    pad = find("pad_token_id")
    for token, id in {"pad": pad, "unknown": unk, "start": start, "end": end}.items():
        if id is not None and id >= size:
            raise ModelError(f"{type(model).__name__}: the {token} token is {id:,}, but it has {size:,} tokens")
    return IdMap(size, pad=pad, unk=None if unk in (end, start) else unk, start=start, end=end)
