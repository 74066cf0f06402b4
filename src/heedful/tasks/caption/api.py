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
from heedful.tasks.caption.predict import load_backbone, open_pixels, search_images
from heedful.tasks.caption.trace import trace_image
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
        sources, stop = _sources(inputs), self._stop_condition(options)
        self._check_count(len(sources))
        decoding = self._decoding(options)
        with python_errors():
            images = [open_pixels(source, self._backbone) for source in sources]
            hypotheses = search_images(self.loaded.model, self._backbone, images, decoding, stop=stop)
        decode = self.loaded.assets.target.decode
        texts: list[list[str]] = [[decode(hypothesis.tokens) for hypothesis in best] for best in hypotheses]
        answers = texts if decoding.n_best > 1 else [best[0] for best in texts]
        return answers if is_several(inputs) else answers[0]

    def _trace_one(self, item: Any, request: TraceRequest, decoding: DecodingOptions) -> Trace:
        return trace_image(self.loaded, image_source(item), request, decoding)


def _sources(inputs: Any) -> list[ImageSource]:
    several = is_several(inputs)
    images = enumerate(as_list(inputs))
    return [image_source(image, f"inputs[{index}]" if several else "inputs") for index, image in images]
