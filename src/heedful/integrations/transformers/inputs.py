"""Inputs of a model: what goes into it, and how a trace shows it."""

from __future__ import annotations

import math
import wave
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from heedful.data.batch import TextBatch, pad
from heedful.data.images.files import image_source
from heedful.errors import DataError, ModelError
from heedful.integrations.transformers.loaded import LoadedTransformers
from heedful.integrations.transformers.seq2seq import ModelInputs, Seq2SeqAdapter
from heedful.trace.schema import Side, Token
from heedful.viz.image import pack_image

RATE = 16_000  # samples per second that speech models want
FRAME_SECONDS = 0.02  # of one position of Whisper's encoder


class Source(NamedTuple):
    """An input: the arguments of the model, its side of the trace, and the positions that the trace shows."""

    tensors: Mapping[str, Tensor]
    side: Side
    shown: slice | None = None  # None: all
    ids: Sequence[int] = ()  # of a text, the model's own

    def batch(self, model: Seq2SeqAdapter) -> TextBatch:
        """Return the input as a batch of one sentence in our numbers."""
        if self.ids:
            return TextBatch(pad([model.ids.to_ours(self.ids)]))
        with torch.no_grad():
            length = model.encode(TextBatch(ModelInputs(self.tensors, torch.ones(1, 1))))[0].shape[1]  # type: ignore[arg-type]
        return TextBatch(ModelInputs(self.tensors, torch.ones(1, length, dtype=torch.bool)))  # type: ignore[arg-type]


def read_source(loaded: LoadedTransformers, item: Any) -> Source:
    """Return the input that a user gave: a text, an image or a sound, each as a file or an object."""
    modality = loaded.family.modality
    if modality == "image":
        return _read_image(loaded, item)
    if modality == "audio":
        return _read_sound(loaded, item)
    if not isinstance(item, str):
        raise DataError(f"inputs: expected text, got {type(item).__name__}")
    if not item.strip():
        raise DataError("there is nothing to trace in an empty text")
    return text_source(loaded, item)


def text_source(loaded: LoadedTransformers, text: str) -> Source:
    """Return a text as input."""
    ids = loaded.text.encode(text)
    if not ids:
        raise DataError("the text has no tokens")
    tensors = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
    return Source(tensors, loaded.text.input_side(text, ids), ids=ids)


def _read_image(loaded: LoadedTransformers, item: Any) -> Source:
    if loaded.images is None:
        raise ModelError(f"{loaded.name}: its image processor is missing; pass a processor")
    source = image_source(Path(item) if isinstance(item, str) else item)
    image = source.open()
    pixels = loaded.images(images=image, return_tensors="pt")["pixel_values"]
    grid = _patch_grid(loaded, pixels)
    photo = pack_image(image.resize((pixels.shape[3], pixels.shape[2])), grid)
    names = [f"r{row + 1}c{column + 1}" for row in range(grid[0]) for column in range(grid[1])]
    tokens = [Token(text=text, word=index) for index, text in enumerate(names)]
    side = Side(text=getattr(source, "name", "image"), tokens=tokens, words=names, image=photo)
    before = _positions(loaded, pixels) - len(names)  # [CLS], and in some models one more
    return Source({"pixel_values": pixels}, side, slice(before, None))


def _patch_grid(loaded: LoadedTransformers, pixels: Tensor) -> tuple[int, int]:
    """Return the rows and columns of the patches of an image."""
    config: Any = loaded.model.inner.config
    for name in ("encoder", "vision_config"):
        config = getattr(config, name, config)
    patch = getattr(config, "patch_size", None)
    if patch is None:
        raise ModelError(f"{loaded.name}: its config has no patch_size, so its positions are no patches of a grid")
    height, width = patch if isinstance(patch, tuple | list) else (patch, patch)
    return pixels.shape[2] // height, pixels.shape[3] // width


def _positions(loaded: LoadedTransformers, pixels: Tensor) -> int:
    """Return the number of positions of the encoder for an image."""
    stacks = loaded.family.stacks
    encoder: Any = stacks.encoder if loaded.family.kind == "seq2seq" else loaded.model.inner.base_model
    with torch.no_grad():
        return int(encoder(pixel_values=pixels).last_hidden_state.shape[1])


def _read_sound(loaded: LoadedTransformers, item: Any) -> Source:
    if loaded.sounds is None:
        raise ModelError(f"{loaded.name}: its feature extractor is missing; pass a processor")
    name, samples = _samples(item)
    extracted = loaded.sounds(samples, sampling_rate=RATE, return_tensors="pt")
    config: Any = loaded.model.inner.config
    total = int(getattr(config, "max_source_positions", 0)) or math.inf
    frames = int(min(total, max(1, math.ceil(len(samples) / RATE / FRAME_SECONDS))))
    names = [f"{frame * FRAME_SECONDS:.2f}s" for frame in range(frames)]
    tokens = [Token(text=text, word=index) for index, text in enumerate(names)]
    side = Side(text=name, tokens=tokens, words=names)
    return Source({"input_features": extracted["input_features"]}, side, slice(0, frames))


def _samples(item: Any) -> tuple[str, np.ndarray]:
    """Return the name and the samples of a sound at 16 kHz, from a WAV file or an array."""
    if isinstance(item, str | Path):
        try:
            with wave.open(str(item), "rb") as file:
                rate, width, channels = file.getframerate(), file.getsampwidth(), file.getnchannels()
                raw = file.readframes(file.getnframes())
        except (OSError, EOFError, wave.Error) as error:
            raise DataError(f"{item}: not a WAV file that can be read: {error}") from None
        if rate != RATE or width != 2:
            raise DataError(f"{item}: {rate:,} Hz, {8 * width} bits; expected a WAV file of {RATE:,} Hz and 16 bits")
        array = np.frombuffer(raw, dtype="<i2").reshape(-1, channels).mean(axis=1) / 32768
        return Path(item).name, array.astype(np.float32)
    array = np.asarray(item, dtype=np.float32)
    if array.ndim != 1 or not len(array) or not np.isfinite(array).all():
        raise DataError(f"inputs: expected the samples of a sound at {RATE:,} Hz, an array with one axis")
    return "sound", array
