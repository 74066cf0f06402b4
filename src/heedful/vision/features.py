"""What a backbone saw, kept on disk: computed once for each picture, read without loading it all.

A cache belongs to one backbone with its weights and preprocessing; a picture is known by its content. It is
written in chunks, each whole or not there: what was interrupted goes on.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from heedful.data.paths import cache_folder
from heedful.errors import DataError
from heedful.vision.backbone import Backbone
from heedful.vision.pictures import open_picture, whole

CHUNK = 128  # pictures
Tick = Callable[[int], None]
Halves = npt.NDArray[np.float16]


class Features:
    """The maps of some pictures, in half precision."""

    def __init__(self, backbone: Backbone, folder: Path | None = None) -> None:
        self.backbone = backbone
        self.key = hashlib.sha256(f"whole {backbone.fingerprint()}".encode()).hexdigest()[:24]
        self.folder = (folder or cache_folder()) / "features" / self.key
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

    def extract(self, paths: Sequence[Path], tick: Tick = lambda _: None) -> dict[Path, str]:
        """Compute what is missing. Gives the content of each picture; a broken one is refused by name."""
        contents = {path: _content(path) for path in paths}
        todo = {content: path for path, content in contents.items() if content not in self.places}
        tick(len(paths) - len(todo))
        items = list(todo.items())
        for first in range(0, len(items), CHUNK):
            some = items[first : first + CHUNK]
            pictures = np.stack([whole(open_picture(path), self.backbone.size) for _, path in some])
            parts = [self.backbone(pictures[at : at + 16]) for at in range(0, len(pictures), 16)]
            self._write([content for content, _ in some], torch.cat(parts))
            tick(len(some))
        return contents

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

    def of(self, contents: Sequence[str]) -> Tensor:
        """The maps of these pictures: (picture, region, width)."""
        rows = [self.chunks[chunk][row] for chunk, row in (self.places[name] for name in contents)]
        return torch.from_numpy(np.stack(rows)).float()

    def __contains__(self, content: str) -> bool:
        return content in self.places


def _content(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such picture") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None


def pictures_in(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    for name in names:
        yield folder / name
