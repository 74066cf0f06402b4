"""Feature maps of a backbone, cached on disk: computed once per image, memory-mapped.

A cache belongs to one backbone with its weights and preprocessing, and images are identified by their content. It
is written in chunks, each by atomic renames, so an interrupted extraction continues where it stopped. Features are
compared with their checksums once, before they are used; damaged ones are computed again.
"""

from __future__ import annotations

import hashlib
import secrets
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from heedful.data.images.backbone import Backbone
from heedful.data.images.feature_chunk import FeatureChunk
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
        self.positions: dict[str, tuple[FeatureChunk, int]] = {}  # content hash -> chunk, row
        shape = (backbone.grid[0] * backbone.grid[1], backbone.width)
        for path in sorted(self.folder.glob("*.json")):
            try:
                self._add_chunk(FeatureChunk.open(path, shape))
            except (OSError, ValueError) as error:
                self._warn(f"a file, {path.name} ({error}),")
                with suppress(OSError):  # a cache that can only be read
                    path.unlink(missing_ok=True)
                    path.with_suffix(".npy").unlink(missing_ok=True)

    def _add_chunk(self, chunk: FeatureChunk) -> None:
        for row, content_hash in enumerate(chunk.images):
            if content_hash:
                self.positions[content_hash] = (chunk, row)

    def extract(
        self,
        images: Sequence[ImageSource],
        on_progress: OnProgress = no_progress,
        on_bad_image: OnBadImage | None = None,
    ) -> None:
        """Compute the features that are missing; without `on_bad_image`, an unreadable image is an error."""
        missing: dict[str, ImageSource] = {}
        damaged: set[str] = set()
        for image in images:
            try:
                content_hash = self.content_hash(image)
            except DataError as error:
                report_or_raise(on_bad_image, error)
            else:
                if content_hash not in self.positions:
                    missing[content_hash] = image
                elif not self._is_intact(content_hash):
                    missing[content_hash] = image
                    damaged.add(content_hash)
        self._forget_damaged(damaged)
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

    def _is_intact(self, content_hash: str) -> bool:
        chunk, row = self.positions[content_hash]
        return chunk.is_intact(row)

    def content_hash(self, image: ImageSource) -> str:
        """Return the hash of an image's content, computed once per image."""
        if image not in self.hashes:
            self.hashes[image] = image.content_hash()
        return self.hashes[image]

    def _forget_damaged(self, content_hashes: Collection[str]) -> None:
        """Remove damaged rows from the cache, and say so: they are computed again."""
        damaged = [self.positions.pop(content_hash) for content_hash in content_hashes]
        for chunk, row in damaged:
            chunk.images[row] = ""
        for chunk in {id(chunk): chunk for chunk, _ in damaged}.values():
            with suppress(OSError):  # a cache that can only be read
                chunk.write_index()
        if damaged:
            self._warn("1 image" if len(damaged) == 1 else f"{len(damaged):,} images")

    def _warn(self, what: str) -> None:
        message = f"{self.folder}: the cached features of {what} are damaged, and computed again"
        print(f"warning: {message}", file=sys.stderr)

    def _write_chunk(self, hashes: list[str], features: Tensor) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        # a new name each time: another process may write the same images, with other bits at the end of a number
        path = self.folder / f"{secrets.token_hex(8)}.json"
        self._add_chunk(FeatureChunk.write(path, hashes, features.half().numpy()))

    def load(self, images: Sequence[ImageSource]) -> Tensor:
        """Return the features of extracted images: (image, region, width)."""
        positions = [self.positions[self.content_hash(image)] for image in images]
        return torch.from_numpy(np.stack([chunk.features[row] for chunk, row in positions])).float()

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
