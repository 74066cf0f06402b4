"""Captioners in Python."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from heedful.arguments import as_list, is_several, python_errors
from heedful.config import DecodingOptions
from heedful.data.images.backbone import Backbone
from heedful.data.images.files import ImageSource, image_source
from heedful.tasks.api import Model
from heedful.tasks.base import TraceRequest
from heedful.tasks.caption.predict import caption_records, load_backbone, open_pixels
from heedful.tasks.caption.trace import trace_image
from heedful.tasks.generation_result import Generation, UnlikeNotes
from heedful.trace.schema import Trace

if TYPE_CHECKING:
    from PIL.Image import Image

    AnyImage = str | Path | bytes | Image | npt.NDArray[np.generic]


class Captioner(Model):
    """An image captioner. An image is a path, an image of Pillow, a NumPy array, or the bytes of a file."""

    @cached_property
    def _backbone(self) -> Backbone:
        return load_backbone(self.loaded)

    @overload
    def __call__(self, inputs: AnyImage, **options: Any) -> str: ...
    @overload
    def __call__(self, inputs: Sequence[AnyImage], **options: Any) -> list[str]: ...
    def __call__(self, inputs: AnyImage | Sequence[AnyImage], **options: Any) -> Any:
        """Return the caption of an image, or of each of several; with `n_best`, so many of each, best first.

        >>> import heedful
        >>> photos = heedful.load("photos")
        >>> len(photos(np.zeros((64, 64, 3), dtype=np.uint8), n_best=3))
        3
        """
        notes = UnlikeNotes("images")
        records = self._records(inputs, options, notes)
        notes.finish()
        texts: list[list[str]] = [[output["text"] for output in record["outputs"]] for record in records]
        answers = texts if self._decoding(options).n_best > 1 else [best[0] for best in texts]
        return answers if is_several(inputs) else answers[0]

    @overload
    def explain(self, inputs: AnyImage, **options: Any) -> Generation: ...
    @overload
    def explain(self, inputs: Sequence[AnyImage], **options: Any) -> list[Generation]: ...
    def explain(self, inputs: AnyImage | Sequence[AnyImage], **options: Any) -> Any:
        """Return the caption of an image, or of each of several, with its confidence and what `--json` prints.

        `unlike_training` says whether the image is unlike those that the model was trained on; None if the model
        folder has no statistics of them.
        """
        results = [Generation.from_record(record) for record in self._records(inputs, options)]
        return results if is_several(inputs) else results[0]

    def _records(self, inputs: Any, options: dict[str, Any], notes: UnlikeNotes | None = None) -> list[dict[str, Any]]:
        """Return what `--json` prints; removes from `options` what ends a call early."""
        sources, stop = _sources(inputs), self._stop_condition(options)
        self._check_count(len(sources))
        decoding = self._decoding(options)
        with python_errors():
            images = [open_pixels(source, self._backbone) for source in sources]
            names = [source.name for source in sources]
            return caption_records(self.loaded, self._backbone, names, images, decoding, stop=stop, notes=notes)

    def _trace_one(self, item: Any, request: TraceRequest, decoding: DecodingOptions) -> Trace:
        return trace_image(self.loaded, image_source(item), request, decoding)


def _sources(inputs: Any) -> list[ImageSource]:
    several = is_several(inputs)
    images = enumerate(as_list(inputs))
    return [image_source(image, f"inputs[{index}]" if several else "inputs") for index, image in images]
