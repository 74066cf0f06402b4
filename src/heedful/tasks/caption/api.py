"""Captioners in Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

from heedful.data.images.files import ImageFile
from heedful.tasks.api import Model
from heedful.tasks.caption.predict import load_backbone, search_images


class Captioner(Model):
    """An image captioner."""

    @overload
    def __call__(self, inputs: str | Path, **options: Any) -> str: ...
    @overload
    def __call__(self, inputs: Sequence[str | Path], **options: Any) -> list[str]: ...
    def __call__(self, inputs: str | Path | Sequence[str | Path], **options: Any) -> str | list[str]:
        """Return the caption of an image file, or of each of several."""
        files = [inputs] if isinstance(inputs, str | Path) else list(inputs)
        images = [ImageFile(Path(file)).open() for file in files]
        hypotheses = search_images(self.loaded.model, load_backbone(self.loaded), images, self._decoding(options))
        texts: list[str] = [self.loaded.assets.target.decode(best[0].tokens) for best in hypotheses]
        return texts[0] if isinstance(inputs, str | Path) else texts
