"""Feature maps of a backbone, cached on disk: computed once per image, memory-mapped.

A cache belongs to one backbone with its weights and preprocessing, and images are identified by their content. It
is written in chunks, each by atomic renames, so an interrupted extraction continues where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from heedful.data.images.backbone import Backbone
from heedful.data.images.files import ImageSource, resize_square
from heedful.data.paths import cache_folder
from heedful.errors import DataError
from heedful.parallel import OnProgress, no_progress

if TYPE_CHECKING:
    from PIL.Image import Image

CHUNK_SIZE = 128  # images per file
BATCH_SIZE = 16  # images per forward pass
OnBadImage = Callable[[str], None]  # receives the error message


class CachedFeatures:
    """Feature maps in half precision. `weights_hash` identifies a fine-tuned backbone."""

    def __init__(self, backbone: Backbone, folder: Path | None = None, weights_hash: str = "") -> None:
        self.backbone = backbone
        name = f"whole {backbone.fingerprint()}" + (f" {weights_hash}" if weights_hash else "")
        self.key = hashlib.sha256(name.encode()).hexdigest()[:24]
        self.folder = (folder or cache_folder()) / "features" / self.key
        self.hashes: dict[ImageSource, str] = {}
        self.positions: dict[str, tuple[int, int]] = {}  # content hash -> chunk, row
        self.chunks: list[npt.NDArray[np.float16]] = []
        for path in sorted(self.folder.glob("*.json")):
            self._add_chunk(path)

    def _add_chunk(self, path: Path) -> None:
        try:
            hashes = json.loads(path.read_text(encoding="utf-8"))
            array = np.load(path.with_suffix(".npy"), mmap_mode="r")
        except (OSError, ValueError):
            return  # a damaged chunk is computed again
        if len(array) == len(hashes):
            for row, content_hash in enumerate(hashes):
                self.positions[content_hash] = (len(self.chunks), row)
            self.chunks.append(array)

    def extract(
        self,
        images: Sequence[ImageSource],
        on_progress: OnProgress = no_progress,
        on_bad_image: OnBadImage | None = None,
    ) -> None:
        """Compute the features that are missing; without `on_bad_image`, an unreadable image is an error."""
        missing: dict[str, ImageSource] = {}
        for image in images:
            try:
                content_hash = self.content_hash(image)
            except DataError as error:
                report_or_raise(on_bad_image, error)
            else:
                if content_hash not in self.positions:
                    missing[content_hash] = image
        on_progress(len(images) - len(missing))
        items = list(missing.items())
        for first in range(0, len(items), CHUNK_SIZE):
            chunk = items[first : first + CHUNK_SIZE]
            hashes, pixels = [], []
            for content_hash, image in chunk:
                try:
                    pixels.append(resize_square(image.open(), self.backbone.size))
                    hashes.append(content_hash)
                except DataError as error:
                    report_or_raise(on_bad_image, error)
            if hashes:
                self._write_chunk(hashes, compute_features(self.backbone, pixels))
            on_progress(len(chunk))

    def content_hash(self, image: ImageSource) -> str:
        """Return the hash of an image's content, computed once per image."""
        if image not in self.hashes:
            self.hashes[image] = image.content_hash()
        return self.hashes[image]

    def _write_chunk(self, hashes: list[str], features: Tensor) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        stem = hashlib.sha256("".join(hashes).encode()).hexdigest()[:16]
        draft = self.folder / f"{stem}.{os.getpid()}.tmp"
        with draft.open("wb") as file:
            np.save(file, features.half().numpy())
        draft.replace(self.folder / f"{stem}.npy")
        draft.write_text(json.dumps(hashes), encoding="utf-8")
        draft.replace(self.folder / f"{stem}.json")
        self._add_chunk(self.folder / f"{stem}.json")

    def load(self, images: Sequence[ImageSource]) -> Tensor:
        """Return the features of extracted images: (image, region, width)."""
        positions = [self.positions[self.content_hash(image)] for image in images]
        return torch.from_numpy(np.stack([self.chunks[chunk][row] for chunk, row in positions])).float()

    def has(self, image: ImageSource) -> bool:
        """Return whether the features of an image are extracted."""
        return self.hashes.get(image) in self.positions


def report_or_raise(on_bad_image: OnBadImage | None, error: DataError) -> None:
    """Pass the error to the callback, or raise it where there is none."""
    if on_bad_image is None:
        raise error
    on_bad_image(str(error))


def compute_features(backbone: Backbone, images: Sequence[npt.NDArray[np.uint8]]) -> Tensor:
    """Return the features of resized images, in batches: (image, region, width)."""
    parts = [backbone(np.stack(images[i : i + BATCH_SIZE])) for i in range(0, len(images), BATCH_SIZE)]
    return torch.cat(parts)


def extract_features(backbone: Backbone, images: Sequence[Image]) -> Tensor:
    """Return the features of images without the cache: (image, region, width)."""
    return compute_features(backbone, [resize_square(image, backbone.size) for image in images])
