"""What a backbone saw, kept on disk: computed once for each picture, read without loading it all.

A cache belongs to one backbone with its weights and preprocessing; a picture is known by its content. It is
written in chunks, each whole or not there: what was interrupted goes on.
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

from heedful.data.paths import cache_folder
from heedful.errors import DataError
from heedful.vision.backbone import Backbone
from heedful.vision.pictures import Picture, whole

if TYPE_CHECKING:
    from PIL.Image import Image

CHUNK = 128  # pictures in a file
BATCH = 16  # seen at once
Tick = Callable[[int], None]
Halves = npt.NDArray[np.float16]


def nothing(_count: int) -> None:
    """For whoever does not want to hear."""


class Features:
    """The maps of some pictures, in half precision. `learnt` names what the backbone has become since."""

    def __init__(self, backbone: Backbone, folder: Path | None = None, learnt: str = "") -> None:
        self.backbone = backbone
        name = f"whole {backbone.fingerprint()}" + (f" {learnt}" if learnt else "")
        self.key = hashlib.sha256(name.encode()).hexdigest()[:24]
        self.folder = (folder or cache_folder()) / "features" / self.key
        self.contents: dict[Picture, str] = {}
        self.places: dict[str, tuple[int, int]] = {}  # content -> chunk, row
        self.chunks: list[Halves] = []
        for path in sorted(self.folder.glob("*.json")):
            self._add(path)

    def _add(self, path: Path) -> None:
        try:
            names = json.loads(path.read_text(encoding="utf-8"))
            array = np.load(path.with_suffix(".npy"), mmap_mode="r")
        except (OSError, ValueError):
            return  # half a chunk: made again
        if len(array) == len(names):
            for row, name in enumerate(names):
                self.places[name] = (len(self.chunks), row)
            self.chunks.append(array)

    def extract(
        self, pictures: Sequence[Picture], tick: Tick = nothing, broken: Callable[[str], None] | None = None
    ) -> None:
        """Compute what is missing. `broken` hears of pictures that cannot be seen; else they are errors."""
        missing: dict[str, Picture] = {}
        for picture in pictures:
            try:
                content = self.content(picture)
            except DataError as error:
                told(broken, error)
            else:
                if content not in self.places:
                    missing[content] = picture
        tick(len(pictures) - len(missing))
        items = list(missing.items())
        for first in range(0, len(items), CHUNK):
            names, drawn = [], []
            for content, picture in items[first : first + CHUNK]:
                try:
                    drawn.append(whole(picture.open(), self.backbone.size))
                    names.append(content)
                except DataError as error:
                    told(broken, error)
            if names:
                self._write(names, mapped(self.backbone, drawn))
            tick(len(items[first : first + CHUNK]))

    def content(self, picture: Picture) -> str:
        """Known once computed: a picture is read for it only once."""
        if picture not in self.contents:
            self.contents[picture] = picture.content()
        return self.contents[picture]

    def _write(self, names: list[str], maps: Tensor) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        stem = hashlib.sha256("".join(names).encode()).hexdigest()[:16]
        draft = self.folder / f"{stem}.{os.getpid()}.tmp"
        with draft.open("wb") as file:
            np.save(file, maps.half().numpy())
        draft.replace(self.folder / f"{stem}.npy")
        draft.write_text(json.dumps(names), encoding="utf-8")
        draft.replace(self.folder / f"{stem}.json")
        self._add(self.folder / f"{stem}.json")

    def of(self, pictures: Sequence[Picture]) -> Tensor:
        """The maps of these pictures: (picture, region, width)."""
        places = [self.places[self.content(picture)] for picture in pictures]
        return torch.from_numpy(np.stack([self.chunks[chunk][row] for chunk, row in places])).float()

    def has(self, picture: Picture) -> bool:
        return self.contents.get(picture) in self.places


def told(broken: Callable[[str], None] | None, error: DataError) -> None:
    if broken is None:
        raise error
    broken(str(error))


def mapped(backbone: Backbone, pictures: Sequence[npt.NDArray[np.uint8]]) -> Tensor:
    """What the backbone makes of pictures of its size: (picture, region, width)."""
    parts = [backbone(np.stack(pictures[at : at + BATCH])) for at in range(0, len(pictures), BATCH)]
    return torch.cat(parts)


def seen(backbone: Backbone, pictures: Sequence[Image]) -> Tensor:
    """The maps of these pictures, computed now."""
    return mapped(backbone, [whole(picture, backbone.size) for picture in pictures])
