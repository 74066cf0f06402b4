"""One file of cached features: an array of feature maps, and beside it the images with their checksums."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.data.asset_files import read_json

Features = npt.NDArray[np.float16]  # (image, region, width)


class FeatureChunk:
    """Memory-mapped feature maps of some images, and a CRC-32 of each."""

    def __init__(self, path: Path, features: Features, images: Sequence[str], checksums: Sequence[int]) -> None:
        self.path, self.features = path, features  # the path is that of the JSON file
        self.images, self.checksums = list(images), list(checksums)  # content hashes; "" for a damaged row
        self.checked: set[int] = set()

    @classmethod
    def open(cls, path: Path, shape: tuple[int, int]) -> FeatureChunk:
        """Open a chunk of maps of this shape; raise ValueError or OSError if it is damaged.

        Files of the first versions have no checksums. Nothing shows that they are intact, so they are refused too.
        """
        content = read_json(path)
        array = np.load(path.with_suffix(".npy"), mmap_mode="r", allow_pickle=False)
        if not isinstance(content, dict) or not _is_list(content.get("crc32"), int, len(array)):
            raise ValueError("no checksums")
        images: Any = content.get("images")
        if array.dtype != np.float16 or array.shape[1:] != shape or not _is_list(images, str, len(array)):
            raise ValueError("not the features of these images")
        features: Features = np.asarray(array)  # rows of a plain array are sliced faster
        return cls(path, features, images, content["crc32"])

    @classmethod
    def write(cls, path: Path, images: Sequence[str], features: Features) -> FeatureChunk:
        """Write features, the index last: a chunk without it does not exist."""
        features = np.ascontiguousarray(features)
        draft = path.with_name(f"{path.stem}.{os.getpid()}.tmp")
        with draft.open("wb") as file:
            np.save(file, features)
        draft.replace(path.with_suffix(".npy"))
        chunk = cls(path, features, images, [zlib.crc32(row) for row in features])
        chunk.write_index()
        return cls.open(path, (features.shape[1], features.shape[2]))

    def write_index(self) -> None:
        """Write the images and checksums; if all rows are damaged, remove the chunk."""
        if not any(self.images):
            for path in (self.path, self.path.with_suffix(".npy")):
                path.unlink(missing_ok=True)
            return
        draft = self.path.with_name(f"{self.path.stem}.{os.getpid()}.tmp")
        draft.write_text(json.dumps({"images": self.images, "crc32": self.checksums}), encoding="utf-8")
        draft.replace(self.path)

    def is_intact(self, row: int) -> bool:
        """Return whether the features of an image are those that were written; each row is read once."""
        if row not in self.checked:
            if zlib.crc32(self.features[row].tobytes()) != self.checksums[row]:
                return False
            self.checked.add(row)
        return True


def _is_list(value: Any, kind: type, length: int) -> bool:
    return isinstance(value, list) and len(value) == length and all(type(entry) is kind for entry in value)
